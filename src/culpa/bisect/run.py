"""Puts a run of `culpa bisect` together: the versions, the run folder, the loop, the settings, the result."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from culpa.bisect.changes import NotesAsked, check_notes
from culpa.bisect.loop import Bisection
from culpa.bisect.result import assemble_bisection
from culpa.bisect.settings import isolate_settings
from culpa.checks import check_options, checked_port
from culpa.engines import Reading, parse_command
from culpa.environment import complete_environment, keep_environment
from culpa.host import end_leftovers, read_machine
from culpa.interrupts import until_interrupted
from culpa.isolate import Asked, Run, Setup, new_run, options_from, runner_of
from culpa.model import Factor
from culpa.model.bisection import ENGINE_VERSION
from culpa.model.bisection import Bisection as Result
from culpa.model.observer import Observer
from culpa.model.options import IsolateOptions
from culpa.model.plan import Plan, PlannedArm
from culpa.record import Record
from culpa.search.change_point import VersionSearch
from culpa.selection import check_names, request_names, select
from culpa.store import BadRunFolder, open_run
from culpa.versions import Opened, Row, VersionedAdapter, VersionsAsked, find_for, open_versions, ready
from culpa.versions.provider import Tell

SettingsAsked = Literal["auto", "isolate", "no"]


@dataclass(frozen=True, slots=True)
class BisectAsked:
    """What the user asked for, as texts. `settings` says whether the launch's settings are looked at afterwards:
    whether they matter at all (`auto`, which isolates them if they do), always, or not."""

    words: tuple[str, ...]
    good: str
    bad: str
    versions: VersionsAsked
    options: IsolateOptions
    settings: SettingsAsked = "auto"
    notes: NotesAsked = field(default_factory=NotesAsked)
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    factors_file: str | None = None


@dataclass(frozen=True, slots=True)
class BisectSetup:
    """A checked bisection that could start now. `settings` is what the launch has beside its version."""

    asked: BisectAsked
    setup: Setup
    opened: Opened
    row: Row
    adapter: VersionedAdapter
    version: Factor
    settings: Reading


@dataclass(frozen=True, slots=True)
class BisectRun:
    """A bisection with its folder and journal, new or resumed."""

    bisect: BisectSetup
    run: Run

    @property
    def folder(self) -> Path:
        """Where the evidence lies."""
        return self.run.folder


def set_up(asked: BisectAsked, tell: Tell) -> BisectSetup:
    """Find the versions, make the bad end ready and read the launch there.

    Raises BadLaunch, BadFactors, BadVersions, BadSelection, BadRequestFile, BadText, BadRunFolder or HarnessCannotRun.
    """
    launch = parse_command(asked.words)
    check_options(asked.options)
    check_notes(asked.notes)
    opened = open_versions(asked.versions, launch, asked.good, asked.bad, asked.factors_file)
    row = opened.row()
    bad, safe = row.labels[-1], row.labels[:-1]
    ready(opened.provider.make_ready, (bad,), tell)
    adapter = VersionedAdapter(find_for(asked.factors_file), launch, opened.provider, bad, safe)
    adapter.tell = tell
    machine = read_machine()
    reading = adapter.read(launch, machine)
    version = next(factor for factor in reading.factors if factor.name == ENGINE_VERSION)
    known = request_names(asked.options.request_file)
    only = check_names(asked.only, reading, known, adapter.canonical, "--only")
    skip = check_names(asked.skip, reading, known, adapter.canonical, "--skip")
    settings = select(reading, only and (*only, ENGINE_VERSION), skip)
    settings = replace(
        settings, factors=tuple(factor for factor in settings.factors if factor.name != ENGINE_VERSION)
    )
    own = Asked(asked.words, asked.options, asked.only, asked.skip, (), asked.factors_file)
    setup = Setup(
        own,
        launch,
        adapter,
        replace(reading, factors=(version,), notes=(*opened.notes, *reading.notes)),
        replace(asked.options, only=only, skip=skip),
        machine,
        checked_port(adapter, launch),
    )
    return BisectSetup(asked, setup, opened, row, adapter, version, settings)


def plan_of(bisect: BisectSetup, run_id: str = "", folder: Path | None = None) -> Plan:
    """What the run is about to do."""
    setup, row = bisect.setup, bisect.row
    search = VersionSearch(len(row.labels), setup.options.confidence)
    trials = search.expected_remaining([]) + 1
    what = "that works again" if row.turned else "that fails"
    return Plan(
        engine=setup.adapter.name,
        launch=setup.launch,
        factors=(bisect.version,),
        left_out=setup.reading.left_out,
        arms=(PlannedArm(row.labels[-1], "baseline", (), "the bad end, until it has failed"),),
        run_id=run_id,
        folder=str(folder) if folder else "",
        confidence=setup.options.confidence,
        predicted_trials=trials,
        predicted_seconds=setup.adapter.usual_seconds * trials,
        max_trials=setup.options.max_trials,
        max_seconds=setup.options.max_seconds,
        notes=(
            f"{len(row.labels)} versions of {bisect.opened.source}, {row.labels[0]} to {row.labels[-1]}: the first "
            f"{what} is looked for",
            *setup.reading.notes,
        ),
        layout=setup.reading.layout,
    )


def new_bisection(bisect: BisectSetup, out: Path | None) -> BisectRun:
    """Make the folder of a new run. Raises BadRunFolder."""
    asked = bisect.asked
    header = {
        "verb": "bisect",
        "good": bisect.row.labels[0],
        "bad": bisect.row.labels[-1],
        "versions": list(bisect.row.labels),
        "source": asked.versions.plain(),
        "settings": asked.settings,
        "notes": {"file": _whole(asked.notes.file), "repository": _whole(asked.notes.repository)},
    }
    return BisectRun(bisect, new_run(bisect.setup, out, header))


def resumed_bisection(folder: Path, changes: Mapping[str, Any], tell: Tell) -> BisectRun:
    """Open a run to go on with. Raises BadRunFolder, and whatever `set_up` raises."""
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise BadRunFolder(f"{folder} is a file: --resume takes the folder of a run")
    journal, header, entries = open_run(folder)
    if header.get("verb") != "bisect":
        raise BadRunFolder(f"{folder} holds no bisection: go on with it by culpa isolate --resume {folder}")
    journal.lock()
    try:
        os.chdir(header["cwd"])
        options = options_from(header["options"], changes)
        asked = BisectAsked(
            tuple(header["words"]),
            header["good"],
            header["bad"],
            VersionsAsked.from_plain(header["source"]),
            options,
            header["settings"],
            NotesAsked(**header["notes"]),
            tuple(header["only"]),
            tuple(header["skip"]),
            header["factors_file"],
        )
    except (KeyError, TypeError, OSError):
        raise BadRunFolder(
            f"{folder}: the journal's header lacks what is needed to go on with the run"
        ) from None
    end_leftovers(header["tag"], folder)
    bisect = set_up(asked, tell)
    if list(bisect.row.labels) != header["versions"]:
        raise BadRunFolder(
            f"{folder}: {bisect.opened.source} holds other versions now than when the run began: start a new run"
        )
    run = Run(
        bisect.setup, folder, folder.name, header["started"], header["tag"], journal, Record(journal, entries)
    )
    return BisectRun(bisect, run)


def carry_out(one: BisectRun, observer: Observer) -> Result:
    """Run to the end, or until the user interrupts; what was seen by then is in the result either way.

    Raises HarnessCannotRun. SIGINT and SIGTERM end engines and builds and give an interrupted result.
    """
    loop, interrupted = asyncio.run(_carry_out(one, observer))
    result = assemble_bisection(one, loop, interrupted=interrupted)
    wanted = one.bisect.asked.settings == "isolate" or result.settings == "settings_too"
    if interrupted or not wanted or result.edge[0] is None or not one.bisect.settings.factors:
        return result
    return isolate_settings(one, result, observer)


async def _carry_out(one: BisectRun, observer: Observer) -> tuple[Bisection, bool]:
    bisect, run = one.bisect, one.run
    bisect.adapter.tell = observer.note
    runner, _ = runner_of(run, observer)
    keep_environment(run.folder, bisect.setup.launch, bisect.setup.machine)
    loop = Bisection(
        adapter=bisect.adapter,
        labels=bisect.row.labels,
        version=bisect.version,
        settings=bisect.settings.factors,
        options=bisect.setup.options,
        ask_settings=bisect.asked.settings != "no",
        turned=bisect.row.turned,
        runner=runner,
        record=run.record,
        observer=observer,
        folder=run.folder,
    )
    observer.started(plan_of(bisect, run.run_id, run.folder), run.record.ordered())
    _, interrupted = await until_interrupted(loop.run(), ignore_after=True)
    if interrupted:
        run.journal.append("interrupted", elapsed=round(loop.elapsed, 3))
    else:
        run.journal.append("ended", outcome="bisected", elapsed=round(loop.elapsed, 3))
    complete_environment(run.folder)
    return loop, interrupted


def _whole(path: str | None) -> str | None:
    return str(Path(path).resolve()) if path is not None else None
