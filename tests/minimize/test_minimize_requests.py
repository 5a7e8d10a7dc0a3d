"""A workload with fewer requests, and prompts with less in them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.minimize import requests as ask
from culpa.probes import Expectation, Probe, Request, Span
from culpa.probes.request import CHAT, COMPLETIONS


def request(text: str, **fields: object) -> Request:
    return Request(COMPLETIONS, {"prompt": text, **fields})


def chat(*texts: str) -> Request:
    return Request(CHAT, {"messages": [{"role": "user", "content": text} for text in texts]})


PROBE = Probe("p", ((request("a"), request("b")), (request("c"),)), preceding=((request("z"),),))


def texts(probe: Probe) -> list[list[str]]:
    return [[one.question for one in each] for each in probe.asked()]


def test_requests_that_are_kept_stay_in_their_rounds() -> None:
    places = ask.places(PROBE)
    assert texts(ask.only(PROBE, [places[0], places[2], places[3]])) == [["z"], ["b"], ["c"]]


def test_all_requests_kept_are_the_same_workload() -> None:
    assert ask.only(PROBE, ask.places(PROBE)) == PROBE


def test_what_came_before_is_the_workload_where_nothing_else_is_left() -> None:
    left = ask.only(PROBE, ask.places(PROBE)[:1])
    assert (texts(left), left.preceding) == ([["z"]], ())


def test_requests_at_once_can_be_asked_one_after_the_other() -> None:
    assert [(text, texts(one)) for text, one in ask.plainer_timing(PROBE)] == [
        ("one after the other", [["z"], ["a"], ["b"], ["c"]])
    ]


def test_recorded_times_can_go_too() -> None:
    spans = [Span(0.0, 2.0), Span(1.0, 3.0)]
    requests = tuple(replace(request(text), span=span) for text, span in zip("ab", spans, strict=True))
    plainer = dict(ask.plainer_timing(Probe("p", (requests,))))
    assert texts(plainer["one after the other"]) == [["a"], ["b"]]
    assert texts(plainer["all at once"]) == [["a", "b"]]
    assert all(one.span is None for probe in plainer.values() for one in probe.requests())


def test_a_prompt_of_one_word_is_as_long() -> None:
    plain = ask.one_word_again_and_again(request("some text that says a lot of things"))
    assert plain is not None
    assert abs(len(plain.question) - 35) <= len(ask.FILL)
    assert set(plain.question.split()) <= {"the", "t", "th"}


@pytest.mark.parametrize(
    "one",
    [
        request("short"),
        Request(COMPLETIONS, {"prompt": "x " * 99}, expect=Expectation(contains="x")),
        Request(COMPLETIONS, {"prompt": [1, 2, 3]}),
    ],
)
def test_a_prompt_that_has_to_say_something_is_left_alone(one: Request) -> None:
    assert ask.one_word_again_and_again(one) is None


@given(st.text(alphabet="ab .!?\n", min_size=0, max_size=3000))
def test_pieces_put_together_are_the_prompt(text: str) -> None:
    units = ask.units_of(request(text))
    assert len(units) <= 64
    assert not units or "".join(units) == text


def test_messages_before_the_last_can_go() -> None:
    one = chat("a", "b", "c")
    assert len(ask.messages_of(one)) == 2
    left = ask.with_messages(one, ask.messages_of(one)[1:])
    assert [message["content"] for message in left.body["messages"]] == ["b", "c"]


def test_the_longest_prompt_is_the_one_to_shorten() -> None:
    probe = Probe("p", ((request("a"), request("longer")),))
    assert ask.longest(probe) == ask.Place(0, 1)


def test_a_changed_request_is_changed_wherever_it_stands() -> None:
    probe = Probe("p", ((request("a"), request("b")), (request("a"),)))
    assert texts(ask.with_request(probe, ask.Place(0, 0), request("x"))) == [["x", "b"], ["x"]]
