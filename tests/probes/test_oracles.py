import dataclasses
from typing import Any, Literal

import pytest
from tests.probes.answers import CHAT, chat, measured, probe, said

from culpa.probes import Answer, Expectation, Probe, Reference, Request, judge, reference_from

LOST = Answer(failure="connection_lost", error="ReadError", seconds=1.5)
GARBAGE = said("!" * 40, "length")


def reference(asked: Probe, *answers: Answer) -> Reference:
    return reference_from([(asked, answers)])


def http(status: int, error: str = "no") -> Answer:
    return Answer(status=status, failure="http_error", error=error)


def test_the_expected_text_is_right() -> None:
    judgement = judge(probe(chat(expect="4")), (said("The answer is 4."),))
    assert (judgement.status, judgement.symptom) == ("right", None)


@pytest.mark.parametrize("text", ["14", "4th", "40", "four"])
def test_a_number_within_another_word_is_not_the_expected_one(text: str) -> None:
    assert judge(probe(chat(expect="4")), (said(text),)).status == "unknown"


def test_a_missing_text_needs_a_reference_as_long_as_the_model_may_not_know() -> None:
    judgement = judge(probe(chat(expect="4"), chat(expect="4")), (said("7"), said("7")))
    assert judgement.status == "unknown"
    assert "reference" in judgement.caveat


def test_a_missing_text_is_wrong_where_the_user_vouches_for_it() -> None:
    judgement = judge(probe(chat(expect="4", certain=True)), (said("7"),))
    assert (judgement.status, judgement.symptom) == ("wrong", "wrong_answer")


def test_the_evidence_names_question_repeats_expectation_and_answer() -> None:
    asked = probe(*[chat(expect="4", certain=True)] * 3)
    judgement = judge(asked, (said("!!!!", "length"),) * 3)
    assert judgement.evidence == (
        "asked 'What is 2+2?' 3 times at temperature 0: '4' expected, got '!!!!' (finish_reason length)"
    )


def test_a_missing_text_is_wrong_where_the_reference_knows_it() -> None:
    asked = probe(chat(expect="4"))
    judgement = judge(asked, (said("7"),), reference(asked, said("4")))
    assert (judgement.status, judgement.symptom) == ("wrong", "wrong_answer")
    assert "1 of 1 times" in judgement.evidence


def test_degenerate_text_where_the_reference_knows_is_gibberish() -> None:
    asked = probe(chat(expect="4"))
    judgement = judge(asked, (GARBAGE,), reference(asked, said("4")))
    assert judgement.symptom == "gibberish"
    assert "ran to its limit" in judgement.evidence


def test_a_missing_text_is_right_where_the_reference_says_the_same() -> None:
    asked = probe(chat(expect="4"))
    assert judge(asked, (said("7"),), reference(asked, said("7"))).status == "right"


def test_a_prompt_with_another_session_is_judged_by_what_the_reference_knows() -> None:
    known = reference(probe(chat("session 1", expect="4")), said("4"))
    assert judge(probe(chat("session 2", expect="5")), (said("7"),), known).status == "wrong"


def test_a_near_tie_that_turns_a_known_answer_stays_open() -> None:
    asked = probe(chat(expect="4"))
    known = reference(asked, measured(("4", -0.70, {"7": -0.71})))
    judgement = judge(asked, (measured(("7", -0.70, {"4": -0.71})),), known)
    assert judgement.status == "unknown"
    assert "near-tie" in judgement.caveat


def test_a_model_that_knows_nothing_is_judged_by_its_log_probabilities() -> None:
    asked = probe(chat(expect="4"))
    known = reference(asked, measured(("q", -0.1, {"r": -5.0})))
    assert judge(asked, (measured(("q", -0.12, {"r": -5.0})),), known).status == "right"
    judgement = judge(asked, (measured(("q", -2.0, {"r": -5.0})),), known)
    assert (judgement.status, judgement.symptom) == ("wrong", "wrong_answer")
    assert "1.90 nats" in judgement.evidence


def test_a_near_tie_of_a_model_that_knows_nothing_is_no_failure() -> None:
    asked = probe(chat())
    known = reference(asked, measured(("q", -0.700, {"r": -0.704})))
    assert judge(asked, (measured(("r", -0.700, {"q": -0.704})),), known).status == "right"


