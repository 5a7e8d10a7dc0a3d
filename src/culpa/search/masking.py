"""Factors that hide the failure at the user's level, as instruments do: with one of them suspect it passes although
the whole failing set is suspect too, and with that one made safe it fails.

No trial is spent to look for them. Where a trial passed although it holds a confirmed set, the way between it and
the set alone is halved, down to the one factor that makes the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from culpa.search.evidence import Cell
from culpa.search.situation import Cause, Situation
from culpa.search.verdict import Verdict, passes_needed, verdict

_LEAST_PASSES = 2  # one pass may be a failure that did not show, whatever the rate seems to be
_MOST_PASSES = 6


@dataclass(frozen=True)
class Masking:
    """What passes although it holds the set of `cause`. `needed` are the passes that show it, at the rate that the
    trials as a whole suggest: those that passed because something hid the failure count into that, so that it
    rather asks for too many."""

    situation: Situation
    cause: Cause
    needed: int

    def next_mask(self) -> int | None:
        """The configuration to try next on the way to the factor that hides the failure; None if none is needed."""
        if self._passes > _MOST_PASSES:
            return None
        for cell in self._hidden():
            if cell.attempts < self._passes:
                return cell.reading.low
            low, high = self._ends(cell)
            while (high & ~low).bit_count() > 1:
                bits = self.situation.space.members(high & ~low)
                middle = low | sum(bits[: len(bits) // 2])
                end = self._verdict(middle)
                if end == "fails":
                    low = middle
                elif end == "passes":
                    high = middle
                else:
                    tried = self.situation.evidence.at(middle)
                    usable = self.situation.usable(middle) and not tried.spoiled
                    return middle if usable else None
        return None

    def found(self) -> Iterator[tuple[int, Cell, Cell]]:
        """The bit of every factor that was shown to hide the failure, with the failing and the passing trials."""
        evidence = self.situation.evidence
        for cell in evidence.cells:
            if not cell.reading.exact or not self._holds(cell) or self._judged(cell) != "passes":
                continue
            for bit in self.situation.space.members(cell.reading.low & ~(self.cause.mask | self.cause.held)):
                without = evidence.at(cell.reading.low & ~bit)
                if self._judged(without) == "fails":
                    yield bit, without, cell

    @property
    def _passes(self) -> int:
        return max(self.needed, _LEAST_PASSES)

    def _hidden(self) -> list[Cell]:
        """The smallest configuration that holds the set and has passed more often than chance would have it."""
        cells = [cell for cell in self.situation.evidence.cells if cell.reading.exact and self._holds(cell)]
        hidden = [cell for cell in cells if cell.passed and not cell.failed and self._unlikely(cell, cells)]
        return sorted(hidden, key=lambda cell: (cell.reading.low.bit_count(), cell.reading.low))[:1]

    def _unlikely(self, cell: Cell, cells: list[Cell]) -> bool:
        """Whether so many passes are more than chance, at the rate of the other configurations with the set."""
        failed = sum(len(other.failed) for other in cells if other is not cell)
        passed = sum(len(other.passed) for other in cells if other is not cell and other.failed)
        return len(cell.passed) >= passes_needed((failed + 0.5) / (failed + passed + 1.0))

    def _ends(self, cell: Cell) -> tuple[int, int]:
        """The set alone, and what passes; or what fails between the two, if something does."""
        inside = [
            other.reading.low
            for other in self.situation.evidence.cells
            if other.reading.exact
            and self._holds(other)
            and other.reading.low & ~cell.reading.low == 0
            and self._judged(other) == "fails"
        ]
        return max(inside, key=int.bit_count, default=self.cause.mask | self.cause.held), cell.reading.low

    def _holds(self, cell: Cell) -> bool:
        return cell.reading.low & self.cause.mask == self.cause.mask

    def _verdict(self, mask: int) -> Verdict:
        return self._judged(self.situation.evidence.at(mask))

    def _judged(self, cell: Cell) -> Verdict:
        return verdict(cell, self._passes)
