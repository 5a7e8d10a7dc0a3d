"""How often a careful user repeats each configuration of an intermittent fault, whose rates are known.

A configuration is run `runs` times and called failing if at least `failures` of them fail. With the rate p of the
fault and the rate q of false failures, the number of failures is binomial; the least `runs` is taken for which
some threshold `failures` keeps both errors (a failing configuration called passing, a passing one called failing)
at or below `error`. Runs stop as soon as the answer is settled.

The peers are told p and q exactly, which nobody is in practice; culpa's search is not told.
"""

from dataclasses import dataclass
from functools import lru_cache

from scipy.stats import binom

ERRORS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)  # from careless to careful
_MOST_RUNS = 2000


@dataclass(frozen=True, slots=True)
class Repeats:
    """At most `runs` runs, failing from `failures` failures on."""

    runs: int
    failures: int


ONCE = Repeats(1, 1)


@lru_cache
def repeats_for(rate: float, false_rate: float, error: float) -> Repeats:
    """The fewest runs that keep both errors at or below `error`. Raises ValueError if none of up to 2000 do."""
    if not 0.0 <= false_rate < rate <= 1.0:
        raise ValueError(f"the rate {rate} must lie above the false rate {false_rate}, both within 0 and 1")
    for runs in range(1, _MOST_RUNS + 1):
        failures = int(binom.isf(error, runs, false_rate)) + 1 if false_rate else 1
        if binom.cdf(failures - 1, runs, rate) <= error:
            return Repeats(runs, failures)
    raise ValueError(f"no {_MOST_RUNS} runs tell a rate of {rate} from one of {false_rate}")
