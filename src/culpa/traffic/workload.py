"""Recorded requests as a workload that keeps their order, overlap and cancellations."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from culpa.probes import Probe, Request, Span
from culpa.probes.responses import Collector, event_data
from culpa.traffic.recorded import Recorded

# An engine with nothing to do learns nothing from a pause: longer ones are cut to this, in seconds.
LONGEST_PAUSE = 5.0


def probe_from(
    requests: Sequence[Recorded],
    *,
    name: str = "recorded",
    speed: float = 1.0,
    longest_pause: float = LONGEST_PAUSE,
    contents: bool | None = None,
) -> Probe:
    """The workload of recorded requests: one round, each request with the span in which it was under way.

    Pauses in which nothing was under way are cut to `longest_pause` seconds. `speed` as in `Probe`. Requests whose
    body is no JSON object can't be asked as probes and are left out (see `askable`). `contents` says whether answers
    are judged by their text; by default only where every request got an answer when it was recorded: else the
    failure is that the engine died or hung, and a model's odd answers are not it. Raises BadRecording, and
    ValueError for nothing to ask.
    """
    asked = []
    for one, span in zip(requests, spans_of(requests, longest_pause), strict=True):
        body = one.body()
        if askable(one) and body is not None:
            asked.append(Request(one.path, body, span=span))
    if not asked:
        raise ValueError("none of the recorded requests is a POST of a JSON object")
    judged = not any(one.failed for one in requests) if contents is None else contents
    many = f"{len(asked)} recorded request{'s' if len(asked) > 1 else ''}"
    return Probe(name, (tuple(asked),), source="user", description=many, speed=speed, contents=judged)


def askable(one: Recorded) -> bool:
    """Whether a request can be asked as a probe: a POST of a JSON object."""
    return one.method == "POST" and one.body() is not None


def spans_of(requests: Sequence[Recorded], longest_pause: float = LONGEST_PAUSE) -> list[Span]:
    """When each request was under way, from 0 on, with long pauses cut."""
    shifts = _shifts(requests, longest_pause)
    return [
        Span(
            start=one.at - shift,
            end=None if one.ended is None or one.open else max(one.at, one.ended) - shift,
            given_up=one.outcome == "cancelled",
            pieces=_pieces(one) if one.outcome == "cancelled" else 0,
            status=one.status if one.outcome == "answered" else None,
        )
        for one, shift in zip(requests, shifts, strict=True)
    ]


def _pieces(one: Recorded) -> int:
    """Pieces of text that a client had: the first event of a chat's stream holds none."""
    text = one.response_text()
    if text is None:
        return max(0, one.pieces - ("/chat/" in one.path))
    collector = Collector()
    lines = text.split("\n")
    for line in lines[:-1]:  # the last one may be cut
        data = event_data(line.rstrip("\r"))
        if data is not None and data != "[DONE]" and not collector.broken:
            collector.feed(data, "an event")
    return collector.pieces


def _shifts(requests: Sequence[Recorded], longest_pause: float) -> list[float]:
    """By how much each request is brought forward. One that began before a pause also ended before it."""
    order = sorted(range(len(requests)), key=lambda place: requests[place].at)
    shifts = [0.0] * len(requests)
    shift = requests[order[0]].at if order else 0.0
    busy_until = shift
    for place in order:
        one = requests[place]
        shift += max(0.0, one.at - busy_until - longest_pause)
        shifts[place] = shift
        # One without an end was under way when the recording ended, or the engine: no pause can be told from then on.
        end = one.ended if one.ended is not None and not one.open else one.at
        busy_until = max(busy_until, end, one.at)
    return shifts


def renumbered(requests: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """The requests with their places in this selection."""
    return tuple(replace(one, index=index) for index, one in enumerate(requests))
