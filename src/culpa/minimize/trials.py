"""Trials of cases, one engine each, kept in a journal: a minimization that was cut off buys none twice."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from culpa.budget import Budget
from culpa.executors import LocalExecutor
from culpa.hunt import in_order
from culpa.isolate import Run
from culpa.minimize.case import Case
from culpa.minimize.meter import OutOfTrials, Tried
from culpa.model import Configuration, Outcome
from culpa.session import Patience
from culpa.store import BadRunFolder, Journal
from culpa.trial import TrialRequest, TrialResult, TrialRunner

_NOTHING = Configuration(())


class Trials:
    """Runs trials of cases for one run of `isolate`, in the folder of the minimization."""

    def __init__(
        self,
        run: Run,
        folder: Path,
        journal: Journal,
        entries: Sequence[Mapping[str, Any]],
        budget: Budget,
        on_progress: Callable[[int, str, float, str], None],
        kernel_log: Path | None,
    ) -> None:
        self._run = run
        self._folder = folder
        self._journal = journal
        self._budget = budget
        self._on_progress = on_progress
        self._kernel_log = kernel_log
        self._began = time.monotonic()
        self._before = 0.0
        self._recorded: dict[str, list[Tried]] = {}
        self.spent = 0
        self.events: dict[str, None] = {}
        for entry in entries:
            if entry["kind"] == "tried":
                self._take(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        try:
            tried = Tried(int(entry["id"]), Outcome(entry["outcome"]))
            key, event, elapsed = str(entry["key"]), entry.get("event"), float(entry["elapsed"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadRunFolder(
                f"{self._folder}: the journal is damaged: a trial can't be read ({type(error).__name__})"
            ) from None
        self._recorded.setdefault(key, []).append(tried)
        self.spent = max(self.spent, tried.id)
        self._before = elapsed
        if isinstance(event, str) and tried.outcome is Outcome.FAIL:
            self.events.setdefault(event)

    @property
    def elapsed(self) -> float:
        """Seconds, earlier sittings included."""
        return self._before + time.monotonic() - self._began

    async def once(self, case: Case, step: str) -> Tried:
        """One trial of a case: the next recorded one, else a new one. Raises OutOfTrials."""
        key = case.key()
        recorded = self._recorded.get(key)
        if recorded:
            return recorded.pop(0)
        if self._budget.spent(self.spent, self.elapsed):
            raise OutOfTrials
        self.spent += 1
        result = await self._try(case, self.spent)
        trial = result.trial
        event = trial.signature.event if trial.signature is not None else None
        self._journal.append(
            "tried",
            id=trial.id,
            key=key,
            step=step,
            outcome=str(trial.outcome),
            event=event,
            reason=trial.reason,
            seconds=trial.seconds,
            elapsed=round(self.elapsed, 3),
        )
        if event is not None and trial.outcome is Outcome.FAIL:
            self.events.setdefault(event)
        return Tried(trial.id, trial.outcome)

    async def _try(self, case: Case, number: int) -> TrialResult:
        setup, record = self._run.setup, self._run.record
        assert record.hunted is not None
        options = setup.options
        runner = TrialRunner(
            setup.adapter,
            case.launch,
            LocalExecutor(),
            setup.machine,
            patience=Patience(options.start_timeout, options.stall_timeout, options.request_timeout),
            folder=self._folder,
            run_tag=self._run.tag,
            port=setup.port,
            kernel_log=self._kernel_log,
            on_progress=self._on_progress,
        )
        try:
            return await runner.run(
                TrialRequest(
                    id=number,
                    configuration=_NOTHING,
                    levels=_NOTHING,
                    purpose="minimize",
                    arm=f"candidate {number}",
                    probes=in_order((case.probe,) if case.probe is not None else ()),
                    hunted=record.hunted.signature,
                    reference=record.reference,
                    watch_seconds=record.hunted.watch_seconds,
                )
            )
        finally:
            await runner.close()
