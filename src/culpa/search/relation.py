"""Does the failure depend on a comparison of two numeric members, or on a threshold of each?

A comparison `low < high` is a candidate where the boundary of the factor that fails at small values lies just
at the value of the one that fails at large values. Both rules agree on every trial that moves one factor
alone; they differ where both are moved: at equal values below the suspect ones a threshold rule still fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Literal

from culpa.model import Factor
from culpa.search.numeric import Plane, Threshold
from culpa.search.verdict import Verdict
from culpa.search.wording import listed, trials

Operator = Literal["<", "<="]
Point = tuple[int, int, Verdict]


@dataclass(frozen=True)
class Relation:
    """The candidate `low operator high`: `low` fails at small values, `high` at large ones."""

    low: Factor
    high: Factor
    operator: Operator

    def fails(self, low: int, high: int) -> bool:
        return low < high if self.operator == "<" else low <= high

    def __str__(self) -> str:
        return f"{self.low.name} {self.operator} {self.high.name}"

    def decisive(self, safe_high: int) -> tuple[tuple[int, int], ...]:
        """Two points at a shifted value of `high`, one on each side of the comparison; none if there is no
        room between the levels that are known to the factors."""
        bottom = max(safe_high, self.low.steps(self.low.suspect), self.low.minimum, self.high.minimum)
        top = self.high.steps(self.high.suspect)
        if top - bottom < 2:
            return ()
        value = max(bottom + 1, min(isqrt(bottom * top), top - 1))
        if self.operator == "<":
            return (value, value), (value - 1, value)
        return (value + 1, value), (value, value)

    def holds(self, points: Sequence[Point]) -> bool:
        """Every trial agrees with the comparison, and no pair of thresholds explains them as well."""
        agree = all((end == "fails") is self.fails(low, high) for low, high, end in points)
        return agree and not thresholds_fit(points)


def thresholds_fit(points: Sequence[Point]) -> bool:
    """Is there a value for each factor, such that the trials fail exactly where `low` is at most its value
    and `high` at least its own? The widest such box that the failures ask for must hold no pass."""
    failing = [(low, high) for low, high, end in points if end == "fails"]
    most = max((low for low, _ in failing), default=0)
    least = min((high for _, high in failing), default=0)
    return not any(end == "passes" and low <= most and high >= least for low, high, end in points)


def candidate(first: Threshold, second: Factor, fails_low: bool) -> Relation | None:
    """The comparison that a boundary of `first` suggests with the suspect value of `second`, if any.

    `fails_low` says whether `second` fails at small values: two factors that fail on the same side are not
    compared with each other, nor are levels that are no integers.
    """
    if not (first.factor.counts and second.counts):
        return None
    if not first.exact or first.fails_low is fails_low:
        return None
    other = second.steps(second.suspect)
    if first.fails_low:
        low, high = first.factor, second
        operators: dict[int, Operator] = {other - 1: "<", other: "<="}
    else:
        low, high = second, first.factor
        operators = {other + 1: "<", other: "<="}
    operator = operators.get(first.failing)
    return Relation(low, high, operator) if operator else None


def tested_points(plane: Plane, relation: Relation) -> list[Point]:
    """All trials that moved only the two factors and that came to a verdict."""
    points = plane.points(relation.low, relation.high)
    return [point for point in points if point[2] in ("fails", "passes")]


def describe(plane: Plane, relation: Relation, points: Sequence[Point]) -> str:
    """The condition, and the trials that show it."""
    low, high = relation.low.name, relation.high.name

    def shown(end: str) -> str:
        near = sorted((point for point in points if point[2] == end), key=lambda item: abs(item[0] - item[1]))
        parts = []
        for first, second, _ in near[:3]:
            cell = plane.cell({low: first, high: second})
            numbers = cell.failed if end == "fails" else cell.passed
            parts.append(f"{first} and {second} ({trials(numbers)})")
        return listed(parts)

    return (
        f"{relation}: with {low} and {high} it fails at {shown('fails')}, passes at {shown('passes')}; "
        f"no threshold of each alone explains this"
    )