def test_right_once_and_wrong_once_is_wrong_without_any_reference() -> None:
    asked = probe(chat(expect="4"), chat(expect="4"))
    judgement = judge(asked, (said("4"), said("what")))
    assert (judgement.status, judgement.symptom, judgement.failed_request) == ("wrong", "wrong_answer", 1)


def test_wrong_first_and_right_later_names_the_first() -> None:
    asked = probe(chat(expect="4"), chat(expect="4"))
    assert judge(asked, (GARBAGE, said("4"))).failed_request == 0


def test_different_wordings_of_a_right_answer_are_right_with_a_caveat() -> None:
    asked = probe(chat(expect="4"), chat(expect="4"))
    judgement = judge(asked, (said("4"), said("It is 4.")))
    assert judgement.status == "right"
    assert "differ" in judgement.caveat


def test_answers_that_do_not_repeat_are_wrong_if_no_near_tie_explains_it() -> None:
    first = measured(("q", -0.1, {"r": -5.0}))
    other = measured(("r", -0.1, {"q": -5.0}))
    assert judge(probe(chat(), chat()), (first, other)).status == "wrong"


def test_answers_that_do_not_repeat_stay_open_without_log_probabilities() -> None:
    assert judge(probe(chat(), chat()), (said("blue"), said("red"))).status == "unknown"


def test_sampled_answers_may_differ() -> None:
    asked = probe(chat(temperature=0.8), chat(temperature=0.8))
    assert judge(asked, (said("blue"), said("red"))).status == "right"


def test_a_degenerate_answer_without_expectation_needs_a_reference() -> None:
    asked = probe(chat(temperature=0.8))
    assert judge(asked, (GARBAGE,)).status == "unknown"
    assert judge(asked, (GARBAGE,), reference(asked, said("A fine day."))).symptom == "gibberish"
    assert judge(asked, (GARBAGE,), reference(asked, GARBAGE)).status == "right"


def test_an_answer_that_may_not_stop_may_degenerate() -> None:
    assert judge(probe(chat(ignore_eos=True)), (GARBAGE,)).status == "right"


@pytest.mark.parametrize(
    ("fields", "bad", "good"),
    [
        ({"response_format": {"type": "json_schema"}}, said("{colour"), said('{"colour": 1}')),
        (
            {"tools": [{}]},
            said("<tool_call>x"),
            said("", "tool_calls", tool_calls=('weather({"city":"P"})',)),
        ),
        ({"tools": [{}]}, said("", "tool_calls", tool_calls=("weather({city)",)), said("I don't know.")),
        ({}, said(""), said("Hello.")),
    ],
)
def test_a_broken_form_needs_a_reference_that_kept_it(
    fields: dict[str, Any], bad: Answer, good: Answer
) -> None:
    asked = probe(chat(**fields, temperature=0.8))
    assert judge(asked, (good,)).status == "right"
    assert judge(asked, (bad,)).status == "unknown"
    assert judge(asked, (bad,), reference(asked, good)).symptom == "wrong_answer"


def test_json_that_was_cut_at_the_limit_is_no_fault() -> None:
    asked = probe(chat(response_format={"type": "json_schema"}))
    assert judge(asked, (said('{"colour": "b', "length"),)).status == "right"


@pytest.mark.parametrize(
    ("answer", "symptom"),
    [
        (LOST, "connection_lost"),
        (Answer(failure="not_connected", error="refused"), "connection_lost"),
        (http(500), "http_error"),
        (http(503), "http_error"),
        (Answer(status=200, failure="http_error", error="in the stream"), "http_error"),
        (Answer(status=200, failure="malformed", error="no JSON"), "malformed_answer"),
        (Answer(status=500, failure="http_error", error="nan", nan="HTTP 500 says nan"), "nan_logits"),
        (said("4", nan="the log-probabilities of token 1 are no numbers"), "nan_logits"),
    ],
)
def test_what_fails_below_the_text_is_wrong_whatever_the_text_says(answer: Answer, symptom: str) -> None:
    judgement = judge(probe(chat(expect="4")), (answer,))
    assert (judgement.status, judgement.symptom) == ("wrong", symptom)
    assert judgement.evidence.startswith("asked 'What is 2+2?' at temperature 0: ")


@pytest.mark.parametrize("status", [400, 404, 422, 501])
def test_a_refused_kind_is_unsupported_with_the_engines_reason(status: int) -> None:
    judgement = judge(probe(chat()), (http(status, "no tools here"),))
    assert judgement.status == "unsupported"
    assert "no tools here" in judgement.evidence


