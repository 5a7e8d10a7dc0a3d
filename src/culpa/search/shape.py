"""Is it a threshold at all? Values away from the boundary, tried once each, that would show another shape.

Halving finds where the outcome flips between a failing and a passing value, and would find such a place for any
failure: for one that comes at 64 alone, or at every multiple of 16. So what a threshold claims beside its boundary
is tested: that all values on the failing side fail, and all on the other side pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from culpa.search.numeric import Plane, Threshold
from culpa.search.wording import listed, trials

MOST_CHECKS = 3


@dataclass(frozen=True)
class Shape:
    """The values of one factor that were tried, against the threshold that the nearest flip suggests."""

    plane: Plane
    found: Threshold
    safe: int

    @property
    def _suspect(self) -> int:
        return self.found.factor.steps(self.found.factor.suspect)

    def next_value(self) -> int | None:
        """The next value to try, None if all are in, or one of them has shown that it is no threshold."""
        if self.exceptions():
            return None
        tried = dict(self.plane.line(self.found.factor))
        for low, high, value in self._checks():
            if any(low < one < high and end != "open" for one, end in tried.items()):
                continue
            waiting = next((one for one, end in tried.items() if low < one < high and end == "open"), value)
            if self.plane.refuses(self.plane.configuration({self.found.factor.name: waiting})) is None:
                return waiting
        return None

    def exceptions(self) -> tuple[int, ...]:
        """Values whose outcome no threshold between the failing and the passing end allows."""
        failing, passing = self.found.failing, self.found.passing
        wrong = []
        for value, end in self.plane.line(self.found.factor):
            on_failing_side = value <= failing if self.found.fails_low else value >= failing
            on_passing_side = value >= passing if self.found.fails_low else value <= passing
            if (on_failing_side and end == "passes") or (on_passing_side and end == "fails"):
                wrong.append(value)
        return tuple(sorted(wrong))

    def describe(self) -> str:
        """What was seen, where it is no threshold."""
        line = sorted(self.plane.line(self.found.factor))
        name, level = self.found.factor.name, self.found.factor.level

        def shown(wanted: str) -> str:
            cells = [(value, self.plane.cell({name: value})) for value, end in line if end == wanted]
            return listed(
                [
                    f"{level(value)} ({trials(cell.failed if wanted == 'fails' else cell.passed)})"
                    for value, cell in cells
                ]
            )

        return f"{name}: no threshold: it fails at {shown('fails')}, passes at {shown('passes')}"

    def _checks(self) -> Iterator[tuple[int, int, int]]:
        """Open intervals that should hold a tried value, with the value to try where none was."""
        suspect, factor = self._suspect, self.found.factor
        yield from _middle(suspect, self.found.failing)
        yield from _middle(self.found.passing, self.safe)
        # What is asked can't be made more than it was: only settings of the launch go beyond the user's value.
        if factor.scope == "launch":
            lowest, highest = factor.ends
            beyond = min(2 * suspect, highest)
            if self.found.fails_low and lowest <= suspect // 2 < suspect:
                yield lowest - 1, suspect, suspect // 2
            elif not self.found.fails_low and beyond > suspect > 0:
                yield suspect, highest + 1, beyond


def _middle(one: int, other: int) -> Iterator[tuple[int, int, int]]:
    low, high = sorted((one, other))
    if high - low >= 2:
        yield low, high, (low + high) // 2
