import pytest

from culpa.probes import Limits, Probe, Question, Record, builtin_probes, long_prompt_tokens
from culpa.probes.request import estimated_prompt_tokens

LIMITS = Limits("m", 8192, 2048, 4)


def kinds(limits: Limits = LIMITS, **options: object) -> dict[str, Probe]:
    return {one.name: one for one in builtin_probes(limits, **options)}  # type: ignore[arg-type]


def test_every_kind_is_asked_once_from_cheap_to_dear_with_short_first() -> None:
    probes = builtin_probes(LIMITS)
    assert probes[0].name == "short"
    costs = [one.estimated_tokens() for one in probes[1:]]
    assert costs == sorted(costs)
    assert {one.name for one in probes} == {
        "short", "completions", "stream", "logprobs", "sampled", "top_k", "structured_output", "tools",
        "embeddings", "ignore_eos", "same_twice", "two_at_once", "many_at_once", "different_at_once",
        "batch_boundary", "cold", "warm", "switch",
    }  # fmt: skip


def test_the_same_seed_gives_the_same_probes_and_another_seed_new_sessions() -> None:
    assert builtin_probes(LIMITS, seed=1) == builtin_probes(LIMITS, seed=1)
    texts = [kinds(seed=seed)["cold"].requests()[0].question for seed in range(20)]
    assert len({text[:20] for text in texts}) == 20


def test_no_two_long_prompts_share_a_session() -> None:
    probes = builtin_probes(LIMITS, seed=1) + builtin_probes(LIMITS, seed=2)
    questions = {request.question for one in probes if one.cache for request in one.requests()}
    assert len({text[:20] for text in questions}) == len(questions) == 8


@pytest.mark.parametrize(
    ("limits", "asked", "affordable", "tokens"),
    [
        (Limits("m"), None, None, 27_000),
        (Limits("m", 8000), None, None, 6400),
        (Limits("m", 200_000), None, None, 27_000),
        (Limits("m", 8000), None, 500, 500),
        (Limits("m", 8000), 7000, 500, 7000),
    ],
)
def test_long_prompts_follow_the_context_and_what_is_affordable(
    limits: Limits, asked: int | None, affordable: int | None, tokens: int
) -> None:
    assert long_prompt_tokens(limits, asked, affordable) == tokens
    cold = kinds(limits, probe_tokens=asked, affordable_tokens=affordable)["cold"]
    size = estimated_prompt_tokens(cold.requests()[0].body, cold.tokens_per_character)
    assert tokens * 0.8 <= size <= tokens


def test_a_measured_tokenizer_makes_longer_texts_for_the_same_tokens() -> None:
    rough, exact = kinds(), kinds(tokens_per_character=0.2)
    assert len(exact["cold"].requests()[0].question) > 2 * len(rough["cold"].requests()[0].question)


def test_warm_asks_the_same_again_and_switch_in_turns() -> None:
    probes = kinds()
    first, again = probes["warm"].requests()
    assert first == again
    one, other, back = probes["switch"].requests()
    assert one == back != other


def test_the_batch_is_overstepped_by_one_token() -> None:
    assert len(kinds()["batch_boundary"].requests()[0].body["prompt"]) == 2049


@pytest.mark.parametrize("limits", [Limits("m", 8192, None, 4), Limits("m", 2048, 2048, 4)])
def test_a_batch_that_is_unknown_or_beyond_the_context_is_not_overstepped(limits: Limits) -> None:
    assert "batch_boundary" not in kinds(limits)


def test_a_batch_that_is_not_affordable_is_not_overstepped() -> None:
    assert "batch_boundary" not in kinds(affordable_tokens=500)


@pytest.mark.parametrize(
    ("parallel", "affordable", "at_once"), [(4, None, 5), (256, None, 64), (None, None, 8), (256, 600, 10)]
)
def test_one_request_more_than_the_engine_serves_in_parallel(
    parallel: int | None, affordable: int | None, at_once: int
) -> None:
    (together,) = kinds(Limits("m", 8192, 2048, parallel), affordable_tokens=affordable)[
        "many_at_once"
    ].rounds
    assert len(together) == at_once


def test_different_requests_are_asked_alone_and_then_at_once() -> None:
    *alone, together = kinds(Limits("m", 8192, 2048, 4))["different_at_once"].rounds
    assert [one[0] for one in alone] == list(together)
    assert len({request.question for request in together}) == 4
    assert not any(request.measured for request in together)


@pytest.mark.parametrize(
    ("parallel", "affordable", "count"), [(None, None, 8), (4, None, 4), (1, None, 2), (256, 1_000, 4)]
)
def test_as_many_different_requests_as_the_engine_serves_and_takes(
    parallel: int | None, affordable: int | None, count: int
) -> None:
    probes = kinds(Limits("m", 8192, 2048, parallel), affordable_tokens=affordable)
    assert len(probes["different_at_once"].rounds[-1]) == count


def test_an_engine_too_slow_for_two_different_requests_is_spared_them() -> None:
    assert "different_at_once" not in kinds(affordable_tokens=100)


def test_own_questions_stand_in_for_the_default_ones_and_are_vouched_for() -> None:
    requests = kinds(questions=[Question("Who?", "Me", certain=True)])["short"].requests()
    assert len(requests) == 3
    assert requests[0].expect is not None
    assert (requests[0].expect.contains, requests[0].expect.certain) == ("Me", True)


def test_an_own_record_is_in_every_long_prompt() -> None:
    probes = kinds(record=Record("gate 5", "abc"))
    for name in ("cold", "warm", "switch"):
        assert "The access code of gate 5 is abc." in probes[name].requests()[0].question


def test_an_engine_that_refuses_chat_is_asked_by_completions() -> None:
    probes = kinds(chat=False)
    assert {request.endpoint for one in probes.values() for request in one.requests()} == {
        "/v1/completions",
        "/v1/embeddings",
    }
    assert "tools" not in probes


def test_a_reasoning_model_gets_room_for_its_thoughts() -> None:
    assert kinds(thinking_tokens=500)["cold"].requests()[0].body["max_tokens"] == 524


def test_no_model_name_leaves_the_field_to_the_client() -> None:
    assert "model" not in kinds(Limits(""))["short"].requests()[0].body


def test_a_workload_is_cut_after_the_round_in_which_it_failed() -> None:
    switch = kinds()["switch"]
    assert switch.until(1).rounds == switch.rounds[:2]
    earlier = kinds()["short"]
    after = switch.after([earlier])
    assert after.until(len(earlier.requests())).preceding == earlier.rounds
    assert after.until(0).rounds == earlier.rounds[:1]
