"""The loop of `culpa bisect`: see the failure at the bad end, ask the search for a version, run a trial of it.

Hunt, probes and trials are those of `culpa isolate`, with the version as the only factor. All decisions follow from the
record and from what is ready in the cache, so a resumed run goes on where it was cut.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil, log
from pathlib import Path

import numpy as np

from culpa.engines import Reading
from culpa.experiment import Ending, Isolation
from culpa.hunt import Suite
from culpa.model import (
    Conclusion,
    Configuration,
    ExperimentOutcome,
    Factor,
    Outcome,
    Trial,
    all_suspect,
)
from culpa.model.bisection import ENGINE_VERSION, SettingsVerdict
from culpa.model.observer import Belief, Observer
from culpa.model.options import IsolateOptions
from culpa.record import Record
from culpa.search import Proposal
from culpa.search.change_point import ChangeFound, VersionSearch, VersionStep, VersionTrial
from culpa.search.change_posterior import Floats
from culpa.trial import ProbeSource, TrialResult, TrialRunner
from culpa.versions import CannotPrepare, VersionedAdapter, other_version

# Trials of versions, as opposed to those that look at the settings or serve as a reference.
OF_VERSIONS = frozenset({"baseline", "search", "confirm", "again"})
SETTINGS = "settings"
# So unlikely must it be that all settings safe passed by luck, before they are said to matter.
BY_LUCK = 0.05
MOST_SETTINGS_TRIALS = 12
MOST_TRIALS = 400
# A line beyond these is not where an engine names its version.
_LINES = 20_000
_LEAST_SHOWN = 0.01


class Bisection(Isolation):
    """One run of `culpa bisect`. `labels` go from the good end to the bad end, `turned` if the good end is the newer
    one; `settings` are the launch's factors."""

    def __init__(
        self,
        *,
        adapter: VersionedAdapter,
        labels: Sequence[str],
        version: Factor,
        settings: tuple[Factor, ...],
        options: IsolateOptions,
        ask_settings: bool,
        turned: bool,
        runner: TrialRunner,
        record: Record,
        observer: Observer,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            adapter=adapter,
            reading=Reading((version,)),
            options=options,
            suite=Suite(options),
            runner=runner,
            record=record,
            observer=observer,
            clock=clock,
        )
        self.labels = tuple(labels)
        self.search = VersionSearch(len(labels), options.confidence)
        self.settings: SettingsVerdict = "not_asked"
        self.settings_text = ""
        self._versioned = adapter
        self._place = {label: place for place, label in enumerate(labels)}
        self._varied = tuple(factor for factor in settings if not factor.instrument)
        self._ask = ask_settings
        self._turned = turned
        self._folder = folder
        self._preparing: list[float] = []

    async def run(self) -> Ending:
        """Run to the end. Raises HarnessCannotRun; cancellation passes through after the engine is ended."""
        try:
            if self.record.hunted is None:
                await self._hunt()
            if self.record.hunted is None:
                return self._ending(Conclusion(ExperimentOutcome.NO_FAILURE))
            self._know_the_request()
            found = await self._bisect()
            if found.found and self._ask:
                await self._ask_settings(self.labels[-1])
            return self._ending(Conclusion(ExperimentOutcome.ISOLATED))
        finally:
            await self._runner.close()

    @property
    def limits_reached(self) -> tuple[str, ...]:
        """The limits of the user's that ended it."""
        return tuple(self._budget.reached)

    def trials_of_versions(self) -> list[VersionTrial]:
        """The trials that say something of a version, in their order."""
        return [
            VersionTrial(self._place[trial.configuration[ENGINE_VERSION]], trial.outcome)
            for trial in self.record.ordered()
            if trial.purpose in OF_VERSIONS
        ]

    # -- versions ------------------------------------------------------------------------------------------

    async def _bisect(self) -> ChangeFound:
        while True:
            history = self.trials_of_versions()
            step = self.search.next(history, self._costs())
            self._tell_chances(history)
            if isinstance(step, ChangeFound):
                return step
            if self._budget.spent(len(self.record.trials), self.elapsed) or len(history) >= MOST_TRIALS:
                return self.search.conclude(history)
            await self._try(step)

    async def _try(self, step: VersionStep) -> None:
        label = self.labels[step.position]
        configuration = self._at(label)
        await self._trial(
            Proposal(configuration, "search", label, step.reason, step.bits),
            probes=self._probes_for(configuration),
            claims=Configuration(()),
            purpose=step.purpose,
        )

    def _at(self, label: str) -> Configuration:
        """The launch and the request as they are, at a version."""
        return all_suspect(self._factors).with_levels({ENGINE_VERSION: label})

    def _costs(self) -> Floats | None:
        """What a trial of each version costs: one, and what making it ready has taken so far where it is not."""
        trials = [trial.seconds for trial in self.record.ordered() if trial.purpose in OF_VERSIONS]
        if not self._preparing or not trials:
            return None
        extra = float(np.mean(self._preparing)) / max(float(np.mean(trials)), 1e-3)
        return np.array([1.0 if self._versioned.is_ready(label) else 1.0 + extra for label in self.labels])

    def _tell_chances(self, history: Sequence[VersionTrial]) -> None:
        weight = self.search.posterior(history).weight
        likely = sorted(range(weight.size), key=lambda place: -weight[place])[:5]
        word = "up to" if self._turned else "since"
        sets = tuple(
            ((f"{word} {self.labels[place]}",), float(weight[place]))
            for place in likely
            if weight[place] >= _LEAST_SHOWN
        )
        self._observer.belief(Belief(sets, self.search.expected_remaining(history)))

    # -- settings ------------------------------------------------------------------------------------------

    async def _ask_settings(self, label: str) -> None:
        """Does it fail with every setting of the launch safe, too? Then the version alone is enough."""
        if not self._varied:
            return
        configuration = self._at(label).with_levels({factor.name: factor.safe[0] for factor in self._varied})
        refused = self._adapter.can_run(configuration)
        if refused is not None:
            self._settle("unknown", f"all settings safe can't run together here: {refused}")
            return
        rate = self.search.posterior(self.trials_of_versions()).expected_rate()
        needed = min(MOST_SETTINGS_TRIALS, max(1, ceil(log(BY_LUCK) / log(max(1e-9, 1.0 - rate)))))
        while True:
            done = [trial for trial in self.record.ordered() if trial.purpose == SETTINGS]
            if self._settled(done, label, needed):
                return
            if self._budget.spent(len(self.record.trials), self.elapsed):
                self._settle("unknown", "a limit came before the settings were looked at")
                return
            await self._trial(
                Proposal(
                    configuration,
                    "all_safe",
                    f"{label}, all else safe",
                    "does it need settings of the launch as well?",
                ),
                probes=self._probes_for(configuration),
                claims=Configuration.of({factor.name: factor.safe[0] for factor in self._varied}),
                purpose=SETTINGS,
            )

    def _settled(self, done: Sequence[Trial], label: str, needed: int) -> bool:
        failed = [trial.id for trial in done if trial.outcome is Outcome.FAIL]
        passed = [trial.id for trial in done if trial.outcome is Outcome.PASS]
        count = len(self._varied)
        named = f"all {count} settings that culpa varies" if count > 1 else f"{self._varied[0].name}"
        if failed:
            self._settle(
                "version_alone", f"with {named} safe, {label} fails all the same (trial {failed[0]})"
            )
        elif len(passed) >= needed:
            times = f"{len(passed)} of {len(passed)} times" if len(passed) > 1 else f"in trial {passed[0]}"
            self._settle("settings_too", f"with {named} safe, {label} passed {times}")
        elif len(done) - len(passed) >= 2:
            self._settle("unknown", f"with {named} safe, {label} could not be judged: {done[-1].reason}")
        return self.settings != "not_asked"

    def _settle(self, verdict: SettingsVerdict, text: str) -> None:
        self.settings, self.settings_text = verdict, text

    # -- one trial -----------------------------------------------------------------------------------------

    async def _trial(
        self, step: Proposal, *, probes: ProbeSource, claims: Configuration, purpose: str | None = None
    ) -> TrialResult:
        """A trial whose version is made ready first, and looked at whatever came of it."""
        label = step.configuration[ENGINE_VERSION]
        await self._prepare(label)
        claims = claims.with_levels({ENGINE_VERSION: label})
        arm = label if step.arm in ("baseline", "all safe") else step.arm
        result = await super()._trial(replace(step, arm=arm), probes=probes, claims=claims, purpose=purpose)
        trial = self._with_version(result.trial, label)
        if trial != result.trial:
            self.record.note_trial(trial, self.elapsed)
            self._observer.trial_finished(trial)
        return replace(result, trial=trial)

    def _launch_levels(self, configuration: Configuration) -> Configuration:
        names = {ENGINE_VERSION, *(factor.name for factor in self._varied)}
        return Configuration.of({name: configuration[name] for name in configuration if name in names})

    async def _prepare(self, label: str) -> None:
        """Make it ready in a time of its own; whatever is wrong with it, the trial says."""
        if self._versioned.is_ready(label):
            return
        began = self._clock()
        try:
            await self._versioned.make_ready(Configuration.of({ENGINE_VERSION: label}))
        except CannotPrepare:
            return
        self._preparing.append(self._clock() - began)

    def _with_version(self, trial: Trial, label: str) -> Trial:
        """A trial that ended before it was ready has its version in the log; another one makes it untestable."""
        if trial.effective or trial.outcome not in (Outcome.FAIL, Outcome.OTHER):
            return trial
        try:
            with (self._folder / trial.folder / "engine.log").open(encoding="utf-8", errors="replace") as log:
                said = self._adapter.effective(list(islice(log, _LINES)), {})
        except OSError:
            return trial
        trial = replace(trial, effective=tuple(sorted(said.items())))
        wrong = other_version(label, said) if self._versioned.names_itself else None
        if wrong is None:
            return trial
        reason = f"{ENGINE_VERSION} was to be {label}, but the engine says {wrong}"
        return replace(trial, outcome=Outcome.UNTESTABLE, reason=reason, mismatches=(reason,), signature=None)
