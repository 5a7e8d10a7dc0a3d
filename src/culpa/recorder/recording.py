"""Puts a recording together: ring, proxy and watch, until the engine dies or somebody ends it."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from culpa.host import port_owner
from culpa.recorder.proxy import Counts, Proxy
from culpa.recorder.ring import Keep, Ring
from culpa.recorder.shapes import Shaper
from culpa.recorder.watch import State, Watch
from culpa.traffic import BadRecording

UPSTREAM_DIED: Final = "upstream died"
STOPPED: Final = "stopped"
# How long requests under way may go on after somebody ended the recording.
_DRAIN_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be recorded. `wait` is how long the engine may take to listen, in seconds."""

    upstream: str
    host: str
    port: int
    folder: Path
    keep: Keep
    shapes: bool = False
    wait: float = 0.0
    most_body: int = 256 << 20


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a recording ended. `kept` requests are in the ring, `open` of them without an answer."""

    folder: Path
    reason: str
    detail: str
    counts: Counts
    kept: int
    open: int
    bytes: int
    seconds: float

    @property
    def died(self) -> bool:
        """Whether the engine's end was the recording's."""
        return self.reason == UPSTREAM_DIED


@dataclass(frozen=True, slots=True)
class Now:
    """A recording under way, for whoever shows it."""

    upstream: State
    counts: Counts
    kept: int
    bytes: int
    seconds: float


Tell = Callable[[Now], None]


def record(wanted: Wanted, started: Callable[[Wanted], None], tell: Tell) -> Recorded:
    """Record until the engine dies, or until SIGINT or SIGTERM.

    `started` is called when connections are taken, `tell` several times a second. Raises BadRecording where it can't
    begin.
    """
    try:
        import uvloop
    except ImportError:  # no wheel for this platform: the loop of the standard library is slower, not wrong
        return asyncio.run(_record(wanted, started, tell))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_record(wanted, started, tell))


async def _record(wanted: Wanted, started: Callable[[Wanted], None], tell: Tell) -> Recorded:
    from aiohttp import web

    # What breaks off is counted and told; the library's own words about each connection are not wanted.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    ended: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    def end(reason: str, detail: str = "") -> None:
        if not ended.done():
            ended.set_result((reason, detail))

    watch = Watch(wanted.upstream, lambda said: end(UPSTREAM_DIED, said))
    await _wait_for_the_engine(watch, wanted)
    owner = port_owner(wanted.port) if wanted.port else None
    if owner is not None:
        raise BadRecording(f"--listen: port {wanted.port} is taken by {owner}")
    began = time.monotonic()

    def clock() -> float:
        return time.monotonic() - began

    about = {"upstream": _without_user(wanted.upstream), "mode": "shapes" if wanted.shapes else "bodies"}
    ring = Ring(wanted.folder, wanted.keep, about)
    shape = Shaper().shape if wanted.shapes else None
    proxy = Proxy(
        wanted.upstream, ring, clock=clock, on_lost=watch.lost, shape=shape, most_body=wanted.most_body
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, STOPPED, signal.Signals(number).name)
    watching = asyncio.ensure_future(watch.run())
    async with proxy:
        runner = web.ServerRunner(
            web.Server(
                proxy.handle,
                handler_cancellation=True,
                access_log=None,
                auto_decompress=False,
                max_line_size=1 << 16,
                max_field_size=1 << 16,
            ),
            handle_signals=False,
            shutdown_timeout=0.5,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, wanted.host, wanted.port, backlog=4096)
            try:
                await site.start()
            except OSError as error:
                raise BadRecording(
                    f"--listen {wanted.host}:{wanted.port}: {error.strerror or error}"
                ) from None
            started(wanted)
            while not ended.done():
                tell(Now(watch.state, proxy.counts, ring.kept, ring.size, clock()))
                await asyncio.wait({ended}, timeout=_LOOK_SECONDS)
            reason, detail = ended.result()
            await site.stop()
            await _drained(proxy, 1.0 if reason == UPSTREAM_DIED else _DRAIN_SECONDS)
            # What is still under way now stays without an answer in the ring.
            seconds, still_open = clock(), ring.open
            with suppress(OSError):  # a disk that is full: what is there can be read without the seal
                ring.seal(seconds, reason, detail)
        finally:
            watching.cancel()
            await runner.cleanup()
    return Recorded(
        wanted.folder,
        reason,
        detail,
        proxy.counts,
        ring.kept,
        still_open + proxy.counts.lost,
        ring.size,
        seconds,
    )


async def _wait_for_the_engine(watch: Watch, wanted: Wanted) -> None:
    until = time.monotonic() + wanted.wait
    while True:
        state, said = await watch.look()
        if state == "up":
            return
        if time.monotonic() >= until:
            raise BadRecording(
                f"--upstream {_without_user(wanted.upstream)}: nothing answers there ({said}); start the engine "
                "first, or give --wait 10m"
            )
        await asyncio.sleep(_LOOK_SECONDS)


async def _drained(proxy: Proxy, seconds: float) -> None:
    """Wait until nothing is under way, at most so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await proxy.idle.wait()


def _without_user(url: str) -> str:
    """The address without a name and password in it."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
