"""All that a history implies at one moment: evidence, posterior, what can be tested, what is confirmed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from culpa.model import Observation
from culpa.search.confirm import Confirmation
from culpa.search.evidence import Evidence
from culpa.search.feasible import Feasible
from culpa.search.hazard import Hazard
from culpa.search.hypotheses import NEVER, Floats, Masks, hypotheses
from culpa.search.posterior import MOST_CERTAIN, Posterior, posterior
from culpa.search.space import Space

_TOO_RISKY = 0.5  # a chance to be spoiled above which an arm is replaced by the nearest better one


@dataclass(frozen=True, slots=True)
class Cause:
    """A confirmed set: its mask, the factors held at suspect in its arms, its probability when confirmed."""

    mask: int
    held: int
    probability: float


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
        order = np.argsort(-self.chances, kind="stable")[:count]
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
    ) -> None:
        self.space = space
        self.feasible = feasible
        self.known = known
        self.repeat = repeat
        self.evidence = Evidence(space, history)
        self.hazard = Hazard(self.evidence)
        self.held = self.hazard.held | feasible.held

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior over the next cause, given the known ones."""
        priors = tuple(factor.prior for factor in self.space.varied)
        return posterior(hypotheses(priors, tuple(cause.mask for cause in self.known)), self.evidence)

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

    @cached_property
    def all_safe(self) -> int | None:
        """The configuration nearest to all safe that can run, None if only the user's launch can."""
        mask = self.feasible.nearest(0, 0, lambda tried: self.feasible.reason(tried) is None)
        return None if mask == self.space.full else mask

    def usable(self, mask: int) -> bool:
        """Whether a configuration can run and is likely to say something."""
        return self.feasible.reason(mask) is None and self.hazard.chance(mask) < _TOO_RISKY

    def confirmation(self, mask: int) -> Confirmation:
        """How far a set is confirmed, holding at suspect what its arms can't do without."""
        held = self.held & ~mask
        for arm in (mask, *(mask & ~bit for bit in self.space.members(mask))):
            fixed = mask
            near = self.feasible.nearest(arm | held, fixed, self.usable)
            if near is not None:
                held |= near & ~mask
        return Confirmation(mask, held, self.evidence, self.repeat)

    def confirmed(self) -> Cause | None:
        """The best set, if its arms are all in. The caller compares its probability with the asked one."""
        mask, _ = self.best
        if not mask:
            return None
        confirmation = self.confirmation(mask)
        if not confirmation.complete:
            return None
        chance = self.causes(self.held | confirmation.held).of(mask)
        return Cause(mask, confirmation.held, chance)
