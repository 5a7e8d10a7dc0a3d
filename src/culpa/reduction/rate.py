"""How often a failure comes where all of its cause is there: a grid of rates, with a half for "always"."""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Half of all failures are taken to be deterministic; the others' rates are uniform.
_ALWAYS: Final = 0.5
_BETWEEN = np.arange(0.025, 1.0, 0.05)
RATES: Final[Floats] = np.append(_BETWEEN, 1.0)
PRIOR: Final[Floats] = np.append(np.full(len(_BETWEEN), (1 - _ALWAYS) / len(_BETWEEN)), _ALWAYS)
# The chance that the same failure comes without its cause; never 0, so that nothing is ruled out for good.
STRAY: Final = 1e-3


def after(rates: Floats, failed: int, passed: int) -> Floats:
    """Weights of the rates after trials that held the whole cause, normalised."""
    weights = rates * RATES**failed * np.maximum(1.0 - RATES, 1e-6) ** passed
    total = float(weights.sum())
    return weights / total if total > 0 else PRIOR


def chance_of_passes(rates: Floats, passed: int) -> float:
    """The chance that this many trials with the whole cause all pass."""
    return float((rates * (1.0 - RATES) ** passed).sum())


def interval(failed: int, trials: int, mass: float = 0.95) -> tuple[float, float]:
    """Jeffreys interval of a rate (Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", 2001)."""
    from scipy.stats import beta

    tail = (1.0 - mass) / 2
    low = 0.0 if failed == 0 else float(beta.ppf(tail, failed + 0.5, trials - failed + 0.5))
    high = 1.0 if failed == trials else float(beta.ppf(1.0 - tail, failed + 0.5, trials - failed + 0.5))
    return low, high


def chance_of_half(mine: tuple[int, int], theirs: tuple[int, int]) -> float:
    """The probability that one rate is at least half of another, each given as (failed, trials), uniform priors."""
    from scipy.stats import beta

    grid = (np.arange(400) + 0.5) / 400
    density = beta.pdf(grid, 1 + theirs[0], 1 + theirs[1] - theirs[0])
    density /= density.sum()
    return float((density * beta.sf(grid / 2, 1 + mine[0], 1 + mine[1] - mine[0])).sum())
