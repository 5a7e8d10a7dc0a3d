"""A workload with fewer requests, and prompts with less in them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from culpa.probes import LongPrompt, Probe, Request, Round

# A word that most vocabularies hold as one token, and that byte-level ones cut into letters like any other.
FILL = "the "
_MOST_UNITS = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: in which of all rounds, and where in that one."""

    round: int
    index: int


def places(probe: Probe) -> tuple[Place, ...]:
    """The places of all requests, in order."""
    return tuple(
        Place(number, index) for number, one in enumerate(probe.asked()) for index in range(len(one))
    )


def only(probe: Probe, kept: Sequence[Place]) -> Probe:
    """The workload with these requests alone, in the same rounds; rounds that are empty now are gone."""
    wanted = set(kept)
    rounds: list[Round] = []
    preceding: list[Round] = []
    for number, one in enumerate(probe.asked()):
        left = tuple(request for index, request in enumerate(one) if Place(number, index) in wanted)
        if left:
            (preceding if number < len(probe.preceding) else rounds).append(left)
    if not rounds:  # what came before is the workload, then
        rounds, preceding = preceding, []
    cache = None if len(wanted) == 1 and probe.cache == "warm" else probe.cache
    return replace(probe, rounds=tuple(rounds), preceding=tuple(preceding), cache=cache)


def plainer_timing(probe: Probe) -> Iterator[tuple[str, Probe]]:
    """The same requests one after the other, and those that were recorded with their times all at once."""
    flat = tuple(replace(request, span=None) for one in probe.rounds for request in one)
    before = tuple((replace(request, span=None),) for one in probe.preceding for request in one)
    single = replace(probe, rounds=tuple((request,) for request in flat), preceding=before)
    if single != probe:
        yield "one after the other", single
    together = replace(probe, rounds=(flat,), preceding=before)
    if any(request.span is not None for request in probe.requests()) and together != single:
        yield "all at once", together


def longest(probe: Probe) -> Place | None:
    """The place of the request with the most text in its prompt, None where no prompt is text."""
    found = [
        (len(request.question), place) for place, request in zip(places(probe), probe.requests(), strict=True)
    ]
    length, place = max(found, key=lambda item: item[0], default=(0, None))
    return place if length else None


def with_request(probe: Probe, place: Place, request: Request) -> Probe:
    """The workload with another request at a place, and wherever the same one stands."""
    old = probe.asked()[place.round][place.index].canonical()

    def changed(rounds: Sequence[Round]) -> tuple[Round, ...]:
        return tuple(tuple(request if one.canonical() == old else one for one in each) for each in rounds)

    return replace(probe, rounds=changed(probe.rounds), preceding=changed(probe.preceding))


def one_word_again_and_again(request: Request) -> Request | None:
    """The request with a prompt as long that says nothing, None where it can't or need not be: what is expected of
    the answer would be lost."""
    length = len(request.question)
    if request.expect is not None or length < 4 * len(FILL):
        return None
    text = (FILL * (length // len(FILL) + 1))[:length].rstrip()
    return None if text == request.question else with_text(request, text)


def without_expectation(probe: Probe) -> Probe:
    """The workload whose answers may say what they like: for failures that do not lie in the answers."""

    def free(rounds: Sequence[Round]) -> tuple[Round, ...]:
        return tuple(tuple(replace(request, expect=None) for request in one) for one in rounds)

    return replace(probe, rounds=free(probe.rounds), preceding=free(probe.preceding))


def with_text(request: Request, text: str) -> Request:
    """The request with one prompt text in place of all that was there."""
    body: dict[str, Any] = dict(request.body)
    if isinstance(body.get("messages"), list):
        body["messages"] = [{"role": "user", "content": text}]
    elif "prompt" in body:
        body["prompt"] = text
    else:
        body["input"] = text
    return replace(request, body=body, recipe=None)


def units_of(request: Request) -> tuple[str, ...]:
    """The prompt in pieces that may be left out: messages, else lines, sentences or words, at most 64 of about the
    same length. Empty where there is nothing to cut: a synthetic prompt, or one that is no text."""
    messages = request.body.get("messages")
    if isinstance(messages, list) and len(messages) > 1:
        return ()
    if isinstance(request.recipe, LongPrompt) and request.expect is not None:
        return ()  # its record must stay; it is cut by its length
    text = request.question
    for pattern in (r"(?<=\n)", r"(?<=[.!?;])\s+", r"\s+"):
        pieces = _rejoined(text, pattern)
        if len(pieces) >= 8:
            return _even(pieces)
    return ()


def messages_of(request: Request) -> tuple[Mapping[str, Any], ...]:
    """The messages of a conversation that may be left out: all but the last."""
    messages = request.body.get("messages")
    return tuple(messages[:-1]) if isinstance(messages, list) else ()


def with_messages(request: Request, kept: Sequence[Mapping[str, Any]]) -> Request:
    """The request with these messages before its last one."""
    messages = request.body["messages"]
    return replace(request, body={**request.body, "messages": [*kept, messages[-1]]}, recipe=None)


def _rejoined(text: str, pattern: str) -> list[str]:
    """The text cut behind each match, so that the pieces put together are the text."""
    ends = [match.end() for match in re.finditer(pattern, text)]
    cuts = [0, *[end for end in ends if 0 < end < len(text)], len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if b > a]


def _even(pieces: Sequence[str]) -> tuple[str, ...]:
    """At most so many pieces, neighbours put together."""
    if len(pieces) <= _MOST_UNITS:
        return tuple(pieces)
    step = -(-len(pieces) // _MOST_UNITS)
    return tuple("".join(pieces[at : at + step]) for at in range(0, len(pieces), step))
