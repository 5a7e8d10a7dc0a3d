"""A living engine: started for one configuration of the launch, watched while it works, and ended.

A failure is told by reading the log as it grows, never by waiting for the engine's own clients to notice. Hangs
are told from slowness by progress: new log lines, processor time, tokens that arrive.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from culpa.counters import TokenCounters
from culpa.engines.base import EngineAdapter, Prepared
from culpa.executors import RunningEngine
from culpa.host import KernelLog, LogTail
from culpa.model import Configuration, Incident, RootEvent
from culpa.triage import LogReader

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

KERNEL = "kernel"
KERNEL_LOG = "kernel.log"

POLL_SECONDS = 0.05
HEALTH_SECONDS = 0.2
# After the first root event the other processes are given a moment, so that the order of events can be judged.
SETTLE_SECONDS = 1.5
QUIET_SECONDS = 0.4
# A process tree that uses less than this share of one core is idle.
IDLE_SHARE = 0.05
# Counters may stand still for a whole long step; this many stalls are no step any more.
STILL_COUNTERS = 2.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may happen, and how long something may take. All in seconds.

    `start` bounds the start-up as a whole, `stall` a start-up or a request without any sign of progress,
    `request` a single probe that keeps the processors busy but brings no token.
    """

    start: float = 900.0
    stall: float = 60.0
    request: float = 600.0


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine failed. `seen_at` is when its first sign was seen, on the monotonic clock, in seconds."""

    incident: Incident
    seen_at: float
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """Harness, machine or arm could not answer: the trial says nothing about the fault."""

    reason: str


class EngineSession:
    """One engine process tree from start to end, with its log and its endpoint."""

    def __init__(
        self,
        adapter: EngineAdapter,
        prepared: Prepared,
        port: int,
        process: RunningEngine,
        patience: Patience,
        levels: Configuration,
        folder: Path,
        kernel: KernelLog,
    ) -> None:
        self.adapter = adapter
        self.levels = levels
        self.folder = folder
        self.base_url = prepared.base_url
        self.api_key = prepared.api_key
        self.api: dict[str, object] = {}
        self.effective: dict[str, str] = {}
        self.started_at = time.monotonic()
        self.ready_at: float | None = None
        self._prepared = prepared
        self._port = port
        self._process = process
        self._patience = patience
        self._tail = LogTail(process.log)
        self._reader = LogReader(adapter.dialect)
        self._kernel = kernel
        self._lines_fed = 0
        self._start_lines: list[str] = []
        self._last_line = ""
        self._last_line_at = self.started_at
        self._busy = _BusyMeter(self.started_at)
        self._in_background = False

    @property
    def seconds_to_ready(self) -> float | None:
        """Start to the first good answer of the health check, in seconds; None if it never was ready."""
        return None if self.ready_at is None else self.ready_at - self.started_at

    @property
    def log(self) -> Path:
        """The engine's whole output, standard output and standard error in the order of writing."""
        return self._process.log

    def exit_code(self) -> int | None:
        """The exit status of the engine's main process; None while it lives, negative for a signal."""
        return self._process.exit_code()

    async def wait_until_ready(self, on_progress: Callable[[str], None]) -> Failed | Unanswerable | None:
        """Wait until the health check answers from this very engine. None means ready."""
        import httpx2

        health = f"{self.base_url.rstrip('/')}{self._prepared.health_path}"
        async with httpx2.AsyncClient(timeout=2.0, trust_env=False) as client:
            next_health = 0.0
            while True:
                failure = self._unwatched() or await self._failure_so_far()
                if failure is not None:
                    return failure
                now = time.monotonic()
                if now >= next_health:
                    next_health = now + HEALTH_SECONDS
                    if await _answers(client, health):
                        if not self._process.owns_port(self._port):
                            return Unanswerable(
                                f"another process answers on port {self._port}; stop it and run the trial again"
                            )
                        self.ready_at = time.monotonic()
                        await self._read_api(client)
                        return None
                verdict = self._start_verdict(now)
                if verdict is not None:
                    return verdict
                on_progress(self._last_line)
                await asyncio.sleep(POLL_SECONDS)

    async def watch(
        self,
        work: Awaitable[T],
        *,
        stall: float,
        last_token_at: Callable[[], float],
        runaway: Callable[[], str] = str,
    ) -> T | Failed | Unanswerable:
        """Await work on this engine, but end it at the first root event, at the engine's end, or in a hang.

        `last_token_at` gives the monotonic time of the last thing that arrived from the engine; `stall` is the
        number of seconds without any progress, with idle processors, that counts as a hang; `runaway` says in
        words that far more has come than was asked for, or nothing.
        """
        task = asyncio.ensure_future(work)
        counters = TokenCounters(self.base_url, self.adapter.token_counters, self.api_key)
        follower = asyncio.ensure_future(counters.follow())
        began = time.monotonic()
        try:
            while True:
                await asyncio.wait({task}, timeout=POLL_SECONDS)
                failure = self._unwatched() or await self._failure_so_far()
                if failure is not None:
                    return failure
                if task.done():
                    return task.result()
                now = time.monotonic()
                if runaway():
                    return self._hang("runaway_answer", runaway(), now)
                busy_share, busy_at = self._busy.share(self._process.cpu_seconds, now)
                moved_at = max(began, last_token_at(), counters.moved_at or began)
                quiet, idle = now - moved_at, now - max(moved_at, busy_at)
                # Workers that wait for each other keep their processors busy: counters that stand still tell.
                counted = counters.moved_at is not None and quiet > STILL_COUNTERS * stall
                if idle > stall or counted or quiet > self._patience.request:
                    how = "idle" if idle > stall else f"busy ({busy_share:.0%} of a core)"
                    told = ", token counters standing still" if counters.moved_at is not None else ""
                    return self._hang("hang", f"no token for {quiet:.0f} s, processors {how}{told}", now)
        finally:
            for one in (task, follower):
                one.cancel()
            await asyncio.gather(task, follower, return_exceptions=True)

    async def failure_after(self, seconds: float) -> Failed | None:
        """Give the engine a moment to say why a request went wrong; None if it has nothing to say."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            failure = await self._failure_so_far()
            if failure is not None:
                return failure
            await asyncio.sleep(POLL_SECONDS)
        return None

    def errors_so_far(self) -> Incident | None:
        """What the log says went wrong, on an engine that is still alive."""
        self.read_log()
        return self._reader.incident(exit_code=None, alive=True, request_failed=True)

    async def close(self, grace: float) -> tuple[str, ...]:
        """End every process of the engine; returns what survived, which should be nothing."""
        report = await self._process.stop(grace)
        self._read_kernel()
        self._kernel.close()
        return tuple(report.survivors)

    def read_log(self) -> None:
        """Take in what the engine has written since the last look."""
        lines = self._tail.read()
        if not lines:
            return
        self._feed(lines)
        self._last_line_at = time.monotonic()
        self._last_line = next((line for line in reversed(lines) if line.strip()), self._last_line)
        if self.ready_at is None:
            self._start_lines.extend(lines)

    def _unwatched(self) -> Unanswerable | None:
        if self._process.supervisor_lost():
            return Unanswerable("the process that watches the engine was killed from outside")
        return None

    async def _failure_so_far(self) -> Failed | None:
        self.read_log()
        gone = self._gone()
        if not self._reader.decisive and not gone:
            return None
        seen_at = time.monotonic()
        engine_lines = await self._settle()
        exit_code = self._process.exit_code()
        incident = self._reader.incident(exit_code=exit_code, alive=exit_code is None)
        if incident is None:
            incident = Incident(
                symptom="silent_death",
                root=None,
                event=f"the engine ended with exit code {exit_code} and no word in its log",
            )
        return Failed(_in_its_own_log(incident, engine_lines), seen_at, exit_code)

    def _gone(self) -> bool:
        """Whether the engine is over. A main process that ends well before it is ready may have left a server in
        the background; that one is over when no process is left."""
        code = self._process.exit_code()
        if code is None:
            return False
        if code == 0 and (self.ready_at is None or self._in_background):
            self._in_background = bool(self._process.processes())
            return not self._in_background
        return True

    async def _settle(self) -> int:
        """Wait for what follows the first event at once; returns how many lines are the engine's own."""
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            self.read_log()
            quiet = time.monotonic() - self._last_line_at
            if quiet > (QUIET_SECONDS if self._process.exit_code() is None else 2 * POLL_SECONDS):
                break
            await asyncio.sleep(POLL_SECONDS)
        rest = self._tail.final() if self._process.exit_code() is not None else []
        if rest:
            self._feed(rest)
        engine_lines = self._lines_fed
        self._feed(self._read_kernel())
        return engine_lines

    def _feed(self, lines: Sequence[str]) -> None:
        self._lines_fed += len(lines)
        self._reader.feed(lines)

    def _read_kernel(self) -> list[str]:
        """What the kernel has said meanwhile; kept beside the engine's log."""
        try:
            lines = self._kernel.read()
        except OSError as error:
            self._kernel.close()
            lines = [f"(the kernel log can't be read any more: {error.strerror or error})"]
        if lines:
            with (self.folder / KERNEL_LOG).open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        return lines

    def _start_verdict(self, now: float) -> Failed | Unanswerable | None:
        elapsed = now - self.started_at
        _, busy_at = self._busy.share(self._process.cpu_seconds, now)
        silent = now - max(self.started_at, self._last_line_at)
        idle = now - max(self.started_at, self._last_line_at, busy_at)
        if idle > self._patience.stall:
            return self._hang(
                "startup_hang", f"no log line and idle processors for {idle:.0f} s at start", now
            )
        if elapsed <= self._patience.start:
            return None
        if silent > self._patience.start / 2:
            return self._hang(
                "startup_hang", f"no log line for {silent:.0f} s at start, processors busy", now
            )
        return Unanswerable(
            f"not ready after {elapsed:.0f} s but still at work (last line: {self._last_line[:120]!r}); "
            "raise --start-timeout"
        )

    def _hang(self, symptom: str, event: str, now: float) -> Failed:
        self.read_log()
        told = self._reader.incident(exit_code=None, alive=True)
        root = told.root if told else RootEvent(line=0, text=event)
        return Failed(
            Incident(
                symptom=symptom,
                root=root,
                # The seconds differ from trial to trial and would make two hangs look different.
                event=told.event if told and told.event else None,
                process=told.process if told else None,
                rank=told.rank if told else None,
                first_failed_rank=told.first_failed_rank if told else None,
            ),
            now,
            None,
        )

    async def _read_api(self, client: "httpx2.AsyncClient") -> None:
        import httpx2

        for path in self.adapter.api_paths():
            try:
                response = await client.get(f"{self.base_url.rstrip('/')}{path}", timeout=5.0)
            except httpx2.HTTPError:
                continue  # an engine without this page is no error: the adapter does with what there is
            if response.status_code == 200:
                self.api[path] = _json_or_text(response.text)
        self.read_log()
        self.effective = dict(self.adapter.effective(self._start_lines, self.api))


