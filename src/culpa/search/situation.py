"""All that a history implies at one moment: evidence, posterior, what can be tested, what is confirmed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from culpa.model import Observation
from culpa.search.confirm import Confirmation
from culpa.search.descent import Descent, own_certainty
from culpa.search.evidence import Evidence
from culpa.search.feasible import Feasible
from culpa.search.hazard import UNTESTABLE, Hazard
from culpa.search.hypotheses import NEVER, Floats, Masks, hypotheses, widened
from culpa.search.posterior import MOST_CERTAIN, Posterior, own_rate, pass_likelihood, posterior
from culpa.search.space import Space

_WIDEN = 0.01  # probability of "none of these" from which on wider hypotheses are looked at
_FAILS_ALL_SAFE = 2  # failures of all safe, and no pass, after which it fails whatever else was seen
_MISFIT = 0.5  # probability of "none of these" from which on sets are given up for delta debugging


@dataclass(frozen=True, slots=True)
class Cause:
    """A confirmed set: its mask, the factors held at suspect in its arms, its probability when confirmed.

    `untestable` masks the factors of which it could not be told whether they belong to the set: sets that
    differ in them only count as this one. It stays as it was when the set was confirmed, so that trials that
    are no evidence can't change the probability. `by_descent` marks a set that rests on its own trials alone,
    since no hypothesis explained all of them.
    """

    mask: int
    held: int
    probability: float
    untestable: int = 0
    by_descent: bool = False


@dataclass(frozen=True)
class Ranking:
    """Sets (sorted masks) and the probability of each being a cause."""

    masks: Masks
    chances: Floats

    def of(self, mask: int) -> float:
        """The probability of one set, 0 if it is not enumerated."""
        place = int(np.searchsorted(self.masks, np.uint64(mask)))
        found = place < self.masks.size and int(self.masks[place]) == mask
        return float(self.chances[place]) if found else 0.0

    def top(self, count: int) -> list[tuple[int, float]]:
        """The likeliest sets, likeliest first."""
        size = self.chances.size
        # All that are at least as likely as the last one wanted: to sort them all would take longer than to weigh them.
        least = np.partition(self.chances, size - count)[size - count] if 0 < count < size else 0.0
        near = np.flatnonzero(self.chances >= least)
        order = near[np.argsort(-self.chances[near], kind="stable")[:count]]
        return [(int(self.masks[place]), float(self.chances[place])) for place in order]


class Situation:
    """The state of the search after a history, given the causes that are confirmed. Computed lazily."""

    def __init__(
        self,
        space: Space,
        feasible: Feasible,
        history: Sequence[Observation],
        known: tuple[Cause, ...] = (),
        repeat: int = 1,
        suspicious: int = 0,
    ) -> None:
        self.space = space
        self.feasible = feasible
        self.known = known
        self.repeat = repeat
        self.evidence = Evidence(space, history)
        self.suspicious = suspicious
        self.hazard = Hazard(self.evidence, suspicious)
        self.held = self.hazard.held | feasible.held

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior over the next cause, given the known ones."""
        priors = tuple(factor.prior for factor in self.space.varied)
        table = hypotheses(priors, tuple(cause.mask for cause in self.known), self._core())
        found = posterior(table, self.evidence)
        if self.known or found.misfit < _WIDEN:
            return found
        return posterior(widened(table, pass_likelihood(table, self.evidence)), self.evidence)

    def _core(self) -> int:
        """What all failures that no known cause explains have in common."""
        core = self.space.full
        for cell in self.evidence.cells:
            explained = any(cell.reading.high & cause.mask == cause.mask for cause in self.known)
            if cell.failed and not explained:
                core &= cell.reading.high
        return core

    def causes(self, held: int) -> "Ranking":
        """The probabilities of all sets of being a cause, where sets that differ only in `held` factors can't
        be told apart and count as one."""
        terms = self.posterior.hypotheses.terms & np.uint64(~held & (2**64 - 1))
        masks, inverse = np.unique(terms, return_inverse=True)
        mass = np.bincount(inverse, self.posterior.causes(), minlength=masks.size)
        return Ranking(masks, np.minimum(mass, MOST_CERTAIN))

    @cached_property
    def ranking(self) -> "Ranking":
        """`causes` modulo the factors that can't be tested; mask 0 says that it fails whatever is varied."""
        return self.causes(self.held)

    @cached_property
    def best(self) -> tuple[int, float]:
        """The likeliest set that is not empty, with its probability; (0, 0.0) if there is none."""
        return next((item for item in self.ranking.top(3) if item[0] not in (0, NEVER)), (0, 0.0))

    @property
    def no_more(self) -> float:
        """The probability that there is no further cause beside the known ones."""
        return self.ranking.of(NEVER)

    @property
    def misfit(self) -> bool:
        """No hypothesis explains the trials: "none of these" is likelier than all of them together."""
        return self.posterior.misfit > _MISFIT

    @cached_property
    def descent(self) -> Descent:
        """Plain delta debugging from here."""
        return Descent(self.evidence, self.held, tuple(cause.mask for cause in self.known), self.usable)

    @cached_property
    def all_safe(self) -> int | None:
        """The configuration nearest to all safe that can run, None if only the user's launch can."""
        mask = self.feasible.nearest(0, 0, lambda tried: self.feasible.reason(tried) is None)
        return None if mask == self.space.full else mask

    def usable(self, mask: int) -> bool:
        """Whether a configuration can run and is likely to say something."""
        return self.feasible.reason(mask) is None and self.hazard.chance(mask) < UNTESTABLE

    def confirmation(self, mask: int) -> Confirmation:
        """How far a set is confirmed, holding at suspect what its arms can't do without."""
        held = self.held & ~mask
        for arm in (mask, *(mask & ~bit for bit in self.space.members(mask))):
            fixed = mask
            near = self.feasible.nearest(arm | held, fixed, self.usable)
            if near is not None:
                held |= near & ~mask
        return Confirmation(mask, held, self.evidence, self.repeat)

    def confirmation_of(self, cause: Cause) -> Confirmation:
        """The arms by which a known cause was confirmed, with the trials that they have by now."""
        return Confirmation(cause.mask, cause.held, self.evidence, self.repeat)

    def sure(self, mask: int) -> float:
        """The probability of a set, where sets that differ only in what can't be tested beside it are one."""
        untestable = self._untestable(mask, self.confirmation(mask).held)
        return self.ranking.of(mask) if untestable == self.held else self.causes(untestable).of(mask)

    def _untestable(self, mask: int, held: int) -> int:
        return (self.held & ~mask) | self._untestable_beside(mask, held)

    def _untestable_beside(self, mask: int, held: int) -> int:
        """Of the factors that the confirming arms hold at suspect, those that no usable configuration could
        have at safe while the set is suspect."""
        untestable = 0
        for bit in self.space.members(held & ~self.held):
            others = self.space.full & ~bit
            near = self.feasible.nearest((mask | held) & ~bit, mask | bit, self.usable)
            if near is None and not self.usable(others):
                untestable |= bit
        return untestable

    def confirmed(self) -> Cause | None:
        """The best set, if its arms are all in. The caller compares its probability with the asked one."""
        if self.misfit:
            found = self.descent.minimal()
            return None if found is None else Cause(found[0], self.held, found[1], self.held, by_descent=True)
        mask, _ = self.best
        if not mask:
            return None
        confirmation = self.confirmation(mask)
        if not confirmation.complete:
            return None
        untestable = self._untestable(mask, confirmation.held)
        return Cause(mask, confirmation.held, self.causes(untestable).of(mask), untestable)

    def probability(self, cause: Cause) -> float:
        """The probability of a known cause by all trials so far. With several causes it is the one at which
        it was confirmed: by then the trials that belong to the others were not in."""
        if cause.by_descent:
            return min(own_certainty(self.confirmation_of(cause)), MOST_CERTAIN)
        if len(self.known) > 1:
            return cause.probability
        return self.doubting.causes(cause.untestable).of(cause.mask)

    @cached_property
    def doubting(self) -> "Situation":
        """The same trials, with no cause taken as known."""
        return Situation(self.space, self.feasible, self.evidence.history, (), self.repeat, self.suspicious)

    @cached_property
    def fails_all_safe(self) -> float:
        """The probability that all safe really fails; 0 where it passed, or never failed.

        Where something else passed, no hypothesis says so, and its own trials are all there is: after one failure
        as far as no set explains the trials, after two as they are.
        """
        cell = self.evidence.at(self.all_safe) if self.all_safe is not None else None
        if self.known or cell is None or not cell.failed or cell.passed:
            return 0.0
        if any(other.passed for other in self.evidence.cells):
            weight = 1.0 if len(cell.failed) >= _FAILS_ALL_SAFE else self.posterior.misfit
            return min(weight * own_rate(cell), MOST_CERTAIN)
        return min(self.ranking.of(0) + self.posterior.misfit * own_rate(cell), MOST_CERTAIN)

    @cached_property
    def acquitted(self) -> bool:
        """Whether all safe failed so often that no factor can be accused, whatever passed elsewhere."""
        cell = self.evidence.at(self.all_safe) if self.all_safe is not None else None
        return cell is not None and len(cell.failed) >= _FAILS_ALL_SAFE and not cell.passed

    def membership(self, bit: int) -> float:
        """At most this is the probability that a cause contains the factor of a bit (beside held ones)."""
        table, weight = self.posterior.hypotheses, self.posterior.weight
        if len(self.known) == 1:
            table, weight = self.doubting.posterior.hypotheses, self.doubting.posterior.weight
        inside = ((table.first | table.second) & np.uint64(bit)) != 0
        mass = float(weight[inside].sum())
        if len(self.known) > 1:
            mass += sum(1.0 - cause.probability for cause in self.known)
        return min(mass, 1.0)
