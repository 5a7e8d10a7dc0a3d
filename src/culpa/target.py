"""What a verification asks: an engine that it started itself, or one that runs already somewhere."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

from culpa.counters import TokenCounters
from culpa.engines.base import EngineAdapter
from culpa.model import Incident, RootEvent
from culpa.probes import Answer, Endpoint, Limits, Probe, Progress, ask
from culpa.session import EngineSession, Failed, Patience, Unanswerable

# Counters by which the common engines show that they work.
COUNTERS = (
    "vllm:iteration_tokens_total_sum",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "llamacpp:prompt_tokens_total",
    "llamacpp:tokens_predicted_total",
    "sglang:prompt_tokens_total",
    "sglang:generation_tokens_total",
)
_POLL_SECONDS = 0.05


class Unreachable(RuntimeError):
    """Nothing answers at the endpoint; the message is one line for the user."""


class Target(Protocol):
    """An engine that can be asked."""

    engine: str
    version: str | None
    limits: Limits
    failed: Failed | None  # how its start failed, if it never got ready

    async def ask(self, probe: Probe) -> tuple[Answer, ...] | Failed | Unanswerable:
        """The answers to a probe, or how the engine failed under it."""

    async def metrics(self) -> str:
        """The engine's `/metrics` page, empty where it has none."""

    async def said(self) -> Incident | None:
        """What the engine's log says went wrong; None where it says nothing, or there is no log."""

    async def close(self) -> Sequence[str]:
        """Let go of the engine; what survived of one that was started here."""


class Running:
    """An engine that runs already: there is no log and no process to look at, only its endpoint."""

    def __init__(self, base_url: str, model: str, api_key: str | None, patience: Patience) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._endpoint = Endpoint(base_url, model, headers=headers)
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._api_key = api_key
        self._patience = patience
        self.engine = "an OpenAI-compatible engine"
        self.version: str | None = None
        self.limits = Limits(model)
        self.failed: Failed | None = None

    async def connect(self) -> None:
        """Learn the model, its context and the engine. Raises Unreachable."""
        came = await self._endpoint.get("/v1/models")
        if came is None:
            raise Unreachable(
                f"nothing answers at {self._base_url}: is the engine up, and the address right?"
            )
        status, text = came
        if status in (401, 403):
            raise Unreachable(
                f"{self._base_url} asks for a key: give it with --api-key, or in OPENAI_API_KEY"
            )
        if status != 200:
            raise Unreachable(
                f"{self._base_url}/v1/models answers {status}: this is no OpenAI-compatible engine"
            )
        models = _models(text)
        if not models:
            raise Unreachable(f"{self._base_url}/v1/models names no model")
        wanted = self.limits.model
        if wanted and wanted not in models:
            known = ", ".join(models)
            raise Unreachable(f"--model {wanted}: the engine serves {known}")
        name = wanted or next(iter(models))
        self._endpoint.model = name
        self.limits = Limits(name, context_tokens=models[name])
        await self._recognise()

    async def _recognise(self) -> None:
        page = await self.metrics()
        for prefix, engine in (("vllm:", "vllm"), ("llamacpp:", "llama.cpp"), ("sglang:", "sglang")):
            if f"\n{prefix}" in f"\n{page}":
                self.engine = engine
        told = _json(await self._endpoint.page("/version"))
        if isinstance(told, dict) and isinstance(told.get("version"), str):
            self.version = told["version"]

    async def ask(self, probe: Probe) -> tuple[Answer, ...] | Failed | Unanswerable:
        """The answers; a hang if for too long nothing comes and no counter moves."""
        began = last = time.monotonic()
        received = 0

        def progressed(progress: Progress) -> None:
            nonlocal last, received
            last, received = time.monotonic(), progress.tokens

        counters = TokenCounters(self._base_url, COUNTERS, self._api_key)
        follower = asyncio.ensure_future(counters.follow())
        task = asyncio.ensure_future(ask(probe, self._endpoint, progressed))
        most = probe.most_tokens()
        try:
            while True:
                await asyncio.wait({task}, timeout=_POLL_SECONDS)
                if task.done():
                    return task.result()
                now = time.monotonic()
                quiet = now - max(began, last, counters.moved_at or began)
                still = counters.moved_at is not None and quiet > self._patience.stall
                if received > most:
                    return _hang("runaway_answer", f"{received} tokens and no end", now)
                if still or quiet > self._patience.request:
                    told = ", token counters standing still" if counters.moved_at is not None else ""
                    return _hang("hang", f"no token for {quiet:.0f} s{told}", now)
        finally:
            for one in (task, follower):
                one.cancel()
            await asyncio.gather(task, follower, return_exceptions=True)

    async def metrics(self) -> str:
        """The `/metrics` page."""
        return await self._endpoint.page("/metrics")

    async def said(self) -> Incident | None:
        """There is no log to read."""
        return None

    async def close(self) -> Sequence[str]:
        """Drop the connections; the engine lives on."""
        await self._endpoint.close()
        return ()


class Started:
    """An engine that this verification started: its log and its processes are watched too."""

    def __init__(
        self, session: EngineSession, adapter: EngineAdapter, patience: Patience, failed: Failed | None
    ) -> None:
        self.failed = failed
        self._session = session
        self._patience = patience
        self.engine = adapter.name
        self.version = session.effective.get("engine_version")
        self.limits = adapter.limits(session.api, session.effective)
        headers = {"Authorization": f"Bearer {session.api_key}"} if session.api_key else None
        self._endpoint = Endpoint(session.base_url, self.limits.model, headers=headers)

    async def ask(self, probe: Probe) -> tuple[Answer, ...] | Failed | Unanswerable:
        """The answers, or the first root event of the engine's log."""
        last = time.monotonic()
        received = 0

        def progressed(progress: Progress) -> None:
            nonlocal last, received
            last, received = time.monotonic(), progress.tokens

        most = probe.most_tokens()
        return await self._session.watch(
            ask(probe, self._endpoint, progressed),
            stall=self._patience.stall,
            last_token_at=lambda: last,
            runaway=lambda: f"{received} tokens and no end" if received > most else "",
        )

    async def metrics(self) -> str:
        """The `/metrics` page."""
        return await self._endpoint.page("/metrics")

    async def said(self) -> Incident | None:
        """What the log says, after a moment for it to be written."""
        failed = await self._session.failure_after(1.0)
        return failed.incident if failed is not None else self._session.errors_so_far()

    async def close(self) -> Sequence[str]:
        """End the engine."""
        await self._endpoint.close()
        return await self._session.close(10.0)


def _hang(symptom: str, event: str, now: float) -> Failed:
    return Failed(Incident(symptom=symptom, root=RootEvent(line=0, text=event)), now)


def _models(text: str) -> dict[str, int | None]:
    """The models of `/v1/models` with their contexts, as far as they are told."""
    page = _json(text)
    rows = page.get("data") if isinstance(page, dict) else None
    found: dict[str, int | None] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            meta = row.get("meta")
            length = row.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
            found[row["id"]] = length if isinstance(length, int) else None
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
