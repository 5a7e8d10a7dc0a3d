"""Puts a run of `culpa isolate` together: reads the launch, opens the run folder, runs, assembles the result."""

import asyncio
import dataclasses
import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import culpa
from culpa.assemble import assemble
from culpa.checks import check_options, checked_port
from culpa.engines import EngineAdapter, Reading, parse_command
from culpa.engines.layout_kept import keep_layout
from culpa.environment import complete_environment, keep_environment
from culpa.executors import LocalExecutor
from culpa.experiment import Isolation
from culpa.guard import BadGuard, Guard, why_unguarded
from culpa.host import (
    KernelLog,
    Machine,
    end_leftovers,
    environment_facts,
    read_machine,
)
from culpa.hunt import Suite
from culpa.interrupts import until_interrupted
from culpa.model import Launch
from culpa.model.experiment import Experiment
from culpa.model.observer import Observer, TrialProgress
from culpa.model.options import IsolateOptions
from culpa.model.plan import Plan, PlannedArm
from culpa.model.redact import redact
from culpa.record import Record
from culpa.search import Strategy, threshold_trials
from culpa.selection import check_names, parse_arms, request_names, select
from culpa.session import Patience
from culpa.start import SCRATCH, Instrument
from culpa.store import BadRunFolder, Journal, create_run, open_run
from culpa.trial import TrialRunner
from culpa.versions import VersionFactor, adapter_with_version

DEFAULT_ROOT = Path("culpa-runs")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for, as texts: nothing of it is checked yet."""

    words: tuple[str, ...]
    options: IsolateOptions
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    factors_file: str | None = None
    version: VersionFactor | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """A checked run that could start now. `options` holds the canonical names and parsed arms."""

    asked: Asked
    launch: Launch
    adapter: EngineAdapter
    reading: Reading
    options: IsolateOptions
    machine: Machine
    port: int | None


def set_up(asked: Asked) -> Setup:
    """Check everything that can be checked before an engine starts; each error is one line for the user.

    Raises BadLaunch, BadFactors, BadSelection, BadRequestFile, BadText or HarnessCannotRun.
    """
    launch = parse_command(asked.words)
    adapter = adapter_with_version(launch, asked.version, asked.factors_file)
    machine = read_machine()
    reading = adapter.read(launch, machine)
    known = request_names(asked.options.request_file)
    only = check_names(asked.only, reading, known, adapter.canonical, "--only")
    skip = check_names(asked.skip, reading, known, adapter.canonical, "--skip")
    arms = parse_arms(asked.arms, reading, adapter.canonical)
    # An arm that a person asks for is always run, so its factors are varied whatever else was chosen.
    forced = {name for arm in arms for name, _ in arm.levels}
    reading = select(reading, only and (*only, *forced), tuple(name for name in skip if name not in forced))
    check_options(asked.options)
    port = checked_port(adapter, launch)
    if asked.options.guard and (why := why_unguarded(adapter)):
        raise BadGuard(f"--guard: {why}")
    options = replace(asked.options, only=only, skip=skip, arms=arms)
    return Setup(asked, launch, adapter, reading, options, machine, port)


def plan_of(setup: Setup, run_id: str = "", folder: Path | None = None) -> Plan:
    """What the run is about to do, with the search's estimate of its length."""
    strategy = Strategy(setup.reading.factors, confidence=setup.options.confidence, arms=setup.options.arms)
    trials = strategy.expected_remaining([])
    seconds = setup.adapter.usual_seconds * trials
    return Plan(
        engine=setup.adapter.name,
        launch=setup.launch,
        factors=setup.reading.factors,
        left_out=setup.reading.left_out,
        arms=(
            PlannedArm("baseline", "baseline", (), "the launch as it is, until it has failed"),
            PlannedArm(
                "all safe",
                "all_safe",
                tuple((f.name, f.safe[0]) for f in setup.reading.factors if not f.instrument),
                "if this fails too, the factors are not enough",
            ),
            *(PlannedArm(arm.name, "arm", arm.levels, "asked for") for arm in setup.options.arms),
        ),
        run_id=run_id,
        folder=str(folder) if folder else "",
        confidence=setup.options.confidence,
        predicted_trials=trials,
        predicted_seconds=seconds,
        max_trials=setup.options.max_trials,
        max_seconds=setup.options.max_seconds,
        probes=Suite(replace(setup.options, probe_tokens=None)).names(),
        notes=(*setup.reading.notes, *_threshold_note(setup), *_guard_note(setup)),
        layout=setup.reading.layout,
    )


