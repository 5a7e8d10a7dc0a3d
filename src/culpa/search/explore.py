"""The search for the next cause: the most telling trial, the confirming arms, and what to do when no set fits."""

from collections.abc import Sequence
from itertools import islice, product

import numpy as np

from culpa.model import Configuration, Outcome
from culpa.search.batch import Batch
from culpa.search.choose import Choice, Predictor, Predicts, candidates, choose
from culpa.search.evidence import Cell
from culpa.search.hypotheses import NEVER, Floats
from culpa.search.options import Options
from culpa.search.proposal import Proposal, Purpose
from culpa.search.situation import Situation
from culpa.search.wording import arm_name, listed, percent

_CONFIRM_FROM = 0.85  # probability from which on a set's confirming arms are the best trials there are
_WORTH_CONFIRMING = 0.03  # probability of a set from which on its confirming arms get a bonus
_CONFIRMING_BITS = 0.4  # what a trial is worth that will be needed anyway if a set is right
_NOTHING_LEFT = 1e-4  # bits below which no trial is worth its cost; of a rare fault every trial tells little
_WORTH_A_PASS = 1e-3  # bits below which another pass without what was found is not worth its cost
_HARDLY_TELLING = 0.15  # bits below which cheapness counts less and less
_ALL_SAFE_DOUBT = 0.3  # probability of "all safe fails" from which on it is tried again
_ALL_SAFE_TRIALS = 4
_MOST_WORKAROUNDS = 16
_MOST_SPOILED = 3  # trials without a known cause that say nothing, after which no further cause is looked for
_SPOILED_FOR_GOOD = 2  # trials of a configuration that said nothing, after which it is not tried again
_REPAIRED = 12  # choices that can't run of which the neighbourhood is looked at


