"""Where the trials stand in a picture: columns of one width, in bands that fit the width of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.model import Outcome, Trial
from culpa.report.html.svg import cross, diamond, disc, square

WIDE, NARROW = 1088.0, 340.0
#: Where columns begin on a wide page: names of factors stand before them.
NAMES = 206.0
LETTERS = {Outcome.FAIL: "F", Outcome.PASS: "P", Outcome.OTHER: "O", Outcome.UNTESTABLE: "?"}


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns of `step` units from `left` on, `per_band` of them beside each other."""

    width: float
    left: float
    step: float
    per_band: int

    def bands(self, trials: Sequence[Trial]) -> list[Sequence[Trial]]:
        """The trials, as many at a time as stand beside each other."""
        return [trials[start : start + self.per_band] for start in range(0, len(trials), self.per_band)]

    def x(self, place: int) -> float:
        """The middle of a column of a band."""
        return self.left + (place + 0.5) * self.step

    @property
    def roomy(self) -> bool:
        """Whether a letter fits into a column."""
        return self.step >= 16


def wide_grid(count: int, right: float = 96.0) -> Grid:
    """For a page as wide as a desk's: the more trials, the narrower, down to a stroke."""
    left = NAMES
    room = WIDE - left - right
    for step in (26.0, 24.0, 22.0, 20.0):
        if count * step <= room:
            return Grid(WIDE, left, step, int(room // step))
    step = 20.0 if count <= 78 else 10.0 if count <= 234 else 5.0
    return Grid(WIDE, left, step, int(room // step))


def narrow_grid(count: int) -> Grid:
    """For a telephone: names stand above the marks, not beside them."""
    step = 20.0 if count <= 60 else 10.0
    return Grid(NARROW, 2.0, step, int((NARROW - 4) // step))


def badge(outcome: Outcome, x: float, y: float, radius: float) -> str:
    """The shape of an outcome as a path: square, circle, diamond, cross."""
    if outcome is Outcome.FAIL:
        return square(x, y, 2 * radius)
    if outcome is Outcome.PASS:
        return disc(x, y, radius)
    if outcome is Outcome.OTHER:
        return diamond(x, y, radius * 1.25)
    return cross(x, y, radius * 0.8)
