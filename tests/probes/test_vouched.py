"""What the model is seen to know, it must go on to know."""

from culpa.probes import Answer, Expectation, Probe, Request, judge
from culpa.probes.request import COMPLETIONS


def asked(prompt: str, answer: str) -> Request:
    return Request(COMPLETIONS, {"prompt": prompt}, expect=Expectation(answer))


PROBE = Probe("cold", ((asked("a", "1"),),), preceding=((asked("b", "2"),),))


def test_missing_an_answer_that_is_vouched_for_is_wrong_even_if_it_only_precedes() -> None:
    answers = (Answer(200, "nothing"), Answer(200, "1"))
    sure = PROBE.vouched(lambda request: request.question == "b")
    assert judge(PROBE, answers).status == "right"
    assert judge(sure, answers).status == "wrong"


def test_what_is_not_vouched_for_stays_uncertain() -> None:
    answers = (Answer(200, "2"), Answer(200, "nothing"))
    sure = PROBE.vouched(lambda request: request.question == "b")
    assert judge(sure, answers).status == "unknown"
