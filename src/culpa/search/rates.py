"""Does a set that was shrunk still fail as often as the launch did that it came from?

A minimal set that fails in one trial of twenty explains little of a launch that failed in nine of ten: something that
was made safe on the way raises the rate. The two counts are compared by Fisher's exact test (Fisher, "Statistical
Methods for Research Workers", 1934), one-sided, since only a fall is of interest.
"""

from dataclasses import dataclass
from math import comb

from culpa.model import Count
from culpa.search.exposure import rate_interval
from culpa.search.situation import Cause, Situation
from culpa.search.wording import percent

_SURE = 0.05  # chance of counts that lie so far apart although the rates are the same, below which they are told apart
_TWICE = 1.8  # a fall from here on is given as a factor
_TENFOLD = 10.0  # a fall from here on changes what the set can be said to explain


@dataclass(frozen=True, slots=True)
class RateHeld:
    """Failures near the user's launch and with the set alone. `chance` is that of so few failures of the set alone,
    if both fail equally often."""

    launch: Count
    alone: Count

    @property
    def chance(self) -> float:
        failed = self.launch.failed + self.alone.failed
        passed = self.launch.trials + self.alone.trials - failed
        ways = comb(failed + passed, self.alone.trials)
        fewest = range(max(0, self.alone.trials - passed), self.alone.failed + 1)
        return sum(comb(failed, hits) * comb(passed, self.alone.trials - hits) for hits in fewest) / ways

    @property
    def fell(self) -> bool:
        """Whether the set alone fails less often, beyond chance."""
        return self.chance < _SURE

    @property
    def intermittent(self) -> bool:
        """Whether anything passed at all: else there is no rate to speak of."""
        return self.launch.failed < self.launch.trials or self.alone.failed < self.alone.trials

    def sentence(self) -> str:
        """Both rates with their 95% intervals, and whether the rate is held."""
        counts = f"alone it fails {_shown(self.alone)}, near the user's launch {_shown(self.launch)}"
        if not self.fell:
            return f"{counts}: its rate is held, as far as these trials tell"
        ratio = (self.launch.failed / self.launch.trials) / (self.alone.failed / self.alone.trials)
        much = f"about {ratio:.0f} times" if ratio >= _TWICE else "somewhat"
        rest = "so it is a part of what fails there: " if ratio >= _TENFOLD else ""
        return (
            f"{counts}: it fails {much} less often alone, {rest}something that was made safe raises the rate"
        )


def _shown(count: Count) -> str:
    low, high = rate_interval(count)
    return f"{count.failed} of {count.trials} times ({percent(low)} to {percent(high)})"


def rate_held(situation: Situation, cause: Cause) -> RateHeld | None:
    """The comparison for one cause, None while one of the two sides has no failure.

    Near the user's launch are the trials with the whole set and more than half of all other factors suspect: the
    launch as it is has few trials of its own.
    """
    space = situation.space
    rest = space.full & ~(cause.mask | cause.held)
    near = [
        cell.count
        for cell in situation.evidence.cells
        if cell.reading.exact
        and cell.reading.low & cause.mask == cause.mask
        and 2 * (cell.reading.low & rest).bit_count() > rest.bit_count()
    ]
    launch = Count(sum(count.failed for count in near), sum(count.trials for count in near))
    alone = situation.evidence.at(cause.mask | cause.held).count
    return RateHeld(launch, alone) if rest and launch.failed and alone.failed else None
