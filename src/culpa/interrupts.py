"""Work that SIGINT and SIGTERM cut off cleanly: what it holds is let go, and what was seen can still be told."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def until_interrupted(
    work: Coroutine[Any, Any, T], *, ignore_after: bool = False
) -> tuple[T | None, bool]:
    """What the work gives, and whether a signal cut it off; then there is nothing.

    A signal cancels the work and waits for it; a second one changes nothing, since it is being ended already. With
    `ignore_after` signals stay without effect from then on, so that the result is written in any case.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    asked_to_stop = False

    def stop() -> None:
        nonlocal asked_to_stop
        if not asked_to_stop:
            asked_to_stop = True
            task.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        return await task, False
    except asyncio.CancelledError:
        if not asked_to_stop:
            raise
        return None, True
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            if ignore_after:
                signal.signal(number, signal.SIG_IGN)
