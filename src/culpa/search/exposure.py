"""What a count of passes and failures says about the rate behind it: exact bounds and intervals."""

from math import sqrt
from statistics import NormalDist

from culpa.model import Count


def excluded_rate(passes: int, confidence: float = 0.95) -> float:
    """The failure rate above which `passes` passes in a row would have been too unlikely.

    It solves (1 - rate) ** passes = 1 - confidence, the exact one-sided bound for no failure; for 0.95 it is
    close to the "rule of three", 3 / passes. Without a pass nothing is excluded: the bound is 1.
    """
    if passes <= 0:
        return 1.0
    return float(1.0 - (1.0 - confidence) ** (1.0 / passes))


def rate_interval(count: Count, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of failure rates that agree with a count (Wilson's score interval, without correction).

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22.
    Without trials it is (0, 1).
    """
    if count.trials <= 0:
        return 0.0, 1.0
    trials, rate = count.trials, count.failed / count.trials
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    scale = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / scale
    half = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    low = 0.0 if count.failed == 0 else max(0.0, centre - half)
    high = 1.0 if count.failed == count.trials else min(1.0, centre + half)
    return low, high
