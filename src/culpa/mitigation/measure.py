"""One launch of one configuration, measured: it is started, asked the workload, and ended."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from culpa.engines.base import EngineAdapter
from culpa.mitigation.workload import Workload
from culpa.model import Configuration, Launch
from culpa.model.mitigation import Metric
from culpa.model.redact import printable, redact
from culpa.probes import Answer, Endpoint, Limits, Probe, Reference, Request, ask, judge
from culpa.session import EngineSession, Failed, Patience, Unanswerable
from culpa.start import Starter

_GRACE = 5.0
_CACHE = "kv_cache_tokens"
#: A field that some engines refuse: then the answers end where the model ends them.
_IGNORE_EOS = "ignore_eos"


@dataclass(frozen=True, slots=True)
class Launched:
    """What one launch told: its metrics, or why it told none. `asked` is what became of the failing requests, if they
    were asked: `passed`, or what happened. `requests` counts those of them that were answered, or all that were asked
    where the failing launch fails before any. `ready` is False if it never got so far as to be asked."""

    sample: dict[Metric, float] | None
    problem: str = ""
    failed: bool = False
    ready: bool = True
    asked: str = ""
    asked_passed: bool | None = None
    requests: int = 0


@dataclass(frozen=True, slots=True)
class _Timed:
    """One answer with the moments at which its pieces came, in seconds from sending."""

    answer: Answer
    pieces: tuple[float, ...]


class Bench:
    """Measures configurations of one launch, one engine at a time."""

    def __init__(
        self, starter: Starter, adapter: EngineAdapter, launch: Launch, patience: Patience, folder: Path
    ) -> None:
        self._starter = starter
        self._adapter = adapter
        self._launch = launch
        self._patience = patience
        self._folder = folder
        self._plain: set[str] = set()  # fields that this engine refuses

    async def measure(
        self,
        levels: Configuration,
        name: str,
        workload: Workload,
        hunted: Probe | None = None,
        reference: Reference | None = None,
    ) -> Launched:
        """Start the launch at these levels and ask the workload; then, if given, the failing requests."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        session = await self._starter.start(self._launch, levels, folder)
        if isinstance(session, Unanswerable):
            return Launched(None, session.reason)
        try:
            ended = await session.wait_until_ready(lambda _: None)
            if ended is not None:
                return Launched(None, _said(ended), failed=isinstance(ended, Failed), ready=False)
            differs = self._adapter.mismatches(levels, session.effective)
            if differs:
                return Launched(None, f"it is not what it claims: {'; '.join(differs)}")
            limits = self._adapter.limits(session.api, session.effective)
            headers = {"Authorization": f"Bearer {session.api_key}"} if session.api_key else None
            async with Endpoint(session.base_url, limits.model, headers=headers) as endpoint:
                return await self._asked(session, endpoint, limits, workload, hunted, reference)
        finally:
            await session.close(_GRACE)

    async def _asked(
        self,
        session: EngineSession,
        endpoint: Endpoint,
        limits: Limits,
        workload: Workload,
        hunted: Probe | None,
        reference: Reference | None,
    ) -> Launched:
        for field in self._plain:
            workload = workload.without(field)
        warm = await self._send(session, endpoint, workload.alone[:1])
        if isinstance(warm, str):
            return Launched(None, warm, failed=True)
        if warm[0].answer.refused and _IGNORE_EOS not in self._plain:
            self._plain.add(_IGNORE_EOS)
            return await self._asked(session, endpoint, limits, workload, hunted, reference)
        alone: list[_Timed] = []
        for request in workload.alone:
            came = await self._send(session, endpoint, (request,))
            if isinstance(came, str):
                return Launched(None, came, failed=True)
            alone += came
        began = time.monotonic()
        together = await self._send(session, endpoint, workload.at_once)
        seconds = time.monotonic() - began
        if isinstance(together, str):
            return Launched(None, together, failed=True)
        bad = next((one.answer for one in (*alone, *together) if one.answer.failed), None)
        if bad is not None:
            return Launched(
                None,
                f"a request was not answered: {_line(bad.error or bad.nan or '')}",
                failed=not bad.refused,
            )
        sample = _metrics(alone, together, seconds, session.effective.get(_CACHE))
        told = Launched(sample, requests=1 + len(alone) + len(together))
        return await self._with_hunted(told, session, endpoint, hunted, reference)

    async def _with_hunted(
        self,
        told: Launched,
        session: EngineSession,
        endpoint: Endpoint,
        hunted: Probe | None,
        reference: Reference | None,
    ) -> Launched:
        if hunted is None:
            return told
        last = time.monotonic()

        def progressed(_: object) -> None:
            nonlocal last
            last = time.monotonic()

        came = await session.watch(
            ask(hunted, endpoint, progressed), stall=self._patience.stall, last_token_at=lambda: last
        )
        if isinstance(came, Failed | Unanswerable):
            return Launched(told.sample, asked=_said(came), asked_passed=False)
        judged = judge(hunted, came, reference)
        if judged.status == "wrong":
            said = _line(judged.evidence)
            return Launched(told.sample, asked=said, asked_passed=False)
        return Launched(told.sample, asked="passed", asked_passed=True, requests=len(came))

    async def _send(
        self, session: EngineSession, endpoint: Endpoint, requests: Sequence[Request]
    ) -> list[_Timed] | str:
        """The answers with their times, or how the engine failed meanwhile."""
        last = time.monotonic()

        async def one(request: Request) -> _Timed:
            pieces: list[float] = []
            began = time.monotonic()

            def on_tokens(_: int) -> None:
                nonlocal last
                last = time.monotonic()
                pieces.append(last - began)

            answer = await endpoint.send(request, on_tokens)
            return _Timed(answer, tuple(pieces))

        async def all_of_them() -> list[_Timed]:
            return list(await asyncio.gather(*(one(request) for request in requests)))

        came = await session.watch(all_of_them(), stall=self._patience.stall, last_token_at=lambda: last)
        return _said(came) if isinstance(came, Failed | Unanswerable) else came


def _metrics(
    alone: Sequence[_Timed], together: Sequence[_Timed], seconds: float, cache: str | None
) -> dict[Metric, float]:
    """The metrics that can be told of these answers."""
    found: dict[Metric, float] = {}
    firsts = [one.pieces[0] for one in alone if one.pieces]
    if firsts:
        found["first_token"] = median(firsts)
    # Several tokens may come in one piece; the first piece counts as one.
    gaps = [
        (one.pieces[-1] - one.pieces[0]) / (tokens - 1)
        for one in alone
        if (tokens := one.answer.completion_tokens or len(one.pieces)) > 1 and len(one.pieces) > 1
    ]
    if gaps:
        found["inter_token"] = median(gaps)
    tokens = sum(one.answer.completion_tokens or len(one.pieces) for one in together)
    if tokens and seconds > 0:
        found["throughput"] = tokens / seconds
    if cache is not None and cache.replace(",", "").isdigit():
        found["capacity"] = float(cache.replace(",", ""))
    return found


def _said(ended: Failed | Unanswerable) -> str:
    if isinstance(ended, Unanswerable):
        return _line(ended.reason)
    root = ended.incident.root
    return _line(
        f"{ended.incident.symptom.replace('_', ' ')}: {root.text if root else ended.incident.event or ''}"
    )


def _line(text: str) -> str:
    return " ".join(redact(printable(text)).split())[:300]
