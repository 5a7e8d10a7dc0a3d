"""An engine with the guard in it: asked the suite, left to the user's own traffic, or tried with planted faults."""

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from culpa.engines import EngineAdapter, find_adapter, parse_command
from culpa.executors import LocalExecutor
from culpa.guard import BadGuard, Guard, GuardReader, check_mode, why_unguarded
from culpa.guard.launching import out_folder
from culpa.guard.proving import PlantRun, inapplicable, plant_runs, prove
from culpa.host import port_owner, read_machine
from culpa.interrupts import until_interrupted
from culpa.model import Configuration, Launch
from culpa.model.guard import GuardedRun, Proof, SelfTest, Violation
from culpa.model.options import IsolateOptions
from culpa.model.redact import redact
from culpa.model.verification import ProbeReport, Verification
from culpa.session import EngineSession, Failed, Patience, Unanswerable
from culpa.start import SCRATCH, Starter
from culpa.verify import CannotVerify, VerifyOptions, Wanted, verify

_POLL_SECONDS = 0.2
_SERVE_PORT = 8000
# Long enough for a piece of a prompt to follow another on a small engine, and for a block to be filled.
_PLANT_TOKENS = 3000


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """What `culpa guard` is asked. `pages` is how many pages are looked into at each step."""

    words: tuple[str, ...]
    mode: str = "log"
    pages: int = 1
    suite: str = "standard"
    out: Path | None = None
    factors_file: Path | None = None
    probes: IsolateOptions = field(default_factory=IsolateOptions)
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True, slots=True)
class Live:
    """Whoever watches: told of violations, probes, and of what is about to happen."""

    violation: Callable[[Violation], None]
    probe: Callable[[ProbeReport], None]
    starting: Callable[[str, int], None]
    serving: Callable[[str], None]
    proof: Callable[[Proof], None]


