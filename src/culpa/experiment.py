"""The loop of `culpa isolate`: see the failure, ask search, run a trial, tell search, journal, stop.

Everything that decides is a function of the trials so far (`Record`), so a resumed run goes on where it was cut.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from culpa.budget import Budget
from culpa.engines.base import EngineAdapter, Reading
from culpa.hunt import (
    CHEAP_TOKENS,
    SizesSoFar,
    Suite,
    in_order,
    need_a_reference,
    patience_is_out,
    reference_text,
    relative_costs,
)
from culpa.knowledge import learn
from culpa.locate import to_watch
from culpa.model import (
    Conclusion,
    Configuration,
    ExperimentOutcome,
    Factor,
    Outcome,
    Signature,
    Trial,
    all_safe,
    all_suspect,
)
from culpa.model.observer import Belief, Observer, TrialStarted
from culpa.model.options import IsolateOptions
from culpa.model.trial import GUARD
from culpa.probes import (
    Probe,
    conflict,
    judge,
    reference_from,
    shaped,
    with_new_sessions,
)
from culpa.record import Hunted, Record
from culpa.search import Proposal, Strategy
from culpa.selection import MOST_FACTORS
from culpa.trial import ProbeSource, TrialRequest, TrialResult, TrialRunner
from culpa.workload import ENDPOINT, hunted_probe, hunts_wrong_output, varied_in_request


class HarnessCannotRun(RuntimeError):
    """The experiment can't be run here at all; the message is one line for the user (exit code 2)."""


@dataclass(slots=True)
class Ending:
    """How the loop ended, for the report."""

    conclusion: Conclusion
    factors: tuple[Factor, ...]
    limits_reached: tuple[str, ...] = ()


