"""Plain delta debugging, for failures that no small set explains.

The difference between a failing and a passing configuration is halved until one change flips the outcome
(Zeller, "Isolating cause-effect chains", 2002: isolation by minimal difference). Every step keeps the
invariant that one end failed and the other passed; it needs no model, and it promises no minimal set.
"""

from dataclasses import dataclass

from culpa.search.evidence import Cell
from culpa.search.situation import Situation


@dataclass(frozen=True, slots=True)
class Straddle:
    """A configuration that always failed, one that always passed, and the factors in which they differ."""

    failing: Cell
    passing: Cell
    difference: int


def nearest_straddle(situation: Situation) -> Straddle | None:
    """The failing and the passing configuration that differ least; of equals, the one nearest the user's
    launch. Configurations with mixed outcomes are no ground to stand on."""
    exact = [cell for cell in situation.evidence.cells if cell.reading.exact]
    pairs = [
        Straddle(failing, passing, failing.reading.low ^ passing.reading.low)
        for failing in exact
        if failing.failed and not failing.passed
        for passing in exact
        if passing.passed and not passing.failed
    ]
    return min(pairs, key=_order, default=None)


def _order(straddle: Straddle) -> tuple[int, int, int, int]:
    failing, passing = straddle.failing.reading.low, straddle.passing.reading.low
    return straddle.difference.bit_count(), -failing.bit_count(), failing, passing


def next_step(situation: Situation) -> int | None:
    """A configuration between the two ends, halves first and then smaller parts; None if there is nothing to
    halve or nothing in between that could be tried."""
    straddle = nearest_straddle(situation)
    if straddle is None:
        return None
    bits = situation.space.members(straddle.difference)
    failing = straddle.failing.reading.low
    parts = 2
    while len(bits) > 1:
        length = -(-len(bits) // parts)
        for start in range(0, len(bits), length):
            chunk = sum(bits[start : start + length])
            for change in (chunk, straddle.difference & ~chunk):
                mask = failing ^ change
                if not situation.evidence.at(mask).attempts and situation.usable(mask):
                    return mask
        if length == 1:
            break
        parts *= 2
    return None