class Follower:
    """Reads the guard's files while the engine runs, in a thread of its own, and passes violations on."""

    def __init__(self, folder: Path, tell: Callable[[Violation], None]) -> None:
        self.reader = GuardReader(folder)
        self._tell = tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="guard-reader", daemon=True)

    def __enter__(self) -> "Follower":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._read()  # what came after the last look

    def _follow(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            self._read()

    def _read(self) -> None:
        for violation in self.reader.update():
            self._tell(violation)


def guarded(options: GuardOptions, live: Live) -> GuardedRun:
    """Ask a guarded engine the suite. Raises BadGuard, CannotVerify, BadLaunch, BadFactors or BadText."""
    _checked(options)
    with _folder(options.out) as name:
        return _asked(options, Path(name), live, _kept(options))


def served(options: GuardOptions, live: Live) -> GuardedRun:
    """Run a guarded engine for the user's own traffic, until SIGINT or SIGTERM. Raises as `guarded` does."""
    adapter, launch = _checked(options)
    with _folder(options.out) as name:
        folder = Path(name)
        guard = Guard.write(folder, options.mode, options.pages)
        with Follower(out_folder(folder), live.violation) as follower:
            began = time.monotonic()
            failure, interrupted = asyncio.run(_serve(options, adapter, launch, folder, guard, live))
        return GuardedRun(
            redact(launch.command_line()), options.mode, follower.reader.record(),
            time.monotonic() - began, asked="the user's own traffic", failure=failure,
            interrupted=interrupted, folder=_kept(options),
        )  # fmt: skip


def self_test(options: GuardOptions, live: Live) -> SelfTest:
    """Plant every fault of the engine's list in living engines. Raises as `guarded` does."""
    adapter, launch = _checked(options)
    began = time.monotonic()
    stages = _stages(adapter, launch)
    with _folder(options.out) as name:
        folder = Path(name)
        options = replace(options, mode="log", pages=max(1, options.pages))
        live.starting("healthy", 0)
        runs = [run for run in plant_runs(adapter.name) if run.stages <= stages]
        everything = tuple(dict.fromkeys(probe for run in runs for probe in run.probes))
        healthy = _asked(_asking(options, everything), folder / "healthy", live, "")
        proofs: list[Proof] = []
        interrupted = healthy.interrupted
        for number, run in enumerate(plant_runs(adapter.name), start=1):
            if interrupted:
                break
            if run.stages > stages:
                found = inapplicable(run, f"needs {run.stages} stages, this launch has {stages}")
            else:
                live.starting(", ".join(run.faults), 0)
                found, interrupted = _planted(options, run, folder / f"run-{number}", live)
            for proof in found:
                live.proof(proof)
            proofs += found
        return SelfTest(
            redact(launch.command_line()), healthy, tuple(proofs), time.monotonic() - began, _kept(options),
            interrupted,
        )  # fmt: skip


def _planted(
    options: GuardOptions, run: PlantRun, folder: Path, live: Live
) -> tuple[tuple[Proof, ...], bool]:
    quiet = replace(live, violation=lambda _: None, probe=lambda _: None)
    asking = replace(_asking(options, run.probes), mode=run.mode, pages=max(run.pages, options.pages))
    done = _asked(asking, folder, quiet, "", planted=",".join(run.plants))
    return prove(run, done.record), done.interrupted


def _asking(options: GuardOptions, probes: tuple[str, ...]) -> GuardOptions:
    """The options with these kinds of request, beside the short questions."""
    tokens = options.probes.probe_tokens or _PLANT_TOKENS
    kinds = replace(options.probes, probes=probes, probe_tokens=tokens)
    return replace(options, suite="standard", probes=kinds)


def _asked(options: GuardOptions, folder: Path, live: Live, kept: str, *, planted: str = "") -> GuardedRun:
    folder.mkdir(parents=True, exist_ok=True)
    guard = Guard.write(folder, options.mode, options.pages, planted)
    wanted = Wanted(
        words=options.words,
        factors_file=options.factors_file,
        out=folder,
        patience=options.patience,
        instrument=guard.into,
    )
    asking = VerifyOptions(suite=options.suite, keep_going=True, probes=options.probes)
    began = time.monotonic()
    with Follower(out_folder(folder), live.violation) as follower:
        found = verify(wanted, asking, live.probe, live.starting)
    return GuardedRun(
        found.target, options.mode, follower.reader.record(), time.monotonic() - began,
        asked=_exposure(found), failure=_failure(found), untestable=found.untestable,
        interrupted=found.interrupted, folder=kept,
    )  # fmt: skip


def _exposure(found: Verification) -> str:
    exposure = found.exposure
    return f"{exposure.requests} requests, {exposure.tokens:,} tokens, up to {exposure.concurrency} at once"


def _failure(found: Verification) -> str:
    if found.incident is not None:
        root = found.incident.root
        return f"{found.incident.symptom}: {root.text}" if root is not None else found.incident.symptom
    wrong = found.failures
    return f"{wrong[0].name}: {wrong[0].evidence or wrong[0].symptom}" if wrong else ""


async def _serve(
    options: GuardOptions, adapter: EngineAdapter, launch: Launch, folder: Path, guard: Guard, live: Live
) -> tuple[str, bool]:
    """Start, wait, and let go. How the engine failed, and whether a signal ended it."""
    machine = read_machine()
    adapter.read(launch, machine)
    port = adapter.wanted_port(launch)
    if port is None and port_owner(_SERVE_PORT) is None:
        port = _SERVE_PORT
    owner = port_owner(port) if port is not None else None
    if owner is not None:
        raise CannotVerify(f"port {port} of the launch is taken by {owner}: stop it, or choose another")
    tag = hashlib.sha256(f"{folder} {os.getpid()} {time.time_ns()}".encode()).hexdigest()[:16]
    starter = Starter(
        adapter, LocalExecutor(), machine, options.patience, folder=folder, run_tag=tag, port=port,
        kernel_log=adapter.kernel_log(folder / SCRATCH),
    )  # fmt: skip
    live.starting("start", 0)
    session = await starter.start(launch, Configuration(()), folder, guard.into)
    if isinstance(session, Unanswerable):
        raise CannotVerify(session.reason)
    try:
        failure, interrupted = await until_interrupted(_until_it_fails(session, live))
    finally:
        survivors = await session.close(10.0)
    if survivors:
        raise CannotVerify(f"processes of the engine could not be ended: {', '.join(survivors)}")
    return failure or "", interrupted


async def _until_it_fails(session: EngineSession, live: Live) -> str:
    ended: Failed | Unanswerable | None = await session.wait_until_ready(lambda _line: None)
    if isinstance(ended, Unanswerable):
        raise CannotVerify(ended.reason)
    if ended is None:
        live.serving(session.base_url)
    while ended is None:
        ended = await session.failure_after(1.0)
    root = ended.incident.root
    return f"{ended.incident.symptom}: {root.text if root is not None else ended.incident.event or ''}"


def _checked(options: GuardOptions) -> tuple[EngineAdapter, Launch]:
    """The engine of the launch. Raises BadGuard where it can't have the guard."""
    check_mode(options.mode)
    launch = parse_command(options.words)
    adapter = find_adapter(launch, options.factors_file)
    if why := why_unguarded(adapter):
        raise BadGuard(why)
    return adapter, launch


def _stages(adapter: EngineAdapter, launch: Launch) -> int:
    levels = {factor.name: factor.suspect for factor in adapter.read(launch, read_machine()).factors}
    text = levels.get("pipeline_parallel_size", "1")
    return int(text) if text.isdigit() else 1


def _kept(options: GuardOptions) -> str:
    return str(options.out) if options.out is not None else ""


def _folder(out: Path | None) -> AbstractContextManager[str]:
    """The user's folder, which stays, or a temporary one. Raises BadGuard."""
    if out is None:
        return TemporaryDirectory(prefix="culpa-guard-")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadGuard(f"--out {out}: can't be made: {error.strerror or error}") from None
    if any(out_folder(out).glob("guard-*.jsonl")):
        raise BadGuard(f"--out {out}: already holds what a guard wrote: choose another")
    return nullcontext(str(out.resolve()))


__all__ = ["GuardOptions", "Live", "guarded", "self_test", "served"]
