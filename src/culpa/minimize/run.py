"""`culpa minimize`: from a run that isolated a failure to the smallest case that still fails, and its two files."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from culpa.budget import Budget
from culpa.host import RUN_VARIABLE, end_leftovers, free_port
from culpa.interrupts import until_interrupted
from culpa.isolate import Run, kernel_log_file, resumed_run
from culpa.minimize.case import Case
from culpa.minimize.meter import Meter, OutOfTrials
from culpa.minimize.repro import PORT, PROGRAM, SCRIPT, Reproduction, files_of
from culpa.minimize.steps import Steps, control_of
from culpa.minimize.trials import Trials
from culpa.model import Count, Finding, Level, Member
from culpa.model.minimization import Attempt, Minimization, Rerun
from culpa.model.redact import redact
from culpa.store import JOURNAL, BadRunFolder, Journal, create_run, open_run, read_result
from culpa.workload import hunted_probe, hunts_wrong_output
from culpa.written import write_whole

FOLDER = "minimize"
# An intermittent failure is waited for in so many runs of the files.
_MOST_RERUNS = 12


class NothingToMinimize(ValueError):
    """The run has no failure that could be made smaller; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class MinimizeOptions:
    """What the user asked for: limits, which finding (counted from 1), and whether the files are run at the end."""

    max_trials: int | None = None
    max_seconds: float | None = None
    finding: int = 1
    rerun: bool = True


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told of what happens: each candidate with its outcome, and progress within a trial."""

    attempt: Callable[[Attempt], None] = lambda _: None
    progress: Callable[[int, str, float, str], None] = lambda *_: None
    note: Callable[[str], None] = lambda _: None


def minimize(folder: Path, options: MinimizeOptions, watcher: Watcher) -> tuple[Minimization, bool]:
    """Make the failing case of a run smaller; whether it was interrupted is the second value.

    Goes on where an earlier minimization of the run was cut off. Raises BadRunFolder, NothingToMinimize, and whatever
    reading the launch raises.
    """
    finding = finding_of(folder, options.finding)
    run = resumed_run(folder, {})
    place = run.folder / FOLDER
    if (place / JOURNAL).exists():
        journal, header, entries = open_run(place)
        if header.get("finding") != [member.name for member in finding.members]:
            raise BadRunFolder(f"{place} holds a minimization of another finding: move it away")
        journal.lock()
    else:
        names = [member.name for member in finding.members]
        journal, entries = create_run(place, {"run": run.run_id, "finding": names}), []
    return asyncio.run(_minimize(run, place, journal, entries, finding, options, watcher))


def finding_of(folder: Path, number: int) -> Finding:
    """The isolated set of a finished run. Raises BadRunFolder or NothingToMinimize."""
    if not folder.is_dir():
        raise BadRunFolder(f"{folder}: is no folder of a run")
    open_run(folder)
    result = read_result(folder)
    if result is None:
        raise NothingToMinimize(f"{folder}: the run is not finished: culpa isolate --resume {folder}")
    found = result.get("findings") or []
    if not found:
        raise NothingToMinimize(
            f"{folder}: the run ended as {str(result.get('outcome', 'unknown')).replace('_', ' ')}, with no isolated "
            "set of factors: there is nothing to make smaller"
        )
    if not 1 <= number <= len(found):
        raise NothingToMinimize(f"--finding {number}: the run has {len(found)}")
    try:
        chosen = found[number - 1]
        members = tuple(Member(one["name"], one["suspect"], one["safe"]) for one in chosen["factors"])
        counts = chosen["sufficient"]
        sufficient = Count(int(counts["failed"]), int(counts["trials"]))
        return Finding(members, Level(chosen["level"]), float(chosen["probability"]), sufficient, ())
    except (KeyError, TypeError, ValueError):
        raise BadRunFolder(f"{folder}: experiment.json is damaged: its findings can't be read") from None


async def _minimize(
    run: Run,
    place: Path,
    journal: Journal,
    entries: Sequence[dict[str, Any]],
    finding: Finding,
    options: MinimizeOptions,
    watcher: Watcher,
) -> tuple[Minimization, bool]:
    record, setup = run.record, run.setup
    if record.hunted is None:
        raise NothingToMinimize(f"{run.folder}: its journal names no failure")
    suite_probe = hunted_probe(record, run.suite)
    start = Case(setup.launch, suite_probe)
    budget = Budget(options.max_trials, options.max_seconds)
    trials = Trials(run, place, journal, entries, budget, watcher.progress, kernel_log_file(run))
    meter = Meter(trials.once, watcher.attempt)
    steps = Steps(setup.adapter, meter, finding, wrong_output=hunts_wrong_output(record))
    work = _Work(run, place, trials, meter, steps, finding, start)
    _, interrupted = await until_interrupted(_guarded(work, options, watcher), ignore_after=True)
    result = work.result(budget, interrupted)
    write_result(place, result)
    return result, interrupted


async def _guarded(work: "_Work", options: MinimizeOptions, watcher: Watcher) -> None:
    with suppress(OutOfTrials):  # what is small so far is the result; the budget says what ended it
        await work.shrink()
    if not work.failed:
        raise NothingToMinimize(work.still_well())
    await work.write(watcher)
    if options.rerun:
        await work.rerun(watcher)


class _Work:
    """The state of one minimization."""

    def __init__(
        self, run: Run, place: Path, trials: Trials, meter: Meter, steps: Steps, finding: Finding, start: Case
    ) -> None:
        self._run, self._place, self._trials, self._meter = run, place, trials, meter
        self._steps, self._finding, self._start = steps, finding, start
        self._control: tuple[str, Case] | None = None
        self._reruns: list[Rerun] = []
        self._notes: list[str] = []
        self._files: dict[str, str] = {}

    @property
    def _best(self) -> Case:
        return self._steps.best or self._start

    @property
    def failed(self) -> bool:
        """Whether the case to begin with failed at all."""
        return self._meter.count(self._start).failed > 0

    def still_well(self) -> str:
        """The line for a failure that does not come any more."""
        trials = self._meter.count(self._start).trials
        return f"{self._run.folder}: its launch did not fail in {trials} trials: there is nothing to make smaller"

    async def shrink(self) -> None:
        """All steps, then the control. Raises OutOfTrials."""
        await self._meter.begin(self._start)
        if not self.failed:
            return
        await self._steps.run(self._start)
        self._control = control_of(
            self._run.setup.adapter, self._best, self._finding, self._run.setup.adapter.can_run
        )
        if self._control is not None:
            text, case = self._control
            if await self._meter.still_fails(case, "control", text):
                self._notes.append(f"the control ({text}) failed too: it is left out of the files")
                self._control = None

    async def write(self, watcher: Watcher) -> None:
        """Put the two files into the folder."""
        self._files = files_of(self._reproduction())
        for name, text in self._files.items():
            write_whole(self._place / name, text)
        (self._place / SCRIPT).chmod(0o755)
        watcher.note(f"wrote {self._place / SCRIPT} and {PROGRAM}")

    def _reproduction(self) -> Reproduction:
        setup, record = self._run.setup, self._run.record
        hunted = record.hunted
        assert hunted is not None
        text, case = self._control if self._control is not None else ("", None)
        adapter = setup.adapter
        seen = [
            trial.signature.event for trial in record.ordered() if trial.outcome == "fail" and trial.signature
        ]
        events = tuple(
            dict.fromkeys(event for event in (hunted.signature.event, *seen, *self._trials.events) if event)
        )
        slowest = max((trial.seconds for trial in record.ordered()), default=60.0)
        return Reproduction(
            headline=self._headline(),
            signature=hunted.signature,
            events=events if hunted.signature.event is not None else (),
            case=self._best,
            launch=adapter.on_port(self._best.launch, PORT),
            control=text,
            control_case=case,
            control_launch=adapter.on_port(case.launch, PORT) if case is not None else None,
            health=adapter.health_path,
            ready_seconds=max(60.0, min(setup.options.start_timeout, 10 * slowest)),
            answer_seconds=max(60.0, min(setup.options.request_timeout, 10 * slowest)),
            watch_seconds=max(2.0, hunted.watch_seconds),
            reference=record.reference,
            model=record.limits.model if record.limits is not None else "",
        )

    def _headline(self) -> str:
        members = " + ".join(f"{member.name}={member.suspect}" for member in self._finding.members)
        hunted = self._run.record.hunted
        symptom = hunted.signature.symptom if hunted is not None else ""
        return f"Reproduces {symptom} of {self._run.setup.adapter.name}, which needs {members}."

    async def rerun(self, watcher: Watcher) -> None:
        """Run the files as whoever gets them would: in an empty environment, in a folder of their own."""
        for control in (False, True) if self._control is not None else (False,):
            rate = self._meter.count(self._best)
            certain = control or rate.failed == rate.trials
            failed, said, runs = 0, "", 0
            while runs < (1 if certain else _MOST_RERUNS) and not failed:
                watcher.note(f"running {SCRIPT}{' control' if control else ''} in a clean shell")
                said = await self._run_files(control)
                failed += said.startswith("FAIL")
                runs += 1
            self._reruns.append(Rerun(control, runs, failed, redact(said)))
            watcher.note(f"{SCRIPT}{' control' if control else ''}: {said}")

    async def _run_files(self, control: bool) -> str:
        """The last line of one run of the files."""
        with TemporaryDirectory(prefix="culpa-repro-") as name:
            for file in (SCRIPT, PROGRAM):
                shutil.copy(self._place / file, name)
            # Programs that lie beside this interpreter are found as they were in the trials.
            path = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)))
            kept = {key: os.environ[key] for key in ("HOME", "CUDA_VISIBLE_DEVICES") if key in os.environ}
            process = await asyncio.create_subprocess_exec(
                "sh",
                SCRIPT,
                *(("control",) if control else ()),
                cwd=name,
                env={**kept, "PATH": path, "PORT": str(free_port()), RUN_VARIABLE: self._run.tag},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                out, _ = await process.communicate()
            finally:
                # What the script left behind, or what an interruption did.
                left = end_leftovers(self._run.tag)
            if left:
                self._notes.append(f"processes could not be ended: {', '.join(left)}")
            lines = out.decode("utf-8", "replace").strip().splitlines()
            verdicts = [line for line in lines if line.startswith(("PASS", "FAIL", "OTHER"))]
            return (
                verdicts[-1]
                if verdicts
                else f"no verdict (exit code {process.returncode}): {' '.join(lines[-2:])}"
            )

    def result(self, budget: Budget, interrupted: bool) -> Minimization:
        best = self._best
        stopped = "interrupted" if interrupted else " and ".join(budget.reached)
        hunted = self._run.record.hunted
        assert hunted is not None
        event = hunted.signature.event
        return Minimization(
            run_id=self._run.run_id,
            engine=self._run.setup.adapter.name,
            signature=f"{hunted.signature.symptom}: {event}" if event else hunted.signature.symptom,
            command=redact(best.launch.command_line()),
            request=request_in_words(best),
            before=self._start.size(),
            after=best.size(),
            rate_before=self._meter.start,
            rate=self._meter.count(best),
            rate_sentence=self._meter.sentence(best) if self._meter.count(best).failed else "",
            attempts=tuple(replace(one, change=redact(one.change)) for one in self._meter.attempts),
            thresholds=tuple(self._steps.thresholds),
            control=self._control[0] if self._control is not None else "",
            reruns=tuple(self._reruns),
            notes=tuple(self._notes),
            trials=self._trials.spent,
            elapsed_seconds=round(self._trials.elapsed, 3),
            stopped=stopped,
            files=tuple((name, redact(text)) for name, text in self._files.items()),
        )


def request_in_words(case: Case) -> str:
    """What is left of the requests, in a line."""
    if case.probe is None:
        return "no request: it fails at start-up"
    size = case.size()
    rounds = case.probe.asked()
    at_once = max(len(one) for one in rounds)
    words = [f"{size.requests} request{'s' if size.requests != 1 else ''}"]
    words += [f"up to {at_once} at once"] if at_once > 1 else []
    words.append(f"the longest prompt about {size.prompt_tokens} tokens")
    return ", ".join(words)


def write_result(place: Path, result: Minimization) -> None:
    """Put the result beside the files."""
    from culpa.minimize.document import minimization_json

    write_whole(place / "minimization.json", minimization_json(result))


__all__ = ["FOLDER", "MinimizeOptions", "NothingToMinimize", "Watcher", "finding_of", "minimize"]
