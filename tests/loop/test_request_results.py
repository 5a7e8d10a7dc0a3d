"""What a trial keeps of each of its requests."""

from dataclasses import replace

from culpa.evidence import Asked, Verdict, request_results
from culpa.model import RequestResult
from culpa.probes import Answer, Judgement, LongPrompt, Probe, Question, Request
from culpa.probes.prompts import random_record
from culpa.probes.request import COMPLETIONS, Expectation

SHORT = Question("What is 2+2?", "4")
LONG = LongPrompt(random_record(1), 500, 1)


def request(recipe: Question | LongPrompt | None, answer: str = "") -> Request:
    expect = Expectation(answer) if answer else None
    return Request(COMPLETIONS, {"prompt": "p"}, expect=expect, recipe=recipe)


def test_kind_and_status_of_every_answered_request() -> None:
    probe = Probe(
        "mixed",
        ((request(SHORT, "4"),), (request(LONG, LONG.answer), request(None)), (request(SHORT, "4"),)),
    )
    answers = (
        Answer(200, "4", prompt_tokens=9, completion_tokens=1, seconds=0.25),
        Answer(200, "no idea"),
        Answer(200, "well"),
        Answer(500, failure="http_error"),
    )
    verdict = Verdict(asked=[Asked(probe, answers, Judgement("right", ""))])
    results = request_results(verdict)
    assert [replace(one, asked="") for one in results] == [
        RequestResult("question", "right", 9, 1, None, 0.25, 1),
        RequestResult("long_prompt", "missed", at_once=2, size=500),
        RequestResult("other", "answered", at_once=2),
        RequestResult("question", "failed"),
    ]
    assert results[0].asked == results[3].asked


def test_what_was_answered_before_the_engine_died_is_kept_and_the_request_under_way_is_the_failed_one() -> (
    None
):
    probe = Probe("cold", ((request(LONG, LONG.answer),),), preceding=((request(SHORT, "4"),),))
    verdict = Verdict(failed_probe=probe, failed_request=1, partial=[Answer(200, "4")])
    assert [(one.kind, one.status) for one in request_results(verdict)] == [
        ("question", "right"),
        ("long_prompt", "failed"),
    ]


def test_a_trial_whose_engine_never_got_ready_has_no_requests() -> None:
    assert request_results(Verdict()) == ()
