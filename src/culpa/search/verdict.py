"""When a configuration counts as failing or passing, given how often the fault shows."""

from math import ceil, log
from typing import Literal

from culpa.search.evidence import Cell

Verdict = Literal["fails", "passes", "spoiled", "open"]
_DOUBT = 0.1  # chance of a failure that merely did not show, below which passes count as "it passes"


def passes_needed(rate: float) -> int:
    """Passes in a row after which a fault that fails with this rate would most likely have shown."""
    if rate >= 1.0 - _DOUBT:
        return 1
    return ceil(log(_DOUBT) / log(1.0 - max(rate, 1e-3)))


def verdict(cell: Cell, needed: int) -> Verdict:
    """What the trials of a configuration come to; "open" if there are too few of them yet."""
    if cell.failed:
        return "fails" if len(cell.failed) * 20 > len(cell.passed) else "passes"
    if len(cell.passed) >= needed:
        return "passes"
    return "spoiled" if cell.spoiled else "open"
