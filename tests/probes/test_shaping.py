from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.probes.answers import CHAT, COMPLETIONS, chat, probe

from culpa.model import Configuration, all_safe
from culpa.probes import (
    Expectation,
    Limits,
    Probe,
    Request,
    builtin_probes,
    conflict,
    request_factors,
    shaped,
    with_new_sessions,
)
from culpa.probes.request import estimated_prompt_tokens

BUILTIN = builtin_probes(Limits("m", 4096, 512, 4), seed=1)


def at(asked: Probe, **levels: str) -> Probe:
    return shaped(asked, Configuration.of(levels))


def only(asked: Probe) -> Request:
    (request,) = asked.requests()
    return request


def test_suspect_levels_change_nothing() -> None:
    for asked in BUILTIN:
        levels = Configuration.of({factor.name: factor.suspect for factor in request_factors(asked)})
        assert shaped(asked, levels) is asked


def test_levels_of_other_factors_change_nothing() -> None:
    asked = probe(chat(top_k=3))
    assert at(asked, execution="eager") is asked


@pytest.mark.parametrize(
    ("fields", "factor", "level", "gone", "left"),
    [
        ({"top_k": 5, "seed": 1}, "top_k", "absent", ["top_k"], {"seed": 1}),
        ({"stream": True, "stream_options": {}}, "stream", "absent", ["stream", "stream_options"], {}),
        ({"tools": [{}], "tool_choice": "auto"}, "tools", "absent", ["tools", "tool_choice"], {}),
        ({"logprobs": True, "top_logprobs": 3}, "logprobs", "absent", ["logprobs", "top_logprobs"], {}),
        ({"temperature": 0.8, "top_p": 0.9}, "temperature", "0", [], {"temperature": 0, "top_p": 0.9}),
        ({"max_tokens": 500}, "max_tokens", "40", [], {"max_tokens": 40}),
        ({"max_tokens": None}, "max_tokens", "16", [], {"max_tokens": 16}),
        (
            {"max_tokens": None, "max_completion_tokens": 90},
            "max_tokens",
            "16",
            ["max_tokens"],
            {"max_completion_tokens": 16},
        ),
    ],
)
def test_a_field_goes_with_what_means_nothing_without_it(
    fields: dict[str, Any], factor: str, level: str, gone: list[str], left: dict[str, Any]
) -> None:
    body = only(at(probe(chat(**fields)), **{factor: level})).body
    assert not body.keys() & set(gone)
    assert {key: body[key] for key in left} == left


def test_smaller_rounds_keep_all_requests() -> None:
    result = at(Probe("test", ((chat(),) * 8,)), concurrency="3")
    assert [len(one) for one in result.rounds] == [3, 3, 2]


def test_fewer_repeats_keep_one_of_each() -> None:
    result = at(probe(chat("a"), chat("a"), chat("b"), chat("b"), chat("b")), repeats="1")
    assert [request.question for request in result.requests()] == ["a", "b"]


def test_no_order_leaves_the_last_request() -> None:
    assert only(at(probe(chat("a"), chat("b"), chat("a")), order="A")).question == "a"


def test_fewer_preceding_requests_are_the_last_of_them() -> None:
    asked = probe(chat("z")).after([probe(chat("a"), chat("b"), chat("c"))])
    assert [one.question for one in at(asked, preceding_requests="2").requests()] == ["b", "c", "z"]
    assert [one.question for one in at(asked, preceding_requests="0").requests()] == ["z"]


def test_preceding_requests_within_the_rounds_go_too() -> None:
    asked = probe(chat("a"), chat("b"), chat("z"), chat("z"))
    assert [one.question for one in at(asked, preceding_requests="0").requests()] == ["z", "z"]


def test_a_chat_becomes_a_completion_without_what_only_chat_knows() -> None:
    request = only(at(probe(chat("Hi", logprobs=True, top_logprobs=4, tools=[{}])), endpoint="completions"))
    assert request.endpoint == COMPLETIONS
    assert request.body == {"prompt": "Hi", "temperature": 0, "max_tokens": 16, "logprobs": 4}


def test_a_completion_becomes_a_chat() -> None:
    body = {"prompt": "Hi", "logprobs": 2, "echo": True}
    request = only(at(probe(Request(COMPLETIONS, body)), endpoint="chat"))
    assert request.endpoint == CHAT
    assert request.body == {
        "messages": [{"role": "user", "content": "Hi"}],
        "logprobs": True,
        "top_logprobs": 2,
    }


def test_a_built_in_question_has_its_own_form_as_a_completion() -> None:
    request = at(BUILTIN[0], endpoint="completions").requests()[0]
    assert request.body["prompt"] == "1+1=2\n2+1=3\n2+2="
    assert request.expect is not None
    assert request.expect.met("4\n3+3=5")
    assert not request.expect.met("5\n2+2=4")


def test_a_prompt_that_is_asked_once_is_no_longer_warm() -> None:
    warm = next(one for one in BUILTIN if one.name == "warm")
    assert at(warm, repeats="1").cache is None
    assert at(warm, prompt_tokens="100").cache == "warm"