def test_a_server_error_that_declines_a_field_is_a_refusal() -> None:
    said_no = http(500, "tools param requires --jinja flag")
    assert judge(probe(chat(tools=[{}])), (said_no,)).status == "unsupported"
    assert judge(probe(chat()), (said_no,)).symptom == "http_error"
    assert judge(probe(chat(tools=[{}]), source="user"), (said_no,)).symptom == "http_error"


def test_a_server_error_about_something_else_is_a_failure() -> None:
    said_no = http(500, "this custom template is not supported, try using --jinja")
    assert judge(probe(chat(tools=[{}], n=1)), (said_no,)).symptom == "http_error"


def test_what_precedes_a_workload_may_be_refused_or_unknown_but_not_wrong() -> None:
    asked = probe(chat(expect="4")).after([probe(chat("a", tools=[{}]), chat("b", expect="B"))])
    refused, unknown, right = http(400), said("nothing"), said("4")
    assert judge(asked, (refused, unknown, right)).status == "right"
    judgement = judge(asked, (refused, said("B", nan="NaN"), right))
    assert (judgement.symptom, judgement.failed_request) == ("nan_logits", 1)
    assert judge(asked, (refused, unknown, http(400))).status == "unsupported"


def test_an_answer_that_changes_after_other_requests_is_wrong() -> None:
    asked = probe(chat(expect="4")).after([probe(chat(expect="4"))])
    assert judge(asked, (said("4"), said("7"))).failed_request == 1


def test_a_refused_request_of_the_user_is_a_failure() -> None:
    judgement = judge(probe(chat(), source="user"), (http(400),))
    assert (judgement.status, judgement.symptom) == ("wrong", "request_rejected")


def test_the_failure_that_says_most_is_named() -> None:
    asked = Probe("test", ((chat(), chat(), chat()),))
    nan = Answer(status=500, failure="http_error", error="nan", nan="HTTP 500 says nan")
    judgement = judge(asked, (LOST, http(400), nan))
    assert (judgement.symptom, judgement.failed_request) == ("nan_logits", 2)


def test_fewer_answers_than_requests_without_a_failure_stay_open() -> None:
    assert judge(probe(chat(), chat()), (said("4"),)).status == "unknown"


@pytest.mark.parametrize(
    ("kind", "cached", "caveat"),
    [
        ("cold", 0, ""),
        ("cold", 26, ""),
        ("cold", 400, "Not cold: 400 of 500"),
        ("cold", None, "does not say"),
        ("warm", 496, ""),
        ("warm", 0, "Not warm: 0 of 500"),
    ],
)
def test_cache_hits_say_whether_a_probe_was_what_it_claims(
    kind: Literal["cold", "warm"], cached: int | None, caveat: str
) -> None:
    asked = dataclasses.replace(probe(chat(expect="4")), cache=kind)
    judgement = judge(asked, (said("4", prompt_tokens=500, cached_tokens=cached),))
    assert judgement.status == "right"
    assert judgement.caveat == caveat or (caveat and caveat in judgement.caveat)


def test_a_short_prompt_is_warm_if_more_of_it_was_cached_than_the_first_time() -> None:
    asked = dataclasses.replace(probe(chat(), chat()), cache="warm")
    assert judge(asked, (said("4", cached_tokens=20), said("4", cached_tokens=30))).caveat == ""
    assert "Not warm" in judge(asked, (said("4", cached_tokens=20), said("4", cached_tokens=20))).caveat


def test_the_engines_own_counters_stand_in_for_hits_that_an_answer_does_not_tell() -> None:
    asked = dataclasses.replace(probe(chat(expect="4")), cache="warm")
    assert judge(asked, (said("4"),), cached=(480,)).caveat == ""


def test_a_reasoning_model_that_was_cut_is_told_apart_from_one_that_does_not_know() -> None:
    judgement = judge(probe(chat(expect="4")), (said("The user asks", "length", thinking=True),))
    assert judgement.status == "unknown"
    assert "thoughts" in judgement.caveat


def test_a_regular_expression_can_be_expected() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    asked = Probe("test", ((Request(CHAT, body, expect=Expectation(regex=r"^\d+$", certain=True)),),))
    assert judge(asked, (said("42"),)).status == "right"
    assert judge(asked, (said("forty"),)).status == "wrong"
