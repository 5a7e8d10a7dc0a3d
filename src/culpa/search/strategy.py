"""The order of a search: baseline, all safe, the user's arms, search, confirmation, conclusion."""

from collections.abc import Callable, Sequence

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
from culpa.search.choose import Choice, Predictor, candidates, choose
from culpa.search.conclude import conclude
from culpa.search.feasible import Feasible
from culpa.search.hypotheses import NEVER, Floats
from culpa.search.proposal import Proposal, Purpose
from culpa.search.situation import Cause, Situation
from culpa.search.space import Space
from culpa.search.wording import arm_name, listed, percent

_CONFIRM_FROM = 0.85  # probability from which on a set's confirming arms are the best trials there are
_CONFIRMING_BITS = 0.8  # what a trial is worth that will be needed anyway if a set is right
_NOTHING_LEFT = 1e-3  # bits below which no trial is worth its cost
_LAST_RESORT = 400  # trials after which a search without a budget of its own ends


def _anything_runs(configuration: Configuration) -> str | None:
    return None


class Strategy:
    """Chooses trials. Pure: the next step follows from the history, the seed and what is alive, so that a
    resumed search goes on as if it had never stopped.

    `confidence` is asked of a finding, `max_trials` bounds all trials of the history, every configuration is
    tried at least `repeat` times, `arms` are always run. Costs are relative: `relaunch_cost` where a
    launch-scope level differs from what is alive, else `request_cost`. `thresholds` asks for the boundaries
    of numeric members. `can_run` gives the reason why a configuration can't run, None if it can; it must be a
    pure function. Raises ValueError for factors or arms that contradict each other.
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
        can_run: Callable[[Configuration], str | None] = _anything_runs,
    ) -> None:
        self._space = Space(factors)
        self._confidence = min(confidence, 0.998)
        self._max_trials = _LAST_RESORT if max_trials is None else max_trials
        self._repeat = max(repeat, 1)
        self._seed = seed
        self._relaunch_cost = relaunch_cost
        self._request_cost = request_cost
        self._thresholds = thresholds
        self._baseline = all_suspect(factors)
        self._arms = [(arm, self._arm_configuration(arm)) for arm in arms]
        self._feasible = Feasible(self._space, can_run)
        self._launch_names = frozenset(factor.name for factor in factors if factor.scope == "launch")
        self._memo: tuple[tuple[Observation, ...], tuple[Cause, ...]] = ((), ())

    def next(
        self, history: Sequence[Observation], alive: Configuration | None = None
    ) -> Proposal | Conclusion:
        """The next trial, or the conclusion. `alive` is the configuration of an engine that still serves."""
        situation = self._situation(history)
        if len(history) >= self._max_trials:
            return self._give_up(situation, f"the budget of {self._max_trials} trials ended the search")
        if not situation.evidence.any_failed:
            return self._again_baseline(situation)
        return self._repetition(situation) or self._fixed_arm(situation) or self._next_cause(situation, alive)

    def belief(self, history: Sequence[Observation]) -> list[tuple[tuple[str, ...], float]]:
        """The best sets with their probabilities; the empty tuple stands for "none of these"."""
        situation = self._situation(history)
        named = [
            (self._space.names(mask), chance)
            for mask, chance in situation.ranking.top(9)
            if mask not in (0, NEVER) and chance > 0.0
        ]
        known = [(self._space.names(cause.mask), cause.probability) for cause in situation.known]
        none = min(situation.ranking.of(0) + situation.posterior.misfit, 1.0)
        return [*known, *sorted([*named[:8], ((), none)], key=lambda item: -item[1])]

    def expected_remaining(self, history: Sequence[Observation]) -> int:
        """The predicted number of further trials."""
        situation = self._situation(history)
        weight = situation.posterior.weight
        weight = weight[weight > 0.0]
        bits = float(-(weight * np.log2(weight)).sum())
        opening = sum(
            1
            for cell in (situation.evidence.at(self._space.full), situation.evidence.at(0))
            if not cell.attempts
        )
        arms = sum(1 for _, configuration in self._arms if not situation.evidence.of(configuration).attempts)
        return opening + arms + round(bits / 0.8) + 3

    # --- the steps, in their order -------------------------------------------------------------------------

    def _again_baseline(self, situation: Situation) -> Proposal:
        passes = len(situation.evidence.of(self._baseline).passed)
        reason = "the user's launch as it is"
        if passes:
            reason = f"no failure seen in {passes} trials of the user's launch: once more"
        return Proposal(self._baseline, "baseline", "baseline", reason)

    def _repetition(self, situation: Situation) -> Proposal | None:
        """The last configuration again, while it was tried fewer times than asked."""
        last = situation.evidence.history[-1]
        attempts = situation.evidence.of(last.configuration).attempts
        if attempts >= self._repeat:
            return None
        mask = self._space.read(last.configuration).low
        return Proposal(
            last.configuration,
            _purpose(last.purpose),
            arm_name(self._space, mask),
            f"each configuration is tried {self._repeat} times: {attempts} so far",
        )

    def _fixed_arm(self, situation: Situation) -> Proposal | None:
        """All safe, then the arms that the user asked for."""
        mask = self._feasible.nearest(0, 0, lambda tried: self._feasible.reason(tried) is None)
        if mask is not None and mask != self._space.full and not situation.evidence.at(mask).attempts:
            reason = "does it fail with everything at its safe level too?"
            return self._proposal(mask, "all_safe", reason, situation)
        for arm, configuration in self._arms:
            tried = situation.evidence.of(configuration).attempts
            if not tried and self._feasible.refuses(configuration) is None:
                return Proposal(configuration, "arm", arm.name, "an arm that was asked for")
        return None

    def _next_cause(self, situation: Situation, alive: Configuration | None) -> Proposal | Conclusion:
        if situation.known:
            return conclude(situation, ExperimentOutcome.ISOLATED, self._confidence, "")
        if situation.ranking.of(0) >= self._confidence:
            return conclude(situation, ExperimentOutcome.ALL_SAFE_FAILS, self._confidence, "")
        return self._confirming(situation) or self._searching(situation, alive)

    def _confirming(self, situation: Situation) -> Proposal | None:
        mask, chance = situation.best
        if chance < min(self._confidence, _CONFIRM_FROM):
            return None
        names = listed(self._space.names(mask))
        for arm in situation.confirmation(mask).missing():
            if not situation.usable(arm.mask):
                continue
            if arm.purpose == "sufficient":
                reason = f"{names} ({percent(chance)}): does it fail with all else safe?"
            else:
                left_out = self._space.factor(arm.without).name
                reason = f"{names} ({percent(chance)}): does it pass without {left_out}?"
            return self._proposal(arm.mask, arm.purpose, reason, situation)
        return None

    def _searching(self, situation: Situation, alive: Configuration | None) -> Proposal | Conclusion:
        predictor = Predictor(situation.posterior, situation.evidence)
        choice = self._best_choice(situation, predictor, alive)
        if choice is None or choice.bits < _NOTHING_LEFT:
            return self._give_up(situation, "no further trial would tell anything")
        reason = f"predicted to fail with probability {percent(choice.failing)}: tells {choice.bits:.2f} bits"
        return self._proposal(choice.mask, "search", reason, situation, choice.bits)

    def _best_choice(
        self, situation: Situation, predictor: Predictor, alive: Configuration | None
    ) -> Choice | None:
        space, held = self._space, situation.held
        likely = [item for item in situation.ranking.top(12) if item[0] not in (0, NEVER)]
        bonus: dict[int, float] = {}
        for mask, chance in likely[:4]:
            for arm in situation.confirmation(mask).missing() if chance > 0.02 else ():
                bonus[arm.mask] = bonus.get(arm.mask, 0.0) + chance * _CONFIRMING_BITS

        def score(masks: Sequence[int], bits: Floats) -> Floats:
            sure = 1.0 - situation.hazard.chances(list(masks))
            extra = np.array([bonus.get(mask, 0.0) for mask in masks])
            cost = np.array([self._cost(mask, alive) for mask in masks])
            return np.asarray((bits + extra) * sure / cost)

        random = np.random.default_rng([self._seed, len(situation.evidence.history)])
        start = candidates(random, space.full, held, (mask for mask, _ in likely), situation.evidence)
        start += [mask for mask in bonus if mask not in start]
        ranked = choose(predictor, start, space.full & ~held, score)
        return next((choice for choice in ranked if self._feasible.reason(choice.mask) is None), None)

    def _give_up(self, situation: Situation, why: str) -> Conclusion:
        if not situation.evidence.any_failed:
            return conclude(situation, ExperimentOutcome.NO_FAILURE, self._confidence, why)
        outcome = ExperimentOutcome.ISOLATED if situation.known else ExperimentOutcome.INCONCLUSIVE
        return conclude(situation, outcome, self._confidence, why)

    # --- helpers -------------------------------------------------------------------------------------------

    def _situation(self, history: Sequence[Observation]) -> Situation:
        """The state after a history. A cause that was once confirmed stays known: what comes after belongs to
        the search for another one. So the history is gone through in order; the memo only saves time."""
        seen, known = self._memo
        if tuple(history[: len(seen)]) != seen:
            seen, known = (), ()
        for length in range(len(seen) + 1, len(history) + 1):
            part = tuple(history[:length])
            if part[-1].outcome in (Outcome.PASS, Outcome.FAIL):
                situation = Situation(self._space, self._feasible, part, known, self._repeat)
                if _straddles(situation):
                    cause = situation.confirmed()
                    if cause is not None and cause.probability >= self._confidence:
                        known = (*known, cause)
        self._memo = (tuple(history), known)
        return Situation(self._space, self._feasible, history, known, self._repeat)

    def _proposal(
        self, mask: int, purpose: Purpose, reason: str, situation: Situation, bits: float | None = None
    ) -> Proposal:
        if bits is None:
            told = Predictor(situation.posterior, situation.evidence).predict([mask])[1]
            bits = float(told[0])
        name = arm_name(self._space, mask)
        return Proposal(self._space.configuration(mask), purpose, name, reason, bits)

    def _cost(self, mask: int, alive: Configuration | None) -> float:
        if alive is None:
            return self._relaunch_cost
        changed = set(self._space.configuration(mask).differing(alive))
        return self._relaunch_cost if changed & self._launch_names else self._request_cost

    def _arm_configuration(self, arm: Arm) -> Configuration:
        factors = {factor.name: factor for factor in self._space.factors}
        for name, level in arm.levels:
            factor = factors.get(name)
            if factor is None:
                raise ValueError(f"arm {arm.name}: there is no factor {name!r}")
            if level != factor.suspect and level not in factor.safe:
                raise ValueError(f"arm {arm.name}: factor {name} has no level {level!r}")
        return self._baseline.with_levels(dict(arm.levels))


def _straddles(situation: Situation) -> bool:
    """A failing and a passing configuration differ in one factor: without that nothing can be confirmed."""
    by_mask = situation.evidence.by_mask
    return any(
        cell.failed
        and any(
            (other := by_mask.get(mask & ~bit)) is not None and other.passed
            for bit in situation.space.members(mask)
        )
        for mask, cell in by_mask.items()
    )


def _purpose(text: str) -> Purpose:
    purposes: dict[str, Purpose] = {
        "baseline": "baseline",
        "all_safe": "all_safe",
        "arm": "arm",
        "search": "search",
        "sufficient": "sufficient",
        "necessary": "necessary",
        "workaround": "workaround",
        "threshold": "threshold",
        "relation": "relation",
        "level": "level",
        "instrument": "instrument",
    }
    return purposes.get(text, "search")
