"""The requests by which configurations are compared."""

from culpa.hunt import Sizes
from culpa.mitigation.workload import ANSWER_TOKENS, survived_lengths, workloads
from culpa.model import Configuration, Outcome, RequestResult, Trial
from culpa.probes import Limits

LIMITS = Limits("m", context_tokens=32_768)


def lengths(limits: Limits, sizes: Sizes, survived: tuple[int, ...]) -> list[int]:
    return [one.tokens for one in workloads(limits, sizes, survived, 0)]


def test_the_longest_prompt_that_was_survived_is_tried_first_and_shorter_ones_after_it() -> None:
    assert lengths(LIMITS, Sizes(), (4096,)) == [4096, 1024, 256, 0]


def test_a_prompt_fits_into_the_context_with_its_answer() -> None:
    assert max(lengths(Limits("m", context_tokens=512), Sizes(), (4096,))) == 512 - 2 * ANSWER_TOKENS


def test_a_slow_engine_is_asked_for_less() -> None:
    assert max(lengths(LIMITS, Sizes(affordable_tokens=1400), (4096,))) == 100


def test_every_prompt_is_new_and_the_same_in_every_configuration() -> None:
    first, again = (next(workloads(LIMITS, Sizes(), (512,), 0)) for _ in range(2))
    texts = [one.question for one in (*first.alone, *first.at_once)]
    assert len(set(texts)) == len(texts) == 7
    assert first == again


def test_no_more_requests_are_sent_at_once_than_the_engine_serves() -> None:
    assert len(next(workloads(Limits("m", parallel=2), Sizes(), (), 0)).at_once) == 2


def test_an_engine_without_chat_is_asked_for_completions() -> None:
    workload = next(workloads(LIMITS, Sizes(chat=False), (), 0))
    assert {one.endpoint for one in workload.alone} == {"/v1/completions"}


def test_a_field_that_the_engine_refuses_is_left_out() -> None:
    plain = next(workloads(LIMITS, Sizes(), (), 0)).without("ignore_eos")
    assert all("ignore_eos" not in one.body for one in (*plain.alone, *plain.at_once))


def trial(outcome: Outcome, purpose: str, tokens: int, status: str = "right", **levels: str) -> Trial:
    request = RequestResult("long_prompt", status, prompt_tokens=tokens)  # type: ignore[arg-type]
    return Trial(1, Configuration.of(levels), outcome, purpose, "", requests=(request,))


def test_only_lengths_that_the_failing_set_survived_count() -> None:
    trials = [
        trial(Outcome.PASS, "threshold", 3000, execution="graphs", pp="3"),
        trial(Outcome.PASS, "search", 9000, execution="eager", pp="3"),
        trial(Outcome.FAIL, "baseline", 500),
        trial(Outcome.FAIL, "search", 8000, execution="graphs", pp="3"),
        trial(Outcome.PASS, "threshold", 7000, "failed", execution="graphs", pp="3"),
    ]
    assert survived_lengths(trials, Configuration.of({"execution": "graphs", "pp": "3"})) == (2700,)
    assert survived_lengths([], Configuration.of({})) == ()