class Isolation:
    """One run of `culpa isolate`. Collaborators are handed in; `record` holds all that has been seen."""

    def __init__(
        self,
        *,
        adapter: EngineAdapter,
        reading: Reading,
        options: IsolateOptions,
        suite: Suite,
        runner: TrialRunner,
        record: Record,
        observer: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._adapter = adapter
        self._reading = reading
        self._options = options
        self._suite = suite
        self._runner = runner
        self.record = record
        self._observer = observer
        self._clock = clock
        self._began = clock()
        self._factors = reading.factors
        self._probe: Probe | None = None
        self._last: Configuration | None = None
        self._budget = Budget(options.max_trials, options.max_seconds)

    @property
    def elapsed(self) -> float:
        """Seconds spent on this run, earlier sittings included."""
        return self.record.seconds_before + self._clock() - self._began

    async def run(self) -> Ending:
        """Run to the end. Raises HarnessCannotRun; cancellation passes through after the engine is ended."""
        try:
            if self.record.hunted is None:
                await self._hunt()
            if self.record.hunted is None:
                return self._ending(Conclusion(ExperimentOutcome.NO_FAILURE))
            self._know_the_request()
            conclusion = await self._isolate()
            await self._watch(conclusion)
            return self._ending(conclusion)
        finally:
            await self._runner.close()

    def partial(self) -> Ending:
        """What can be said of a run that was cut off."""
        if self.record.hunted is None:
            left = ("the run was cut off before a failure was seen",)
            return self._ending(Conclusion(ExperimentOutcome.INCONCLUSIVE, not_excluded=left))
        self._know_the_request()
        return self._ending(self._conclude_now("the run was interrupted"))

    def _ending(self, conclusion: Conclusion) -> Ending:
        return Ending(conclusion, self._factors, tuple(self._budget.reached))

    # -- seeing the failure --------------------------------------------------------------------------------

    async def _hunt(self) -> None:
        """Run the launch as it is until it fails or patience is out."""
        while not patience_is_out(self.record.baselines(), self._options):
            if self._budget.spent(len(self.record.trials), self.elapsed):
                return
            sizes = SizesSoFar(self.record.sizes)
            result = await self._trial(
                Proposal(
                    all_suspect(self._reading.factors),
                    "baseline",
                    "baseline",
                    "the launch as it is, to see the failure",
                ),
                probes=self._suite.source(sizes),
                claims=Configuration(()),
            )
            if result.trial.outcome is Outcome.UNTESTABLE:
                raise HarnessCannotRun(f"the launch could not be tried as it is: {result.trial.reason}")
            if self.record.limits is None and sizes.limits is not None:
                self.record.note_limits(sizes.limits, sizes.now)
            if result.asked and all(one.judgement.status == "unsupported" for one in result.asked):
                raise HarnessCannotRun(
                    f"the engine refuses every request: {result.asked[0].judgement.evidence}"
                )
            self._note_unclaimed(result.trial)
            if result.trial.outcome is Outcome.PASS:
                result = await self._judged_by_reference(result)
            if result.trial.outcome is Outcome.FAIL and result.trial.signature is not None:
                probe = result.failed_probe
                self.record.note_hunted(
                    Hunted(
                        result.trial.signature,
                        probe.name if probe else None,
                        result.seconds_up or 0.0,
                        result.failed_request if probe else None,
                    )
                )
                return

    def _note_unclaimed(self, trial: Trial) -> None:
        """Say where the engine does not do what the user's own launch asks for."""
        suspects = all_suspect(self._reading.factors)
        for sentence in self._adapter.mismatches(suspects, dict(trial.effective)):
            self._note(f"in the launch as it is: {sentence}")

    async def _judged_by_reference(self, result: TrialResult) -> TrialResult:
        """Where only a reference can tell right from wrong, get one and judge the answers again."""
        open_probes = need_a_reference(result.asked)
        if not open_probes:
            return result
        if self.record.reference is None and not await self._make_reference(open_probes):
            return result
        for asked in result.asked:
            judgement = judge(asked.probe, asked.answers, self.record.reference)
            if judgement.status == "wrong":
                trial = replace(
                    result.trial,
                    outcome=Outcome.FAIL,
                    signature=Signature(judgement.symptom or "wrong_answer"),
                    reason=judgement.evidence,
                )
                self.record.note_trial(trial, self.elapsed)
                self._observer.trial_finished(trial)
                self._observer.note(f"trial {trial.id} judged again: {judgement.evidence}")
                return replace(
                    result, trial=trial, failed_probe=asked.probe, failed_request=judgement.failed_request
                )
        return result

    async def _make_reference(self, probes: Sequence[Probe]) -> bool:
        """Ask the all-safe launch the same; its answers, and how they vary, are the measure from now on."""
        if any(trial.purpose == "reference" for trial in self.record.trials.values()):
            return False
        safe = all_safe(self._reading.factors)
        result = await self._trial(
            Proposal(safe, "all_safe", "reference", "the model may know nothing: ask the all-safe launch"),
            # The cheap ones twice: how the reference differs from itself is its noise.
            probes=in_order((*probes, *(one for one in probes if one.estimated_tokens() < CHEAP_TOKENS))),
            claims=self._claims(safe),
            purpose="reference",
        )
        if result.trial.outcome is not Outcome.PASS:
            self._note(
                "the answers could not be compared with a reference: the all-safe launch ended as "
                f"{result.trial.outcome} ({result.trial.reason})"
            )
            return False
        reference = reference_from([(asked.probe, asked.answers) for asked in result.asked])
        self.record.note_reference(reference)
        self._note(reference_text(reference))
        return True

    # -- isolating it --------------------------------------------------------------------------------------

    def _know_the_request(self) -> None:
        """Add the factors of the failing request to those of the launch.

        The probe is built once: search asks for every configuration that it weighs whether it can run.
        """
        self._probe = hunted_probe(self.record, self._suite)
        room = MOST_FACTORS - len(self._reading.factors)
        extra = varied_in_request(self._probe, self.record, self._options, room)
        self._factors = (*self._reading.factors, *extra)

    @property
    def _hunts_wrong_output(self) -> bool:
        return hunts_wrong_output(self.record)

    async def _isolate(self) -> Conclusion:
        strategy = self._strategy()
        while True:
            history = self.record.history(all_suspect(self._factors))
            step = strategy.next(history, self._runner.alive)
            self._tell_belief(strategy)
            if isinstance(step, Conclusion):
                return step
            if self._budget.spent(len(self.record.trials), self.elapsed):
                return self._conclude_now(f"{' and '.join(self._budget.reached)} ended the search")
            known, ignorant = self._factors, self.record.ignorant_passes
            await self._step(step)
            if (self._factors, self.record.ignorant_passes) != (known, ignorant):
                strategy = self._strategy()
            if self._factors != known:
                continue
            history = self.record.history(all_suspect(self._factors))
            if history[-1].trial == self.record.last_id:
                self.record.note_told(strategy.told(history))

    async def _watch(self, conclusion: Conclusion) -> None:
        """Once more with the guard in the engine, where it can be had: what fails first, seen from inside."""
        if not self._runner.can_guard or self._options.guard is False:
            return
        for step in to_watch(conclusion, self.record.ordered(), self._factors, self._runner.folder):
            left = self._budget.trials_left(len(self.record.trials))
            seconds = self._budget.seconds_left(self.elapsed)
            if (left is not None and left <= 0) or (seconds is not None and seconds <= 0):
                self._note("no trial was left for the guard, so where the failure begins is not said")
                return
            configuration = step.configuration
            await self._trial(
                step,
                probes=self._probes_for(configuration),
                claims=self._claims(configuration),
                purpose=GUARD,
            )

    async def _step(self, step: Proposal) -> None:
        configuration = step.configuration
        result = await self._trial(
            step, probes=self._probes_for(configuration), claims=self._claims(configuration)
        )
        refused = any(one.judgement.status == "unsupported" for one in result.asked)
        suspects = all_suspect(self._factors)
        if refused and ENDPOINT in suspects and configuration[ENDPOINT] != suspects[ENDPOINT]:
            # The plainest request goes to the other endpoint, which this engine has not: no factor, then.
            self.record.drop_factor(ENDPOINT)
            self.record.note_trial(replace(result.trial, purpose="calibration"), self.elapsed)
            self._know_the_request()
        elif result.trial.outcome is Outcome.PASS and self.record.reference is None:
            for sentence in learn(self.record, result, step.purpose, self._hunts_wrong_output, self.elapsed):
                self._observer.note(sentence)

    def _strategy(self) -> Strategy:
        relaunch, request = relative_costs(self.record.baselines())
        return Strategy(
            self._factors,
            confidence=self._options.confidence,
            max_trials=self._options.max_trials,
            repeat=self._options.repeat,
            arms=self._options.arms,
            seed=self._options.seed,
            relaunch_cost=relaunch,
            request_cost=request,
            thresholds=self._options.thresholds,
            # Its answers are what those of every other arm are judged by, where these do not speak for themselves.
            all_safe_first=self._hunts_wrong_output or self.record.ignorant_passes,
            can_run=self._can_run,
        )

    def _conclude_now(self, why: str) -> Conclusion:
        """What the trials so far allow to say, no further trial granted; `why` none is."""
        return self._strategy().conclude(self.record.history(all_suspect(self._factors)), why)

    def _can_run(self, configuration: Configuration) -> str | None:
        refused = self._adapter.can_run(configuration)
        return refused or (conflict(self._probe, configuration) if self._probe else None)

    def _claims(self, configuration: Configuration) -> Configuration:
        """What the arm says of itself: the launch levels in which it differs from the user's launch."""
        suspects = all_suspect(self._reading.factors)
        return Configuration.of(
            {name: configuration[name] for name in suspects if configuration[name] != suspects[name]}
        )

    def _probes_for(self, configuration: Configuration) -> ProbeSource:
        if self._probe is not None:
            asked = shaped(self._probe, configuration)
            if self.record.reference is None or not self._hunts_wrong_output:
                # On a living engine the same prompt again would not be a new one to its cache.
                asked = with_new_sessions(asked, self.record.last_id + 1)
            return in_order((asked,))
        # It fails at start-up: that it comes up and answers at all is what a pass must show.
        source = self._suite.source(SizesSoFar(self.record.sizes))
        return lambda limits, asked: None if asked else source(limits, asked)

    def _tell_belief(self, strategy: Strategy) -> None:
        history = self.record.history(all_suspect(self._factors))
        self._observer.belief(
            Belief(tuple(strategy.belief(history)[:5]), strategy.expected_remaining(history))
        )

    # -- one trial -----------------------------------------------------------------------------------------

    async def _trial(
        self,
        step: Proposal,
        *,
        probes: ProbeSource,
        claims: Configuration,
        purpose: str | None = None,
    ) -> TrialResult:
        guarded = purpose == GUARD
        number = self.record.next_id(self.elapsed, step.reason)
        self._observer.trial_started(
            TrialStarted(
                number,
                step.arm,
                purpose or step.purpose,
                step.configuration,
                step.reason,
                self._budget.trials_left(len(self.record.trials)),
                self._budget.seconds_left(self.elapsed),
                self._factors,
            )
        )
        hunted = self.record.hunted
        result = await self._runner.run(
            TrialRequest(
                id=number,
                configuration=step.configuration,
                levels=self._launch_levels(step.configuration),
                claims=claims,
                purpose=purpose or step.purpose,
                arm=step.arm,
                probes=probes,
                hunted=hunted.signature if hunted else None,
                reference=self.record.reference,
                watch_seconds=hunted.watch_seconds if hunted else 0.0,
                # Repeating a configuration on the same engine would not be an independent trial.
                # Nor would a comparison be fair if one engine had the prompts in its cache and the other had not.
                fresh=guarded or step.configuration == self._last or self._hunts_wrong_output,
                guarded=guarded or bool(self._options.guard),
            )
        )
        self._last = step.configuration
        self.record.note_trial(result.trial, self.elapsed)
        self._observer.trial_finished(result.trial)
        return result

    def _launch_levels(self, configuration: Configuration) -> Configuration:
        """The levels of a configuration that are those of the launch, not of the request."""
        return Configuration.of({factor.name: configuration[factor.name] for factor in self._reading.factors})

    def _note(self, text: str) -> None:
        if self.record.note(text):
            self._observer.note(text)