@pytest.mark.parametrize("tokens", [100, 1000, 2000])
def test_a_synthetic_prompt_keeps_session_and_record_in_every_size(tokens: int) -> None:
    cold = next(one for one in BUILTIN if one.name == "cold")
    before, after = only(cold), only(at(cold, prompt_tokens=str(tokens)))
    assert after.question[:20] == before.question[:20]
    assert before.expect is not None
    assert before.expect.contains is not None
    assert before.expect.contains in after.question
    assert tokens * 0.6 <= estimated_prompt_tokens(after.body, cold.tokens_per_character) <= tokens + 1


def test_a_given_prompt_keeps_its_end_from_the_start_of_a_word() -> None:
    asked = probe(chat("first " * 200 + "what is the last word?"))
    assert only(at(asked, prompt_tokens="16")).question == "first what is the last word?"


def test_token_ids_are_cut_to_the_exact_length() -> None:
    asked = probe(Request(COMPLETIONS, {"prompt": list(range(100))}))
    assert only(at(asked, prompt_tokens="16")).body["prompt"] == list(range(84, 100))


def test_a_cut_conversation_begins_with_a_turn_of_the_user() -> None:
    messages = [
        {"role": "user", "content": "x " * 100},
        {"role": "assistant", "content": "y " * 40},
        {"role": "user", "content": "And now?"},
    ]
    asked = probe(Request(CHAT, {"messages": messages}))
    assert only(at(asked, prompt_tokens="16")).body["messages"] == [messages[2]]


def test_parts_that_are_no_text_go() -> None:
    content = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    asked = probe(Request(CHAT, {"messages": [{"role": "user", "content": content}]}))
    messages = only(at(asked, media="absent")).body["messages"]
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "What?"}]}]


def test_new_sessions_keep_records_sizes_and_the_order() -> None:
    switch = next(one for one in BUILTIN if one.name == "switch")
    first, other, again = with_new_sessions(switch, 0).requests()
    assert first == again != other
    assert first.expect == switch.requests()[0].expect
    assert first.question[:20] != switch.requests()[0].question[:20]
    assert with_new_sessions(switch, 0) == with_new_sessions(switch, 0) != with_new_sessions(switch, 1)


def test_the_user_vouches_for_the_request_as_written_only() -> None:
    asked = probe(chat(expect="4", certain=True, top_k=5, stream=True))
    changed = only(at(asked, top_k="absent")).expect
    assert changed == Expectation("4", certain=False)
    delivered_otherwise = only(at(asked, stream="absent")).expect
    assert delivered_otherwise == Expectation("4", certain=True)


def test_several_answers_need_sampling() -> None:
    asked = probe(chat(n=2, temperature=0.8))
    assert (
        conflict(asked, Configuration.of({"temperature": "0"})) == "n=2 needs sampling, and temperature is 0"
    )
    assert conflict(asked, Configuration.of({"temperature": "0", "n": "absent"})) is None
    assert conflict(asked, Configuration.of({"temperature": "0.8"})) is None


@pytest.mark.parametrize("asked", BUILTIN, ids=lambda one: one.name)
def test_with_all_safe_a_workload_is_small_plain_requests_one_after_the_other(asked: Probe) -> None:
    plain = shaped(asked, all_safe(request_factors(asked)))
    assert all(len(one) == 1 for one in plain.asked())
    # What was different at once stays different one after the other.
    kinds = {request.canonical() for request in plain.requests()}
    assert len(kinds) == len({request.canonical() for request in asked.rounds[-1]})
    request = plain.requests()[0]
    assert request.body.keys() <= {"model", "messages", "prompt", "input", "temperature", "max_tokens"}
    assert estimated_prompt_tokens(request.body, asked.tokens_per_character) <= 130
    assert request.body.get("max_tokens", 0) <= 32
    assert request.body.get("temperature", 0) == 0


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0, 0.5, None]),
        "top_k": st.integers(1, 50),
        "stream": st.booleans(),
        "tools": st.just([{"type": "function"}]),
        "logprobs": st.booleans(),
        "max_tokens": st.integers(1, 2000),
        "n": st.integers(1, 3),
        "response_format": st.just({"type": "json_object"}),
    },
)


@given(st.lists(st.tuples(st.text(max_size=300), FIELDS), min_size=1, max_size=4), st.data())
def test_any_levels_in_any_combination_give_a_workload(
    requests: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    asked = probe(*[chat(text, **fields) for text, fields in requests])
    factors = request_factors(asked)
    levels = {}
    for factor in factors:
        choices = [factor.suspect, *factor.safe]
        if factor.numeric and factor.suspect.isdigit():
            choices.append(str((int(factor.suspect) + int(factor.safe[0])) // 2))
        levels[factor.name] = data.draw(st.sampled_from(choices))
    result = shaped(asked, Configuration.of(levels))
    assert 1 <= len(result.requests()) <= len(asked.requests())
    assert all(request.endpoint in (CHAT, COMPLETIONS) for request in result.requests())


@given(st.lists(st.tuples(st.text(max_size=300), FIELDS), min_size=1, max_size=4))
def test_a_plain_workload_has_no_factors_left(requests: list[tuple[str, dict[str, Any]]]) -> None:
    asked = probe(*[chat(text, **fields) for text, fields in requests])
    plain = shaped(asked, all_safe(request_factors(asked)))
    assert {factor.name for factor in request_factors(plain)} <= {"endpoint"}
