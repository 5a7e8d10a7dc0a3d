"""What the trials of versions allow to say: the change point or an interval of them, and what does not fit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culpa.model import Count, Outcome
from culpa.search.change_posterior import ChangePosterior, Counts, Floats
from culpa.search.change_step import VersionTrial
from culpa.search.posterior import MOST_CERTAIN

# So improbable are the passes of a version after the change before it is called unlike the others.
_UNLIKELY = 0.01


@dataclass(frozen=True, slots=True)
class ChangeFound:
    """The end of a search.

    The change came in with one of the versions `first` to `last` (positions; equal where it is known to one version)
    with `probability`. `found` is false where the asked confidence was not reached. `good_fails` says that the good
    end fails as well, so that there is no change between the ends. `bad` counts the trials from `last` on, `good`
    those before `first`: a failure among the latter is one of a version that should not show it. `left_out` are
    versions that could not be tried, `unlike` those after the change that pass more often than its rate allows.
    """

    first: int
    last: int
    probability: float
    found: bool
    good_fails: bool
    bad: Count
    good: Count
    left_out: tuple[int, ...] = ()
    unlike: tuple[int, ...] = ()


@dataclass(frozen=True)
class Seen:
    """Failures and passes of every version, and how often a trial of it said nothing."""

    failed: Counts
    passed: Counts
    spoilt: Counts

    @classmethod
    def of(cls, count: int, history: Sequence[VersionTrial]) -> "Seen":
        failed, passed, spoilt = (np.zeros(count, dtype=np.int64) for _ in range(3))
        column = {Outcome.FAIL: failed, Outcome.PASS: passed}
        for trial in history:
            column.get(trial.outcome, spoilt)[trial.position] += 1
        return cls(failed, passed, spoilt)

    @property
    def told(self) -> NDArray[np.bool_]:
        """Versions that passed or failed."""
        return np.asarray(self.failed + self.passed > 0)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Versions that can tell something: never tried, or with a result once at least."""
        return np.asarray((self.spoilt == 0) | self.told)

    @property
    def last_passed(self) -> int:
        """The last version that passed; the good end, for which the user vouches, where none did."""
        passed = np.flatnonzero(self.passed)
        return int(passed[-1]) if passed.size else 0

    @property
    def first_failed(self) -> int:
        """The first version that failed; there must be one."""
        return int(np.flatnonzero(self.failed)[0])

    @property
    def repeats(self) -> int:
        """Trials that confirm: a version tried again, or the good end, for which the user vouches."""
        return int((self.failed + self.passed).sum() - self.told[1:].sum())


def likeliest(posterior: ChangePosterior, seen: Seen) -> tuple[int, int, float]:
    """The likeliest change point as (first, last, probability).

    Only a trial of version k tells change point k from k + 1: where it can't be tried, the two are one answer.
    """
    starts = np.flatnonzero(np.concatenate([[True], seen.usable[:-1]]))
    groups = np.add.reduceat(posterior.weight, starts)
    best = int(groups.argmax())
    last = int(starts[best + 1]) - 1 if best + 1 < starts.size else seen.failed.size - 1
    return int(starts[best]), last, float(groups[best])


def conclusion(seen: Seen, posterior: ChangePosterior, confidence: float) -> ChangeFound:
    """What can be said: the likeliest answer where it reaches the confidence, else the shortest interval that does."""
    first, last, probability = likeliest(posterior, seen)
    enough = probability >= confidence
    if not enough:
        first, last, probability = _interval(posterior.weight, confidence)
    return ChangeFound(
        first,
        last,
        min(probability, MOST_CERTAIN),
        enough and first > 0,
        enough and last == 0,
        _count(seen, slice(last, None)),
        _count(seen, slice(0, first)),
        tuple(int(one) for one in np.flatnonzero(~seen.usable)),
        _unlike(seen, posterior, last),
    )


def _interval(weight: Floats, confidence: float) -> tuple[int, int, float]:
    """The shortest run of change points that holds the asked probability."""
    total = np.concatenate([[0.0], np.cumsum(weight)])
    wanted = min(confidence, float(total[-1])) - 1e-9
    starts = np.arange(weight.size)
    ends = np.clip(np.searchsorted(total, total[:-1] + wanted), starts + 1, weight.size)
    lengths = np.where(total[ends] - total[:-1] >= wanted, ends - starts, weight.size + 1)
    best = int(lengths.argmin())
    return best, int(ends[best]) - 1, float(total[ends[best]] - total[best])


def _count(seen: Seen, part: slice) -> Count:
    failed, passed = int(seen.failed[part].sum()), int(seen.passed[part].sum())
    return Count(failed, failed + passed)


def _unlike(seen: Seen, posterior: ChangePosterior, last: int) -> tuple[int, ...]:
    """Versions after the change that never failed, too often for its rate: there is more than one change."""
    rate = float(posterior.rate[min(last, posterior.rate.size - 1)])
    chance = np.power(1.0 - rate, seen.passed[last:].astype(float))
    alone = (seen.failed[last:] == 0) & (seen.passed[last:] > 0) & (chance < _UNLIKELY)
    return tuple(int(last + one) for one in np.flatnonzero(alone))
