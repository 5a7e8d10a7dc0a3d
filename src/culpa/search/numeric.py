"""Boundaries of ordered members: where one alone flips the outcome, and whether two of them are compared.

All trials here vary numbers on the failing set alone (everything else safe). A factor has a failing and a
passing end; between them the outcome is taken to flip once, and the finding says between which values it
does. Two members whose boundaries meet may be compared with each other by the engine; that is tested at
shifted values, where a comparison and two thresholds of their own predict different outcomes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt

from culpa.model import Configuration, Factor
from culpa.search.evidence import Cell, Evidence
from culpa.search.feasible import CanRun
from culpa.search.verdict import Verdict, verdict
from culpa.search.wording import trials

MOST_TRIALS = 8  # configurations tried for one threshold; what is open then stays an interval
_FAR_APART = 4  # ratio of the ends from which on they are halved on a logarithmic scale


@dataclass(frozen=True)
class Plane:
    """The trials that vary only the numeric members, all else as in the sufficient arm."""

    evidence: Evidence
    ground: Configuration
    members: tuple[Factor, ...]
    needed: int
    refuses: CanRun

    def cell(self, values: Mapping[str, int]) -> Cell:
        return self.evidence.of(self.configuration(values))

    def configuration(self, values: Mapping[str, int]) -> Configuration:
        by_name = {factor.name: factor for factor in self.members}
        return self.ground.with_levels({name: by_name[name].level(value) for name, value in values.items()})

    def verdict(self, values: Mapping[str, int]) -> Verdict:
        return verdict(self.cell(values), self.needed)

    def line(self, factor: Factor) -> Iterator[tuple[int, Verdict]]:
        """Values of one factor that were tried with the others at suspect, with their verdicts."""
        for cell in self.evidence.cells:
            if set(cell.configuration.differing(self.ground)) <= {factor.name}:
                yield factor.steps(cell.configuration[factor.name]), verdict(cell, self.needed)

    def points(self, first: Factor, second: Factor) -> Iterator[tuple[int, int, Verdict]]:
        """Values of two factors that were tried with the others at suspect, with their verdicts."""
        for cell in self.evidence.cells:
            if set(cell.configuration.differing(self.ground)) <= {first.name, second.name}:
                levels = cell.configuration.as_dict()
                end = verdict(cell, self.needed)
                yield first.steps(levels[first.name]), second.steps(levels[second.name]), end


@dataclass(frozen=True, slots=True)
class Threshold:
    """The failing and the passing value that are nearest to each other, the other members at suspect."""

    factor: Factor
    failing: int
    passing: int

    @property
    def exact(self) -> bool:
        return abs(self.failing - self.passing) <= 1

    @property
    def fails_low(self) -> bool:
        return self.failing < self.passing


def threshold(plane: Plane, factor: Factor, safe: int) -> Threshold:
    """What is known of a factor's boundary. The nearest pair is taken from the suspect end, so that a second
    flip further away does not matter."""
    suspect = factor.steps(factor.suspect)
    seen = sorted(plane.line(factor), key=lambda item: abs(item[0] - suspect))
    between = [(value, end) for value, end in seen if min(suspect, safe) <= value <= max(suspect, safe)]
    passing = next((value for value, end in between if end == "passes"), safe)
    failing = [
        value for value, end in between if end == "fails" and abs(value - suspect) < abs(passing - suspect)
    ]
    return Threshold(factor, failing[-1] if failing else suspect, passing)


def next_value(plane: Plane, found: Threshold, landmarks: tuple[int, ...]) -> int | None:
    """The next value to try: a landmark (such as another member's value) between the ends, else the middle.

    None if the boundary is exact, the trials are used up, or what is between can't be tried.
    """
    tried = dict(plane.line(found.factor))
    again = [value for value, end in tried.items() if end == "open" and _between(value, found)]
    if again:
        return again[0]
    inside = (
        len([value for value in tried if found.factor.level(value) != found.factor.suspect]) - 1
    )  # without the safe end
    if found.exact or inside >= MOST_TRIALS:
        return None
    for value in (*landmarks, *_middles(found)):
        if not _between(value, found) or value in tried or value < found.factor.ends[0]:
            continue
        if plane.refuses(plane.configuration({found.factor.name: value})) is None:
            return value
    return None


def _between(value: int, found: Threshold) -> bool:
    return min(found.failing, found.passing) < value < max(found.failing, found.passing)


def _middles(found: Threshold) -> Iterator[int]:
    """The middle first, then values ever nearer to the passing end, in case that the middle can't be tried."""
    low, high = sorted((found.failing, found.passing))
    far = found.factor.counts and low > 0 and high >= low * _FAR_APART
    middle = isqrt(low * high) if far else (low + high) // 2
    yield max(low + 1, min(middle, high - 1))
    yield (middle + found.passing) // 2
    yield (middle + found.failing) // 2


def describe(plane: Plane, found: Threshold) -> str:
    """A sentence about a boundary, with its trials."""
    name = found.factor.name
    failing = plane.cell({name: found.failing}).failed
    passing = plane.cell({name: found.passing}).passed
    level = found.factor.level
    sentence = f"{name}: fails at {level(found.failing)} ({trials(failing)})"
    if passing:
        sentence += f", passes at {level(found.passing)} ({trials(passing)})"
    if found.exact or not passing:
        return sentence
    low, high = sorted((found.failing, found.passing))
    return (
        f"{sentence}; the flip lies between {level(low)} and {level(high)}, where not all values were tried"
    )