class Explorer:
    """Chooses the next trial for one situation; every method gives None where it has nothing to propose."""

    def __init__(
        self,
        situation: Situation,
        options: Options,
        alive: Configuration | None,
    ) -> None:
        self._situation = situation
        self._options = options
        self._space = situation.space
        self._alive = None if alive is None else self._space.launch_levels(alive)
        history = situation.evidence.history
        self._last = self._space.read(history[-1].configuration) if history else None

    def next(self) -> Proposal | None:
        """The next trial towards the next cause, None if no trial would tell anything."""
        return self._all_safe_again() or (self._descent() if self._situation.misfit else self._by_model())

    def _by_model(self) -> Proposal | None:
        return self._confirming() or self._informative()

    def all_safe(self) -> Proposal | None:
        """Everything safe, where a finding did without it: a failure there would acquit all factors."""
        mask = self._situation.all_safe
        cell = None if mask is None else self._situation.evidence.at(mask)
        if mask is None or cell is None or cell.passed or cell.spoiled or not self._situation.usable(mask):
            return None
        return self._proposal(
            mask, "all_safe", "what was found did without it: does it pass with everything safe?"
        )

    def workaround(self) -> Proposal | None:
        """The user's launch with one member of every known cause made safe: does it pass?

        None once that is answered: it passed often enough to exclude a further cause, or it failed, which
        sends the search on to the next cause.
        """
        situation = self._situation
        if self.obscured:
            return None
        for mask in self._workarounds():
            cell = situation.evidence.at(mask)
            if cell.failed or (cell.passed and situation.no_more >= self._options.asked):
                return None
            if cell.passed or (not cell.spoiled and situation.usable(mask)):
                names = listed(self._space.names(self._space.full & ~mask))
                reason = f"the user's launch with only {names} made safe: does it pass?"
                proposal = self._proposal(mask, "workaround", reason)
                # Where no single cause explains the trials, no number of passes would make the model sure.
                telling = not cell.passed or proposal.expected_bits >= _WORTH_A_PASS
                return proposal if telling else None
        return None

    @property
    def obscured(self) -> bool:
        """Whether something else shows wherever the known causes are gone: trial after trial there says
        nothing, so that a further cause can't be looked for. A trial that says something starts the count
        anew."""
        evidence, known = self._situation.evidence, self._situation.known
        spoiled = 0
        for trial in evidence.history:
            reading = self._space.read(trial.configuration)
            if not known or any(reading.high & cause.mask == cause.mask for cause in known):
                continue
            judged = trial.outcome in (Outcome.PASS, Outcome.FAIL)
            spoiled = 0 if judged else spoiled + 1
        return spoiled >= _MOST_SPOILED

    def _workarounds(self) -> list[int]:
        """Masks with one member of every known cause safe, the most natural members first."""
        situation, space = self._situation, self._space

        def natural(bit: int) -> tuple[bool, float, int]:
            factor = space.factor(bit)
            # A setting of the launch is something that an operator can change; what is asked mostly is not.
            return factor.scope != "launch", -factor.prior, bit

        choices = [sorted(space.members(cause.mask), key=natural) for cause in situation.known]
        found = [space.full & ~int(np.bitwise_or.reduce(bits)) for bits in product(*choices)]
        found.sort(key=lambda mask: -mask.bit_count())  # stable: fewest changes first, then as above
        return list(islice(dict.fromkeys(found), _MOST_WORKAROUNDS))

    def _all_safe_again(self) -> Proposal | None:
        """All safe failed once: a false failure, or does it fail whatever is varied?"""
        mask = self._situation.all_safe
        if mask is None or self._situation.fails_all_safe < _ALL_SAFE_DOUBT:
            return None
        if self._situation.evidence.at(mask).attempts >= _ALL_SAFE_TRIALS:
            return None
        return self._proposal(mask, "all_safe", "it failed with everything safe: does it do so again?")

    def _confirming(self) -> Proposal | None:
        situation = self._situation
        mask, _ = situation.best
        chance = situation.sure(mask) if mask else 0.0
        if chance < min(self._options.asked, _CONFIRM_FROM):
            return None
        names = listed(self._space.names(mask))
        for arm in situation.confirmation(mask).missing():
            if not situation.usable(arm.mask):
                continue
            if arm.purpose == "sufficient":
                reason = f"{names} ({percent(chance)}): does it fail with all else safe?"
            else:
                reason = f"{names} ({percent(chance)}): does it pass without {self._name(arm.without)}?"
            return self._proposal(arm.mask, arm.purpose, reason)
        return None

    def _informative(self) -> Proposal | None:
        predictor = Predictor(self._situation.posterior, self._situation.evidence)
        return self._most_telling(predictor, self._confirming_bonus())

    def together(self, taken: Sequence[int], count: int) -> list[Proposal]:
        """Up to `count` trials that tell the most together with those that are `taken` already."""
        batch = Batch(Predictor(self._situation.posterior, self._situation.evidence))
        bonus = self._confirming_bonus()
        for mask in taken:
            batch.add(mask)
            bonus.pop(mask, None)
        found: list[Proposal] = []
        while len(found) < count:
            step = self._most_telling(batch, bonus)
            if step is None:
                break
            mask = self._space.read(step.configuration).low
            batch.add(mask)
            bonus.pop(mask, None)
            found.append(step)
        return found

    def _most_telling(self, predictor: Predicts, bonus: dict[int, float]) -> Proposal | None:
        choice = self._best_choice(predictor, bonus)
        if choice is None or (choice.bits < _NOTHING_LEFT and choice.mask not in bonus):
            return None
        reason = f"expected to fail with probability {percent(choice.failing)}: tells {choice.bits:.2f} bits"
        purpose: Purpose = "all_safe" if choice.mask == self._situation.all_safe else "search"
        return self._proposal(choice.mask, purpose, reason, choice.bits)

    def _likely(self, count: int) -> list[tuple[int, float]]:
        return [item for item in self._situation.ranking.top(count) if item[0] not in (0, NEVER)]

    def _confirming_bonus(self) -> dict[int, float]:
        """Bits that the arms still missing for the likeliest sets are worth on top of what they tell now."""
        bonus: dict[int, float] = {}
        for mask, chance in self._likely(4):
            for arm in self._situation.confirmation(mask).missing() if chance > _WORTH_CONFIRMING else ():
                if self._situation.usable(arm.mask):
                    bonus[arm.mask] = bonus.get(arm.mask, 0.0) + chance * _CONFIRMING_BITS
        return bonus

    def _best_choice(self, predictor: Predicts, bonus: dict[int, float]) -> Choice | None:
        situation, space = self._situation, self._space
        likely = [mask for mask, _ in self._likely(12)]

        def score(masks: Sequence[int], bits: Floats) -> Floats:
            telling = 1.0 - situation.hazard.chances(list(masks))
            extra = np.array([bonus.get(mask, 0.0) for mask in masks])
            worth = bits + extra
            # However cheap it is, a trial that tells next to nothing is one more line in the report to read.
            return np.asarray(worth * np.minimum(1.0, worth / _HARDLY_TELLING) * telling / self._costs(masks))

        random = np.random.default_rng([self._options.seed, len(situation.evidence.history)])
        start = candidates(random, space.full, situation.held, likely, situation.evidence)
        start += [mask for mask in (*bonus, situation.all_safe) if mask is not None and mask not in start]
        ranked = choose(predictor, start, space.full & ~situation.held, score)
        return self._runnable(ranked) or self._runnable(choose(predictor, self._repaired(ranked), 0, score))

    def _runnable(self, ranked: list[Choice]) -> Choice | None:
        feasible, evidence = self._situation.feasible, self._situation.evidence

        def in_vain(cell: Cell) -> bool:
            return len(cell.spoiled) >= _SPOILED_FOR_GOOD and not cell.failed and not cell.passed

        runnable = (choice for choice in ranked if feasible.reason(choice.mask) is None)
        return next((choice for choice in runnable if not in_vain(evidence.at(choice.mask))), None)

    def _repaired(self, ranked: list[Choice]) -> list[int]:
        """What can run near the best choices, for launches of which little else can."""
        feasible = self._situation.feasible
        near = [
            feasible.nearest(choice.mask, 0, lambda mask: feasible.reason(mask) is None)
            for choice in ranked[:_REPAIRED]
        ]
        return list(dict.fromkeys(mask for mask in near if mask is not None))

    def _descent(self) -> Proposal | None:
        mask = self._situation.descent.next_step(self._options.asked)
        if mask is None:
            return None
        return self._proposal(mask, "search", "no small set explains the outcomes: cutting a failure down")

    def _proposal(self, mask: int, purpose: Purpose, reason: str, bits: float | None = None) -> Proposal:
        if bits is None:
            told = Predictor(self._situation.posterior, self._situation.evidence).predict([mask])[1]
            bits = float(told[0])
        return Proposal(self._space.configuration(mask), purpose, arm_name(self._space, mask), reason, bits)

    def _costs(self, masks: Sequence[int]) -> Floats:
        """A relaunch where a launch-scope level differs from what is alive, else only another request.

        Another trial of the last configuration is a relaunch too: on the same engine it would not be independent.
        """
        last = self._last.low if self._last is not None and self._last.exact else None
        same = np.array([mask & self._space.launch_bits == self._alive and mask != last for mask in masks])
        return np.where(same, self._options.request_cost, self._options.relaunch_cost)

    def _name(self, bit: int) -> str:
        return self._space.factor(bit).name