def _in_its_own_log(incident: Incident, engine_lines: int) -> Incident:
    """An event that the kernel told has its line in the kernel's log."""
    root = incident.root
    if root is None or root.line <= engine_lines:
        return incident
    return replace(incident, root=replace(root, line=root.line - engine_lines, process=KERNEL))


class _BusyMeter:
    """Tells when a process tree last did real work, from the processor time that it has used so far."""

    WINDOW_SECONDS = 1.0

    def __init__(self, now: float) -> None:
        self._since = now
        self._used = 0.0
        self._share = 1.0
        self._busy_at = now

    def share(self, cpu_seconds: Callable[[], float], now: float) -> tuple[float, float]:
        """The share of one core over the last window, and the last time at which it was not idle."""
        elapsed = now - self._since
        if elapsed >= self.WINDOW_SECONDS:
            used = cpu_seconds()
            self._share = max(0.0, used - self._used) / elapsed
            self._since, self._used = now, used
            if self._share > IDLE_SHARE:
                self._busy_at = now
        return self._share, self._busy_at


async def _answers(client: "httpx2.AsyncClient", url: str) -> bool:
    import httpx2

    try:
        response = await client.get(url)
    except httpx2.HTTPError:
        return False
    return response.status_code == 200


def _json_or_text(text: str) -> object:
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return parsed


def write_json(path: Path, content: Mapping[str, object] | list[object]) -> None:
    """Write evidence as readable JSON."""
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n"
    # Half a surrogate pair is valid JSON, and no UTF-8.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
