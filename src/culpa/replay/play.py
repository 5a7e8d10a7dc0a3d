"""Asks recorded requests again of an engine that runs already, and lays what comes beside what came."""

import asyncio
import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from culpa.counters import TokenCounters
from culpa.probes import Answer, Endpoint, Span, given_up, paced
from culpa.probes.pacing import OnTokens
from culpa.session import Patience
from culpa.target import COUNTERS, Running
from culpa.traffic import Recorded, Replayed, compared, spans_of

_LOOK_SECONDS: Final = 0.1
# So many refused connections in a row mean that nobody listens any more.
_GONE_AFTER: Final = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the requests go, and how. `speed` as in `Probe`; `model` replaces the name in bodies that are JSON;
    `pause` cuts longer pauses, in seconds (None: none); `patience` is how long nothing may come, in seconds."""

    endpoint: str
    model: str = ""
    api_key: str | None = None
    speed: float = 1.0
    pause: float | None = None
    patience: float = 600.0


@dataclass(frozen=True, slots=True)
class Now:
    """How far a replay is."""

    requests: int
    sent: int
    answered: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Played:
    """A replay: what came of each request, in their order; `hung` is True if nothing came any more."""

    requests: tuple[Replayed, ...]
    seconds: float
    hung: bool = False
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether the engine failed at any request."""
        return self.hung or any(one.failed for one in self.requests)

    @property
    def differing(self) -> int:
        """How many answers at temperature 0 have another text."""
        return sum(one.verdict == "differs" for one in self.requests)


class _Play:
    def __init__(self, requests: Sequence[Recorded], spans: Sequence[Span], wanted: Wanted) -> None:
        headers = {"Authorization": f"Bearer {wanted.api_key}"} if wanted.api_key else None
        self.endpoint = Endpoint(wanted.endpoint, headers=headers)
        self.requests = requests
        self.spans = spans
        self.wanted = wanted
        self.answers: dict[int, Answer] = {}
        self.sent = 0
        self.last = time.monotonic()
        self.gone = asyncio.Event()
        self._refused = 0

    async def one(self, place: int) -> None:
        """Ask one request, unless nobody is there any more."""
        if self.gone.is_set():
            return
        self.sent += 1
        self.last = time.monotonic()
        span = self.spans[place]

        async def send(on_pieces: OnTokens) -> Answer:
            def both(count: int) -> None:
                self.last = time.monotonic()
                on_pieces(count)

            request = self.requests[place]
            path = "/" + request.path.lstrip("/")  # two slashes would name another host
            content = _with_model(request.content.read(), self.wanted.model)
            headers = _headers(request)
            return await self.endpoint.post(path, content, both, headers=headers, method=request.method)

        if span.given_up:
            answer = await given_up(span, self.wanted.speed, send)
        else:
            answer = await send(lambda _: None)
        self.last = time.monotonic()
        self.answers[place] = answer
        self._refused = self._refused + 1 if answer.failure == "not_connected" else 0
        if self._refused >= _GONE_AFTER:
            self.gone.set()


async def play(
    requests: Sequence[Recorded], wanted: Wanted, tell: Callable[[Now], None] = lambda _: None
) -> Played:
    """Ask all requests in their order and at their times. Raises Unreachable before the first one is sent.

    Cancelling gives what came until then.
    """
    target = Running(wanted.endpoint, wanted.model, wanted.api_key, Patience())
    try:
        await target.connect()
    finally:
        await target.close()
    pause = wanted.pause if wanted.pause is not None else float("inf")
    began = time.monotonic()
    run = _Play(requests, spans_of(requests, pause), wanted)
    counters = TokenCounters(wanted.endpoint.rstrip("/").removesuffix("/v1"), COUNTERS, wanted.api_key)
    follower = asyncio.ensure_future(counters.follow())
    task = asyncio.ensure_future(paced(run.spans, wanted.speed, run.one, run.gone))
    hung = interrupted = False
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOK_SECONDS)
            tell(Now(len(requests), run.sent, len(run.answers), time.monotonic() - began))
            waiting = run.sent > len(run.answers)
            quiet = time.monotonic() - max(run.last, counters.moved_at or 0.0)
            if waiting and quiet > wanted.patience:
                hung = True
                break
        else:
            task.result()
    except asyncio.CancelledError:
        interrupted = True
    finally:
        for one in (task, follower):
            one.cancel()
        await asyncio.gather(task, follower, return_exceptions=True)
        await run.endpoint.close()
    if hung:
        for place in range(run.sent):
            run.answers.setdefault(
                place, Answer(failure="connection_lost", error=f"nothing came for {wanted.patience:.0f} s")
            )
    found = tuple(compared(one, run.answers.get(place)) for place, one in enumerate(requests))
    return Played(found, round(time.monotonic() - began, 3), hung, interrupted)


def _headers(request: Recorded) -> Mapping[str, str]:
    named = {"content-type": request.content_type, "content-encoding": request.packed}
    return {name: value for name, value in named.items() if value}


def _with_model(content: bytes, model: str) -> bytes:
    """The body with another model's name in it, where it is JSON that names one; else untouched."""
    if not model:
        return content
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content
    if not isinstance(body, dict) or body.get("model") in (None, model):
        return content
    return json.dumps({**body, "model": model}).encode("ascii")


def played(requests: Sequence[Recorded], wanted: Wanted, tell: Callable[[Now], None]) -> Played:
    """`play` from outside of a loop; SIGINT and SIGTERM give what came until then."""

    async def main() -> Played:
        task = asyncio.ensure_future(play(requests, wanted, tell))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        return await task

    return asyncio.run(main())