def _threshold_note(setup: Setup) -> tuple[str, ...]:
    """Says beforehand that a threshold may be searched, and what bounds it."""
    names, most = threshold_trials(setup.reading.factors)
    if not names or not setup.options.thresholds:
        return ()
    which = names[0] if len(names) == 1 else f"one of {', '.join(names)}"
    return (
        f"if {which} is at fault, its threshold is searched afterwards, in up to {most} trials more, within "
        "--max-time and --max-trials; --no-thresholds leaves that out",
    )


def _guard_note(setup: Setup) -> tuple[str, ...]:
    """Says beforehand that the engine is looked at from inside."""
    if setup.options.guard is False or why_unguarded(setup.adapter):
        return ()
    if setup.options.guard:
        return ("all trials have the guard in the engine (docs/guard.md)",)
    return ("what is isolated runs once more with the guard in the engine; --no-guard leaves that out",)


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its folder and journal, new or resumed."""

    setup: Setup
    folder: Path
    run_id: str
    started: str
    tag: str
    journal: Journal
    record: Record

    @property
    def suite(self) -> Suite:
        """What is asked of its launch."""
        return Suite(self.setup.options)


def new_run(setup: Setup, out: Path | None, more: Mapping[str, Any] | None = None) -> Run:
    """Make the folder of a new run; `more` is added to its header. Raises BadRunFolder."""
    now = datetime.now(UTC)
    name = f"{now:%Y%m%d-%H%M%S}-{setup.adapter.name.replace('/', '-')}"
    folder = out or _unused(DEFAULT_ROOT / name)
    started = now.isoformat(timespec="seconds")
    tag = _tag(folder, started)
    asked = setup.asked
    journal = create_run(
        folder,
        {
            "culpa": culpa.__version__,
            "started": started,
            "tag": tag,
            "engine": setup.adapter.name,
            "command": redact(setup.launch.command_line()),
            "words": list(asked.words),
            "cwd": str(Path.cwd()),
            "factors_file": str(Path(asked.factors_file).resolve()) if asked.factors_file else None,
            "only": list(asked.only),
            "skip": list(asked.skip),
            "arms": list(asked.arms),
            "options": _plain_options(asked.options),
            "factors": [factor.name for factor in setup.reading.factors],
            "version": asked.version.plain() if asked.version is not None else None,
            **(more or {}),
        },
    )
    return Run(setup, folder, folder.name, started, tag, journal, Record(journal))


def resumed_run(folder: Path, changes: dict[str, Any]) -> Run:
    """Open a run to go on with; `changes` are options that the user gave anew, such as a larger budget.

    Raises BadRunFolder, and whatever `set_up` raises.
    """
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise BadRunFolder(f"{folder} is a file: --resume takes the folder of a run")
    journal, header, entries = open_run(folder)
    _check_header(folder, header)
    journal.lock()
    cwd = Path(header["cwd"])
    if not cwd.is_dir():
        raise BadRunFolder(f"{folder}: the working folder of the run, {cwd}, does not exist any more")
    os.chdir(cwd)
    options = options_from(header["options"], changes)
    end_leftovers(header["tag"], folder)
    setup = set_up(
        Asked(
            tuple(header["words"]),
            options,
            tuple(header["only"]),
            tuple(header["skip"]),
            tuple(header["arms"]),
            header["factors_file"],
            VersionFactor.from_plain(header.get("version")),
        )
    )
    now_varied = [factor.name for factor in setup.reading.factors]
    if now_varied != header["factors"]:
        changed = sorted(set(now_varied) ^ set(header["factors"]))
        raise BadRunFolder(
            f"{folder}: the launch has other factors now than when the run began ({', '.join(changed)}); "
            "the model, the machine or culpa changed, so start a new run"
        )
    record = Record(journal, entries)
    return Run(setup, folder, folder.name, header["started"], header["tag"], journal, record)


def options_from(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> IsolateOptions:
    """The options of a run's header, some of them given anew. Raises TypeError for what are none."""
    options = replace(IsolateOptions(**{**plain, "arms": (), "only": (), "skip": ()}), **changes)
    return replace(
        options,
        questions=tuple(options.questions),
        records=tuple(options.records),
        probes=tuple(options.probes),
    )


def execute(run: Run, observer: Observer) -> Experiment:
    """Run to the end, or until the user interrupts; what was seen by then is in the result either way.

    Raises HarnessCannotRun. SIGINT and SIGTERM end the engine and give an interrupted experiment.
    """
    return asyncio.run(_execute(run, observer))


