"""Where the first needed item lies: the latest start of a tail that still holds the cause, by noisy bisection.

A trial keeps the items known to be needed and the tail from `t` on. It fails at the failure's rate if `t` is not
later than the start that is looked for, else only by a stray failure. The next `t` is the one that tells most of the
start (probabilistic bisection: Horstein 1963; Burnashev and Zigangirov 1974), with the rate integrated out.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from culpa.reduction.rate import RATES, STRAY, Floats

# Prior of the first needed item by its distance from the end. Failures come soon after their cause, so distances are
# spread evenly over their magnitudes; a part of the weight is even over all places.
_NOTHING_MORE = 0.15
_EVEN = 0.35
# That an item already found to be needed is not, or that one before it was missed.
_ASTRAY = 0.02
# Bits of information on the start below which a trial is not worth its cost.
_TELLS_NOTHING = 1e-3
_UNLIKELY = 0.05


@dataclass(frozen=True, slots=True)
class Cut:
    """A trial of this search: the tail from `start` on was kept."""

    start: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Belief:
    """Probabilities of the starts `first` to `end`; start `end` means that nothing more is needed. `astray` is the
    probability that no tail can fail, because an earlier step went wrong."""

    first: int
    end: int
    starts: Floats
    astray: float

    @property
    def best(self) -> tuple[int, float]:
        """The likeliest start and its probability."""
        place = int(self.starts.argmax())
        return self.first + place, float(self.starts[place])


@dataclass(frozen=True)
class LatestStart:
    """The search among the starts from `first` to `end`, given what is known of the rate. `alone` is True if the
    items known so far may be all that is needed."""

    first: int
    end: int
    rates: Floats
    alone: bool

    def _joint(self, cuts: Sequence[Cut]) -> tuple[Floats, Floats]:
        return _joint(self.first, self.end, self.rates.tobytes(), self.alone, tuple(cuts))

    def belief(self, cuts: Sequence[Cut]) -> Belief:
        """What the trials so far say."""
        joint, lost = self._joint(cuts)
        return Belief(self.first, self.end, joint.sum(axis=0), float(lost.sum()))

    def rates_after(self, cuts: Sequence[Cut]) -> Floats:
        """Weights of the rates after the trials."""
        joint, lost = self._joint(cuts)
        rates: Floats = joint.sum(axis=1) + lost
        return rates

    def next_cut(self, cuts: Sequence[Cut], barred: Collection[int]) -> int | None:
        """The tail to try next, None if all that could tell something are barred."""
        joint, _ = self._joint(cuts)
        # A tail from place t on holds the cause of all starts from t on, and then fails at the rate.
        by_rate = np.cumsum(joint[:, ::-1], axis=1)[:, ::-1]
        held = by_rate.sum(axis=0)
        failing = (by_rate * RATES[:, None]).sum(axis=0) + STRAY * (1.0 - held)
        stray = (1.0 - held) * _entropy(np.array(STRAY))
        # What the trial would tell of the rate counts too: without it no pass can be read.
        of_both = _entropy(failing) - (by_rate * _entropy(RATES)[:, None]).sum(axis=0) - stray
        starts = joint.sum(axis=0)
        fails = (joint * RATES[:, None]).sum(axis=0)
        per_start = starts * _entropy(np.divide(fails, starts, out=np.zeros_like(fails), where=starts > 0))
        of_start = _entropy(failing) - np.cumsum(per_start[::-1])[::-1] - stray
        free = [place for place in range(len(starts)) if self.first + place not in barred]
        if not free or float(of_start[free].max()) < _TELLS_NOTHING:
            return None
        best = max(free, key=lambda place: (of_both[place], -place))
        return self.first + best

    def earliest(self, cuts: Sequence[Cut]) -> int:
        """The earliest start that is not unlikely: to take one too early costs an item, too late the failure."""
        starts = self._joint(cuts)[0].sum(axis=0)
        return self.first + int(np.argmax(starts >= _UNLIKELY * starts.max()))


@lru_cache(maxsize=64)
def _joint(first: int, end: int, rates: bytes, alone: bool, cuts: tuple[Cut, ...]) -> tuple[Floats, Floats]:
    """Weights by rate and start, and by rate for "astray"; together they sum to 1."""
    if not cuts:
        known = np.frombuffer(rates)
        astray = _ASTRAY if alone else 0.0
        return np.outer(known, _prior(first, end, alone) * (1 - astray)), known * astray
    joint, lost = _joint(first, end, rates, alone, cuts[:-1])
    cut = cuts[-1]
    holds = np.arange(first, end + 1) >= cut.start
    with_cause = (RATES if cut.failed else 1.0 - RATES)[:, None]
    without = STRAY if cut.failed else 1.0 - STRAY
    joint = joint * np.where(holds[None, :], with_cause, without)
    lost = lost * without
    total = joint.sum() + lost.sum()
    return joint / total, lost / total


def _prior(first: int, end: int, alone: bool) -> Floats:
    distance = end - np.arange(first, end)
    near = 1.0 / distance
    places = _EVEN / max(1, len(distance)) + (1 - _EVEN) * near / max(near.sum(), 1e-300)
    nothing = _NOTHING_MORE if alone else 0.0
    prior = np.append(places * (1 - nothing), nothing)
    prior /= prior.sum()
    return prior


def _entropy(chance: Floats) -> Floats:
    """Entropy of a yes or no, in bits."""
    inside = np.clip(chance, 1e-12, 1 - 1e-12)
    found: Floats = -(inside * np.log2(inside) + (1 - inside) * np.log2(1 - inside))
    return found
