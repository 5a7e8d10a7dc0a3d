"""The order of a search: baseline, all safe, the user's arms, search, confirmation, refinement, conclusion."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import get_args

import numpy as np

from culpa.model import (
    Arm,
    Conclusion,
    Configuration,
    ExperimentOutcome,
    Factor,
    Observation,
    Outcome,
    all_suspect,
)
from culpa.model.told import Told
from culpa.search.batch import MOST_AT_ONCE
from culpa.search.checks import check_numbers, checked_arms
from culpa.search.choose import Predictor
from culpa.search.conclude import conclude
from culpa.search.evidence import Evidence
from culpa.search.explain import account
from culpa.search.explore import Explorer
from culpa.search.feasible import Feasible
from culpa.search.hazard import Hazard
from culpa.search.hypotheses import NEVER
from culpa.search.numeric import MOST_TRIALS
from culpa.search.options import Options
from culpa.search.proposal import Proposal, Purpose
from culpa.search.refine import Refinement
from culpa.search.shape import MOST_CHECKS
from culpa.search.situation import Cause, Situation
from culpa.search.space import Space
from culpa.search.wording import configuration_name

_MOST_CAUSES = 3  # independent causes after which no further one is looked for
_BITS_OF_A_TRIAL = 0.9  # what a well chosen trial tells of a deterministic fault
_SHOWN_SETS = 8
_SHOWN_BEFORE_AND_AFTER = 4


def _anything_runs(configuration: Configuration) -> str | None:
    return None


class Strategy:
    """Chooses trials. Pure: the next step follows from the history, the seed and what is alive, so that a
    resumed search goes on as if it had never stopped.

    `confidence` is asked of a finding, `max_trials` bounds all trials of the history, every configuration is
    tried at least `repeat` times, `arms` are always run. Costs are relative: `relaunch_cost` where a
    launch-scope level differs from what is alive, else `request_cost`. `thresholds` asks for the boundaries
    of numeric members. `all_safe_first` tries everything safe right after the user's launch has failed, for a
    caller that needs its answers; else that is a trial like any other. `can_run` gives the reason why a
    configuration can't run, None if it can; it must be a pure function. Raises ValueError for factors or arms that
    contradict each other.
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        *,
        confidence: float = 0.95,
        max_trials: int | None = None,
        repeat: int = 1,
        arms: Sequence[Arm] = (),
        seed: int = 0,
        relaunch_cost: float = 1.0,
        request_cost: float = 0.1,
        thresholds: bool = True,
        all_safe_first: bool = False,
        can_run: Callable[[Configuration], str | None] = _anything_runs,
    ) -> None:
        self._factors = tuple(factors)
        check_numbers(self._factors)
        self._options = Options(
            confidence, max_trials, max(repeat, 1), seed, relaunch_cost, request_cost, thresholds
        )
        self._all_safe_first = all_safe_first
        self._can_run = can_run
        self._baseline = all_suspect(factors)
        self._arms = checked_arms(self._factors, arms)
        self._spaces: dict[tuple[str, ...], tuple[Space, Feasible]] = {}
        self._first = self._space({factor.name: factor.safe[0] for factor in factors})
        self._latest: tuple[tuple[Observation, ...], tuple[Cause, ...], Situation | None] = ((), (), None)

    def next(
        self, history: Sequence[Observation], alive: Configuration | None = None
    ) -> Proposal | Conclusion:
        """The next trial, or the conclusion. `alive` is the configuration of an engine that still serves."""
        situation = self._situation(history)
        if len(history) >= self._options.budget:
            return self.conclude(history, f"the budget of {self._options.budget} trials ended the search")
        refused = self._can_run(self._baseline)
        if refused is not None:
            return self._ended(situation, f"the user's launch itself can't run: {refused}")
        if not situation.evidence.any_failed:
            return self._again_baseline(situation)
        return (
            self._repetition(situation)
            or self._fixed_arm(situation)
            or self._next_cause(situation, Explorer(situation, self._options, alive), alive)
        )

    def next_batch(
        self, history: Sequence[Observation], count: int, pending: Sequence[Configuration] = ()
    ) -> tuple[Proposal, ...] | Conclusion:
        """Up to `count` trials to start at once while `pending` ones still run, or the conclusion. Fewer (none,
        even) where no other trial can be chosen before an outcome is in; a conclusion comes only once nothing is
        pending. Raises ValueError for more than MOST_AT_ONCE trials together.

        What `next` would do comes first, then arms that are certain, then what tells the most together with all of
        these. After a finding, further trials are those that would follow if what is pending ends as expected.
        """
        if not 0 < count <= MOST_AT_ONCE - len(pending):
            raise ValueError(f"at most {MOST_AT_ONCE} trials at once, not {count} beside {len(pending)}")
        room = self._options.budget - len(history) - len(pending)
        first = self.next(history)
        if isinstance(first, Conclusion):
            return () if pending else first
        count = min(count, room)
        situation = self._situation(history)
        if not situation.evidence.any_failed:
            return (first,) * count
        batch = [] if first.configuration in pending else [first]
        waiting = [*pending, *(step.configuration for step in batch)]
        for step in self._fixed_arms(situation):
            if len(batch) < count and step.configuration not in waiting:
                batch.append(step)
                waiting.append(step.configuration)
        if len(batch) < count:
            batch += self._further(situation, waiting, count - len(batch))
        return tuple(batch[:count])

    def _further(
        self, situation: Situation, waiting: Sequence[Configuration], count: int
    ) -> Sequence[Proposal]:
        readings = [situation.space.read(configuration) for configuration in waiting]
        if not situation.known and not situation.misfit:
            exact = [reading.low for reading in readings if reading.exact]
            return Explorer(situation, self._options, None).together(exact, count)
        # What follows if all that runs ends as it is expected to; a strategy of its own, as it is not what was seen.
        imagined = list(situation.evidence.history)
        predictor = Predictor(situation.posterior, situation.evidence)
        found: list[Proposal] = []
        for _ in range(len(waiting) + 2 * count):
            taken = {*waiting, *(step.configuration for step in found)}
            if len(imagined) - len(situation.evidence.history) < len(waiting):
                configuration = waiting[len(imagined) - len(situation.evidence.history)]
            else:
                step = self._imagining().next(imagined)
                if isinstance(step, Conclusion) or len(found) == count:
                    break
                if step.configuration not in taken:
                    found.append(step)
                configuration = step.configuration
            failing = float(predictor.predict([situation.space.read(configuration).low])[0][0])
            outcome = Outcome.FAIL if failing > 0.5 else Outcome.PASS
            imagined.append(Observation(configuration, outcome, "search", trial=-len(imagined)))
        return found

    def conclude(self, history: Sequence[Observation], why: str) -> Conclusion:
        """What the trials so far allow to say, no further trial granted; `why` is a sentence for the report."""
        return self._ended(self._situation(history), why)

    def belief(self, history: Sequence[Observation]) -> list[tuple[tuple[str, ...], float]]:
        """The best sets with their probabilities; the empty tuple stands for "none of these"."""
        situation = self._situation(history)
        space = situation.space
        rows = [(space.names(cause.mask), situation.probability(cause)) for cause in situation.known]
        rows += [
            (space.names(mask), chance)
            for mask, chance in situation.ranking.top(_SHOWN_SETS)
            if mask not in (0, NEVER) and chance > 0.0
        ]
        none = min(situation.ranking.of(0) + situation.posterior.misfit, 1.0)
        return sorted([*rows[:_SHOWN_SETS], ((), none)], key=lambda row: -row[1])

    def prior_of(self, names: Sequence[str]) -> float:
        """The probability of a set of factors before any trial. Raises KeyError for a factor that is not varied."""
        situation = self._situation([])
        return situation.ranking.of(situation.space.mask(names))

    def told(self, history: Sequence[Observation]) -> Told:
        """What the last trial of the history was expected to tell, and what it told."""
        earlier = history[:-1]
        before = self._situation(earlier)
        shown = tuple(self.belief(earlier)[:_SHOWN_BEFORE_AND_AFTER])
        after = self._situation(history)
        return account(before, after, (shown, tuple(self.belief(history)[:_SHOWN_BEFORE_AND_AFTER])))

    def expected_remaining(self, history: Sequence[Observation]) -> int:
        """The predicted number of further trials, without refinements that depend on what is found."""
        situation = self._situation(history)
        evidence = situation.evidence
        arms = sum(1 for _, arm in self._arms if not evidence.of(arm).attempts)
        first = (
            {situation.space.full, situation.all_safe or 0}
            if self._all_safe_first
            else {situation.space.full}
        )
        opening = sum(1 for mask in first if not evidence.at(mask).attempts)
        if situation.known:
            workaround = Explorer(situation, self._options, None).workaround()
            return arms + opening + (workaround is not None)
        ranking = situation.ranking
        chances = ranking.chances[ranking.chances > 0.0]
        bits = float(-(chances * np.log2(chances)).sum())
        rate = max(situation.posterior.expected_rate(), 0.1)
        confirming = 1 + sum(
            chance * len(situation.confirmation(mask).missing())
            for mask, chance in ranking.top(4)
            if chance > 0.1
        )
        return arms + opening + round((bits / _BITS_OF_A_TRIAL + confirming) / rate)

    # --- the steps, in their order -------------------------------------------------------------------------

    def _again_baseline(self, situation: Situation) -> Proposal:
        passes = len(situation.evidence.of(self._baseline).passed)
        times = "once" if passes == 1 else f"{passes} times"
        reason = f"it passed {times}: once more" if passes else "the user's launch as it is"
        return Proposal(self._baseline, "baseline", "baseline", reason)

    def _repetition(self, situation: Situation) -> Proposal | None:
        """The last configuration again, while it was tried fewer times than asked."""
        last = situation.evidence.history[-1]
        attempts = situation.evidence.of(last.configuration).attempts
        if attempts >= self._options.repeat:
            return None
        reason = f"each configuration is tried {self._options.repeat} times: {attempts} so far"
        purpose: Purpose = next((word for word in get_args(Purpose) if word == last.purpose), "search")
        return self._named(situation, last.configuration, purpose, reason)

    def _fixed_arm(self, situation: Situation) -> Proposal | None:
        return next(self._fixed_arms(situation), None)

    def _fixed_arms(self, situation: Situation) -> Iterator[Proposal]:
        """All safe where it is wanted first, then the arms that the user asked for."""
        mask = situation.all_safe if self._all_safe_first else None
        done = any(trial.purpose == "all_safe" for trial in situation.evidence.history)
        if mask is not None and not done and not situation.evidence.at(mask).attempts:
            reason = "does it fail with everything at its safe level too?"
            yield self._named(situation, situation.space.configuration(mask), "all_safe", reason)
        for arm, configuration in self._arms:
            tried = situation.evidence.of(configuration).attempts
            if not tried and self._can_run(configuration) is None:
                yield Proposal(configuration, "arm", arm.name, "an arm that was asked for")

    def _next_cause(
        self, situation: Situation, explorer: Explorer, alive: Configuration | None
    ) -> Proposal | Conclusion:
        if not situation.known:
            if situation.fails_all_safe >= self._options.asked:
                return conclude(situation, ExperimentOutcome.ALL_SAFE_FAILS, self._options)
            return explorer.next() or self._ended(situation, "no further trial would tell anything")
        proposal = explorer.all_safe() or explorer.workaround()
        if proposal is None and self._further_cause(situation) and not explorer.obscured:
            proposal = explorer.next()
        if proposal is None and situation.probability(situation.known[-1]) < self._options.asked:
            proposal = Explorer(situation.doubting, self._options, alive).next()
        return proposal or self._refinement(situation) or self._done(situation)

    def _further_cause(self, situation: Situation) -> bool:
        return situation.no_more < self._options.asked and len(situation.known) < _MOST_CAUSES

    def _refinement(self, situation: Situation) -> Proposal | None:
        refinements = (Refinement(situation, cause, self._options).next() for cause in situation.known)
        return next((proposal for proposal in refinements if proposal is not None), None)

    def _done(self, situation: Situation) -> Conclusion:
        return conclude(situation, ExperimentOutcome.ISOLATED, self._options)

    def _ended(self, situation: Situation, why: str) -> Conclusion:
        """The conclusion of a search that ends before it is done."""
        if not situation.evidence.any_failed:
            return conclude(situation, ExperimentOutcome.NO_FAILURE, self._options, why)
        outcome = ExperimentOutcome.ISOLATED if situation.known else ExperimentOutcome.INCONCLUSIVE
        return conclude(situation, outcome, self._options, why)

    def _imagining(self) -> "Strategy":
        """The same strategy without memory, for histories that did not happen."""
        other = copy(self)
        other._latest = ((), (), None)
        return other

    # --- helpers -------------------------------------------------------------------------------------------

    def _situation(self, history: Sequence[Observation]) -> Situation:
        """The state after a history. A cause that was once confirmed stays known: what comes after belongs to
        the search for another one. So the history is gone through in order; what is remembered only saves time.
        """
        seen, known, latest = self._latest
        if latest is not None and tuple(history) == seen:
            return latest
        if tuple(history[: len(seen)]) != seen:
            seen, known = (), ()
        for length in range(len(seen) + 1, len(history) + 1):
            part = tuple(history[:length])
            if part[-1].outcome in (Outcome.PASS, Outcome.FAIL):
                known = self._confirmed(part, known)
        situation = self._bare(history, known)
        self._latest = (tuple(history), known, situation)
        return situation

    def _bare(self, history: Sequence[Observation], known: tuple[Cause, ...]) -> Situation:
        space, feasible, suspicious = self._stand_ins(history)
        return Situation(space, feasible, history, known, self._options.repeat, suspicious)

    def _confirmed(self, history: tuple[Observation, ...], known: tuple[Cause, ...]) -> tuple[Cause, ...]:
        """The known causes and those that the last trial has confirmed; none where all safe fails too."""
        if self._bare(history, known).acquitted:
            return ()
        while len(known) < _MOST_CAUSES:
            situation = self._bare(history, known)
            cause = situation.confirmed() if _straddles(situation) else None
            if cause is None or cause.probability < self._options.asked:
                break
            # A known cause that contains the new one was not minimal after all.
            known = (*(other for other in known if other.mask & cause.mask != cause.mask), cause)
        return known

    def _stand_ins(self, history: Sequence[Observation]) -> tuple[Space, Feasible, int]:
        """The space with a safe level for every factor that can be judged, and the mask of the factors whose
        level was changed: where the preferred one can't run or spoils the trials, the next one stands in; if
        none is any good, the preferred one does."""
        levels = {factor.name: factor.safe[0] for factor in self._factors}
        given_up: set[str] = set()
        while True:
            space, feasible = self._space(levels)
            changed = [factor.name for factor in space.varied if levels[factor.name] != factor.safe[0]]
            suspicious = space.mask([*changed, *given_up])
            held = feasible.held | Hazard(Evidence(space, history), suspicious).held
            stuck = [factor for factor in space.varied if held & space.mask([factor.name])]
            moved = [factor for factor in stuck if factor.name not in given_up and len(factor.safe) > 1]
            if not moved:
                return space, feasible, suspicious
            for factor in moved:
                place = factor.safe.index(levels[factor.name]) + 1
                if place == len(factor.safe):
                    given_up.add(factor.name)
                levels[factor.name] = factor.safe[place % len(factor.safe)]

    def _space(self, levels: dict[str, str]) -> tuple[Space, Feasible]:
        key = tuple(levels[factor.name] for factor in self._factors)
        if key not in self._spaces:
            space = Space(self._factors, levels)
            self._spaces[key] = (space, Feasible(space, self._can_run))
        return self._spaces[key]

    def _named(
        self, situation: Situation, configuration: Configuration, purpose: Purpose, reason: str
    ) -> Proposal:
        arms = (arm.name for arm, levels in self._arms if levels == configuration)
        name = next(arms, None) or configuration_name(situation.space, configuration)
        return Proposal(configuration, purpose, name, reason)


def threshold_trials(factors: Sequence[Factor]) -> tuple[tuple[str, ...], int]:
    """The numeric factors, whose thresholds are searched if they are found at fault, and the most trials for each."""
    return tuple(factor.name for factor in factors if factor.ordered), MOST_TRIALS + MOST_CHECKS


def _straddles(situation: Situation) -> bool:
    """A failing and a passing configuration differ in one factor: without that nothing can be confirmed."""
    cells = situation.evidence.by_mask
    passing = {mask for mask, cell in cells.items() if cell.passed}
    return any(
        mask & ~bit in passing
        for mask, cell in cells.items()
        if cell.failed
        for bit in situation.space.members(mask)
    )
