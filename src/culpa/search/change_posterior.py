"""What trials of versions say of the place where a failure came in: exact Bayes over the change point.

Versions stand in a row from the good end (position 0) to the bad end (position n - 1). Under change point k the
versions from k on fail with rate p, those before it with the small rate q: a good version does not show this very
signature, unless by a rare accident. Neither rate is known; both are integrated out on a grid for every k, and as the
two sides share no trial the integrals are independent. Change point 0 says that even the good end fails.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# A regression is looked for because it was seen, mostly each time: six of seven are taken to be deterministic. That
# share decides how many repeats a claim needs (benchmarks/bisect shows what it costs where it is wrong).
DETERMINISTIC = 0.85
RATE = np.array([0.999, *np.linspace(0.975, 0.025, 39)])
RATE_PRIOR = np.array([DETERMINISTIC, *np.full(39, (1.0 - DETERMINISTIC) / 39)])
FALSE_RATE = np.array([1e-4, 1e-2, 5e-2])
FALSE_RATE_PRIOR = np.array([0.95, 0.04, 0.01])
GOOD_FAILS = 0.01  # that the version which is called good fails as well

_P = np.stack([np.log(RATE), np.log1p(-RATE)])
_Q = np.stack([np.log(FALSE_RATE), np.log1p(-FALSE_RATE)])


def _log_sum(weights: Floats) -> Floats:
    """The logarithm of the sum of exponentials along the last axis, rows with nothing but -inf included."""
    top = weights.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.asarray(np.log(np.exp(weights - top).sum(axis=-1)) + top[..., 0])


def entropy(rate: Floats) -> Floats:
    """Entropy in bits of an outcome that fails with this rate."""
    inside = np.clip(rate, 1e-15, 1.0 - 1e-15)
    return np.asarray(-(inside * np.log2(inside) + (1.0 - inside) * np.log2(1.0 - inside)))


@dataclass(frozen=True)
class ChangePosterior:
    """Probabilities of the change points 0 to n - 1, and the expected p and q under each of them."""

    weight: Floats
    rate: Floats
    false_rate: Floats

    def failing(self) -> Floats:
        """For every version the chance that its next trial fails."""
        after = np.cumsum(self.weight * self.rate)
        before = self.weight * self.false_rate
        return np.asarray(after + before.sum() - np.cumsum(before))

    def information(self) -> Floats:
        """For every version the mutual information in bits of its next outcome and the change point."""
        after = np.cumsum(self.weight * entropy(self.rate))
        before = self.weight * entropy(self.false_rate)
        return np.asarray(np.maximum(entropy(self.failing()) - after - before.sum() + np.cumsum(before), 0.0))

    def expected_rate(self) -> float:
        """The failure rate of the versions after the change, averaged over the change points."""
        return float(self.weight @ self.rate)


def change_prior(count: int) -> Floats:
    """All places alike, the good end itself apart. `count` is the number of versions, at least 2."""
    prior = np.full(count, (1.0 - GOOD_FAILS) / (count - 1))
    prior[0] = GOOD_FAILS
    return prior


def change_posterior(failed: Counts, passed: Counts) -> ChangePosterior:
    """From the failures and passes of every version, in their order, to the posterior.

    Raises ValueError for fewer than two versions.
    """
    if failed.size < 2:
        raise ValueError(f"a change lies between two versions at least, not {failed.size}")
    before_failed, before_passed = np.cumsum(failed) - failed, np.cumsum(passed) - passed
    after_failed, after_passed = failed.sum() - before_failed, passed.sum() - before_passed
    with np.errstate(divide="ignore"):
        after = np.log(RATE_PRIOR) + np.outer(after_failed, _P[0]) + np.outer(after_passed, _P[1])
        before = np.log(FALSE_RATE_PRIOR) + np.outer(before_failed, _Q[0]) + np.outer(before_passed, _Q[1])
        fit_after, fit_before = _log_sum(after), _log_sum(before)
        log_weight = np.log(change_prior(failed.size)) + fit_after + fit_before
    weight = np.exp(log_weight - log_weight.max())
    return ChangePosterior(
        weight / weight.sum(),
        np.exp(after - fit_after[:, None]) @ RATE,
        np.exp(before - fit_before[:, None]) @ FALSE_RATE,
    )
