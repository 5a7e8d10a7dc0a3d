"""Plain delta debugging, for failures that no small set explains (three causes, no monotony).

It needs no model of the whole: the smallest failing configuration is cut down by parts of its suspects, halves
first, until no single factor can be taken away (ddmin: Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002). What is left is a minimal failing set by its own trials alone, and those are
repeated until they are sure enough. Where everything safe fails too, the difference between a failing and a
passing configuration is halved instead, down to one change that flips the outcome.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from culpa.search.confirm import Confirmation
from culpa.search.evidence import Cell, Evidence
from culpa.search.posterior import own_rate

_MOST_REPEATS = 6


@dataclass(frozen=True, slots=True)
class Straddle:
    """A configuration that always failed, one that always passed, and the factors in which they differ."""

    failing: Cell
    passing: Cell
    difference: int


def straddles(evidence: Evidence) -> list[Straddle]:
    """All pairs of a failing and a passing configuration, those that differ least first; of equals, the one
    nearest the user's launch. Configurations with mixed outcomes are no ground to stand on."""
    exact = [cell for cell in evidence.cells if cell.reading.exact]
    pairs = [
        Straddle(failing, passing, failing.reading.low ^ passing.reading.low)
        for failing in exact
        if failing.failed and not failing.passed
        for passing in exact
        if passing.passed and not passing.failed
    ]
    return sorted(pairs, key=_order)


def nearest_straddle(evidence: Evidence) -> Straddle | None:
    """The first of `straddles`, None if there are none."""
    return next(iter(straddles(evidence)), None)


def _order(straddle: Straddle) -> tuple[int, int, int, int]:
    failing, passing = straddle.failing.reading.low, straddle.passing.reading.low
    return straddle.difference.bit_count(), -failing.bit_count(), failing, passing


@dataclass(frozen=True)
class Descent:
    """One descent. `held` masks factors that stay suspect, `known` are causes that must not be found again,
    `usable` tells whether a configuration can be tried."""

    evidence: Evidence
    held: int
    known: tuple[int, ...]
    usable: Callable[[int], bool]

    def next_step(self, asked: float) -> int | None:
        """The next configuration to try, None if the descent is at its end. `asked` is the probability that
        the trials of a minimal set should reach together."""
        failing = self._smallest_failure()
        if failing is None:
            return None
        suspects = failing.reading.low & ~self.held
        if not suspects:
            return self._between()
        cuts = self._cuts(failing.reading.low, self.evidence.space.members(suspects))
        return next((mask for mask in cuts if self._new(mask)), None) or self._repeat(suspects, asked)

    def minimal(self) -> tuple[int, float] | None:
        """The minimal failing set that the descent has come to, and the probability that its own trials give
        it: that it fails, and that it passes without any one of its members."""
        failing = self._smallest_failure()
        if failing is None or not failing.reading.low & ~self.held:
            return None
        confirmation = self._confirmation(failing.reading.low & ~self.held)
        if not confirmation.complete:
            return None
        return confirmation.cause, own_certainty(confirmation)

    def _smallest_failure(self) -> Cell | None:
        failing = [
            cell
            for cell in self.evidence.cells
            if cell.reading.exact
            and cell.failed
            and own_rate(cell) > 0.5
            and not any(cell.reading.low & mask == mask for mask in self.known)
            and cell.reading.low & self.held == self.held
        ]
        return min(failing, key=lambda cell: (cell.reading.low.bit_count(), cell.reading.low), default=None)

    def _cuts(self, failing: int, members: tuple[int, ...]) -> Iterator[int]:
        """Parts of the suspects alone, then all but a part, with ever smaller parts."""
        parts = 2
        length = len(members)
        while length > 1:
            length = -(-len(members) // parts)
            chunks = [sum(members[start : start + length]) for start in range(0, len(members), length)]
            yield from (chunk | self.held for chunk in chunks)
            yield from (failing & ~chunk for chunk in chunks)
            parts *= 2
        if len(members) == 1:
            yield failing & ~members[0]

    def _repeat(self, suspects: int, asked: float) -> int | None:
        """The least certain trial of the minimal set, while they are not sure enough together."""
        confirmation = self._confirmation(suspects)
        if not confirmation.complete or own_certainty(confirmation) >= asked:
            return None
        sureness = {cell.reading.low: abs(own_rate(cell) - 0.5) for cell in _arms(confirmation)}
        few = [mask for mask in sureness if self.evidence.at(mask).attempts < _MOST_REPEATS]
        return min(few, key=lambda mask: (sureness[mask], mask), default=None)

    def _between(self) -> int | None:
        """Halfway between the two ends of the nearest straddle, then smaller parts of the way."""
        straddle = nearest_straddle(self.evidence)
        if straddle is None:
            return None
        bits = self.evidence.space.members(straddle.difference)
        failing = straddle.failing.reading.low
        parts = 2
        while len(bits) > 1:
            length = -(-len(bits) // parts)
            for start in range(0, len(bits), length):
                chunk = sum(bits[start : start + length])
                for change in (chunk, straddle.difference & ~chunk):
                    if self._new(failing ^ change):
                        return failing ^ change
            if length == 1:
                break
            parts *= 2
        return None

    def _confirmation(self, suspects: int) -> Confirmation:
        return Confirmation(suspects, self.held, self.evidence)

    def _new(self, mask: int) -> bool:
        return not self.evidence.at(mask).attempts and self.usable(mask)


def _arms(confirmation: Confirmation) -> list[Cell]:
    return [confirmation.sufficient, *(cell for _, cell in confirmation.necessary())]


def own_certainty(confirmation: Confirmation) -> float:
    """The probability that a set fails and each necessary arm passes, each judged by its own trials."""
    passing = [1.0 - own_rate(cell) for _, cell in confirmation.necessary()]
    return own_rate(confirmation.sufficient) * prod(passing)