async def _execute(run: Run, observer: Observer) -> Experiment:
    setup = run.setup
    record = run.record
    options = setup.options

    runner, kernel_log = runner_of(run, observer)
    keep_environment(run.folder, setup.launch, setup.machine)
    keep_layout(run.folder, setup.adapter, setup.launch)
    isolation = Isolation(
        adapter=setup.adapter,
        reading=setup.reading,
        options=options,
        suite=run.suite,
        runner=runner,
        record=record,
        observer=observer,
        clock=time.monotonic,
    )
    observer.started(plan_of(setup, run.run_id, run.folder), record.ordered())
    ended, interrupted = await until_interrupted(isolation.run(), ignore_after=True)
    ending = ended or isolation.partial()
    if interrupted:
        run.journal.append("interrupted", elapsed=round(isolation.elapsed, 3))
    complete_environment(run.folder)
    experiment = assemble(
        adapter=setup.adapter,
        launch=setup.launch,
        reading=setup.reading,
        options=options,
        record=record,
        ending=ending,
        run_id=run.run_id,
        started=run.started,
        elapsed_seconds=round(isolation.elapsed, 3),
        folder=run.folder,
        environment=(*environment_facts(setup.machine).items(), ("kernel_log", _kernel_log(kernel_log))),
        machine=setup.machine,
        factors_file=setup.asked.factors_file,
        interrupted=interrupted,
    )
    if not interrupted:
        run.journal.append("ended", outcome=ending.conclusion.outcome, elapsed=round(isolation.elapsed, 3))
    observer.finished(experiment)
    return experiment


def _instrument(run: Run) -> Instrument | None:
    """The guard, where the engine can have it and the user did not forbid it."""
    if run.setup.options.guard is False or why_unguarded(run.setup.adapter):
        return None
    return Guard.write(run.folder).into


def runner_of(run: Run, observer: Observer) -> tuple[TrialRunner, Path | None]:
    """What runs the trials of a run, and the file that stands in for this machine's kernel log, if one does."""

    def progressed(number: int, phase: str, seconds: float, detail: str) -> None:
        observer.trial_progress(TrialProgress(number, phase, seconds, detail))

    setup, options = run.setup, run.setup.options
    kernel_log = kernel_log_file(run)
    runner = TrialRunner(
        setup.adapter,
        setup.launch,
        LocalExecutor(),
        setup.machine,
        patience=Patience(options.start_timeout, options.stall_timeout, options.request_timeout),
        folder=run.folder,
        run_tag=run.tag,
        port=setup.port,
        kernel_log=kernel_log,
        instrument=_instrument(run),
        on_progress=progressed,
    )
    return runner, kernel_log


def kernel_log_file(run: Run) -> Path | None:
    """A file in place of this machine's own kernel log: the user's, or the engine's."""
    given = run.setup.options.kernel_log
    return Path(given).resolve() if given is not None else run.setup.adapter.kernel_log(run.folder / SCRATCH)


def _kernel_log(file: Path | None) -> str:
    with KernelLog(file=file) as log:
        return log.unreadable or f"read from {log.source} during every trial"


def _check_header(folder: Path, header: dict[str, Any]) -> None:
    """Raise BadRunFolder where the header lacks what resuming needs."""
    if header.get("verb") == "bisect":
        raise BadRunFolder(f"{folder} holds a bisection: go on with it by culpa bisect --resume {folder}")
    texts, lists = ("cwd", "started", "tag"), ("words", "only", "skip", "arms", "factors")
    good = (
        all(isinstance(header.get(name), str) for name in texts)
        and all(isinstance(header.get(name), list) for name in lists)
        and isinstance(header.get("options"), dict)
        and header["options"].keys() <= {field.name for field in dataclasses.fields(IsolateOptions)}
    )
    if not good:
        raise BadRunFolder(f"{folder}: the journal's header lacks what is needed to go on with the run")


def _tag(folder: Path, started: str) -> str:
    """Marks the processes of this run, on this machine, whatever its folder is called."""
    return hashlib.sha256(os.fsencode(f"{folder.resolve()} {started} {os.getpid()}")).hexdigest()[:16]


def _plain_options(options: IsolateOptions) -> dict[str, Any]:
    plain = dataclasses.asdict(options)
    for name in ("request_file", "kernel_log"):
        if plain[name] is not None:
            plain[name] = str(Path(plain[name]).resolve())
    return {name: value for name, value in plain.items() if name not in ("arms", "only", "skip")}


def _unused(folder: Path) -> Path:
    candidates: Sequence[Path] = (folder, *(folder.with_name(f"{folder.name}-{n}") for n in range(2, 100)))
    return next(path for path in candidates if not path.exists())


__all__ = [
    "Asked",
    "Run",
    "Setup",
    "execute",
    "kernel_log_file",
    "new_run",
    "plan_of",
    "resumed_run",
    "set_up",
]
