"""Sends recorded requests again: in their order, with their overlap, at their times, given up as they were."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from culpa.probes.answer import Answer
from culpa.probes.request import Span

Came = TypeVar("Came")
OnTokens = Callable[[int], None]


async def paced(
    spans: Sequence[Span],
    speed: float,
    send: Callable[[int], Awaitable[Came]],
    hurry: asyncio.Event | None = None,
) -> list[Came]:
    """What came of each, in the order of `spans`; `send` is called with the place of a request when it is its turn.

    A request goes out after all that went out before it, and after all that had ended before it began, so no more
    requests overlap than did. With a `speed` above 0 it also waits for its time, counted from the first one and
    divided by the speed. One whose end was not seen keeps nobody waiting. If one raises, all are cancelled.
    Once `hurry` is set nobody waits for the clock any more.
    """
    order = sorted(range(len(spans)), key=lambda place: spans[place].start)
    # What ended at the moment at which it began comes last among the ends of that moment: it holds up nobody there.
    ends = sorted((span.end, span.start, place) for place, span in enumerate(spans) if span.end is not None)
    loop = asyncio.get_running_loop()
    tasks: dict[int, asyncio.Task[Came]] = {}
    waited = 0
    began = loop.time()
    origin = spans[order[0]].start if order else 0.0
    async with asyncio.TaskGroup() as group:
        for place in order:
            start = spans[place].start
            while waited < len(ends) and ends[waited][0] <= start and ends[waited][1] < start:
                earlier = tasks[ends[waited][2]]
                if not earlier.done():
                    await asyncio.wait((earlier,))
                waited += 1
            if speed > 0:
                await _until(began + (start - origin) / speed, hurry)
            tasks[place] = group.create_task(_call(send, place))
            await asyncio.sleep(0)  # it gets its connection before the next one
    return [tasks[place].result() for place in range(len(spans))]


async def _until(moment: float, hurry: asyncio.Event | None) -> None:
    left = moment - asyncio.get_running_loop().time()
    if hurry is None:
        await asyncio.sleep(max(0.0, left))
    elif left > 0 and not hurry.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await hurry.wait()


async def _call(send: Callable[[int], Awaitable[Came]], place: int) -> Came:
    return await send(place)


async def given_up(span: Span, speed: float, send: Callable[[OnTokens], Awaitable[Answer]]) -> Answer:
    """The answer to a request whose client gave it up: dropped after as many pieces as that client had, or after as
    long where it had none. An answer that is whole before that is whole."""
    enough = asyncio.Event()
    seen = 0

    def on_tokens(count: int) -> None:
        nonlocal seen
        seen += count
        if 0 < span.pieces <= seen:
            enough.set()

    patience = None
    if not span.pieces and span.end is not None:
        patience = (span.end - span.start) / (speed or 1.0)
    task = asyncio.ensure_future(send(on_tokens))
    waiter = asyncio.ensure_future(enough.wait())
    try:
        await asyncio.wait({task, waiter}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        return Answer(given_up=True)
    finally:
        task.cancel()
        waiter.cancel()
        await asyncio.gather(task, waiter, return_exceptions=True)
