"""Recorded requests keep their order, their overlap and their cancellations when they are sent again."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.probes import Answer, Request, Span, given_up, overlap, paced


def log_of(
    spans: list[Span], steps: Callable[[int], int] = lambda place: 1 + place % 5
) -> list[tuple[str, int]]:
    """What went out and what ended, in order; a request takes a few turns of the loop."""
    log: list[tuple[str, int]] = []

    async def send(place: int) -> int:
        log.append(("sent", place))
        for _ in range(steps(place)):
            await asyncio.sleep(0)
        log.append(("ended", place))
        return place

    came = asyncio.run(paced(spans, 0.0, send))
    assert came == list(range(len(spans)))
    return log


def test_a_request_waits_for_what_had_ended_before_it() -> None:
    log = log_of([Span(0, 1), Span(2, 3), Span(4, 5)], lambda place: 50)
    assert log == [(kind, place) for place in range(3) for kind in ("sent", "ended")]


def test_requests_that_overlapped_overlap_again() -> None:
    log = log_of([Span(0, 10), Span(1, 9), Span(2, 8)], lambda place: 50)
    assert log[:3] == [("sent", 0), ("sent", 1), ("sent", 2)]


def test_nobody_waits_for_a_request_whose_end_was_not_seen() -> None:
    log = log_of([Span(0, None), Span(5, 6)], lambda place: 1000 if place == 0 else 1)
    assert log[:3] == [("sent", 0), ("sent", 1), ("ended", 1)]


def test_the_clock_is_kept_where_a_speed_is_asked_for() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        at: list[float] = []

        async def send(_: int) -> None:
            at.append(loop.time())

        await paced([Span(7.0, 7.0), Span(7.2, 7.2), Span(7.3, 7.3)], 2.0, send)
        return at

    at = asyncio.run(main())
    assert at[1] - at[0] >= 0.099
    assert at[2] - at[0] >= 0.149


spans = st.lists(
    st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 10))).map(
        lambda pair: Span(float(pair[0]), None if pair[1] is None else float(pair[0] + pair[1]))
    ),
    min_size=1,
    max_size=12,
)


@given(spans)
@settings(max_examples=60, deadline=None)
def test_order_and_ends_are_kept_whatever_the_spans(spans: list[Span]) -> None:
    log = log_of(spans)
    sent = [place for kind, place in log if kind == "sent"]
    assert all(spans[one].start <= spans[other].start for one, other in pairwise(sent))
    for place, span in enumerate(spans):
        for other, earlier in enumerate(spans):
            if (
                other != place
                and earlier.end is not None
                and earlier.end <= span.start
                and earlier.start < span.start
            ):
                assert log.index(("ended", other)) < log.index(("sent", place))


@given(spans)
@settings(max_examples=60, deadline=None)
def test_no_more_requests_are_under_way_than_were(spans: list[Span]) -> None:
    under_way = most = 0
    for kind, _ in log_of(spans):
        under_way += 1 if kind == "sent" else -1
        most = max(most, under_way)
    # Requests that began and ended at the same moment may follow each other or not.
    instant = sum(span.end == span.start for span in spans)
    assert most <= overlap(tuple(Request("/", {}, span=span) for span in spans)) + instant


async def endless(on_tokens: Callable[[int], None]) -> Answer:
    while True:
        on_tokens(1)
        await asyncio.sleep(0)


def test_a_request_is_given_up_after_as_many_pieces_as_its_client_had() -> None:
    seen = []

    async def counted(on_tokens: Callable[[int], None]) -> Answer:
        def both(count: int) -> None:
            seen.append(count)
            on_tokens(count)

        return await endless(both)

    answer = asyncio.run(given_up(Span(0, 1, given_up=True, pieces=7), 1.0, counted))
    assert answer.given_up
    assert not answer.failed
    assert 7 <= sum(seen) <= 9


def test_a_request_is_given_up_after_its_time_where_its_client_had_nothing() -> None:
    async def silent(_: Callable[[int], None]) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    assert asyncio.run(given_up(Span(0, 0.02, given_up=True), 1.0, silent)).given_up


def test_an_answer_that_is_whole_in_time_is_whole() -> None:
    async def quick(_: Callable[[int], None]) -> Answer:
        return Answer(status=200, text="Paris")

    assert asyncio.run(given_up(Span(0, 60, given_up=True, pieces=9), 1.0, quick)).text == "Paris"
