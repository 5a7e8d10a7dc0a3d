"""From records to the figures of the table: means, percentiles, shares with their intervals, the fair opponent."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np

from benchmarks.search.measure import FLAT_TWIN, OWN, Record, Row


@dataclass(frozen=True, slots=True)
class Figures:
    """One method on one row. `trials`, `most` (the 95th percentile) and `cost` (in relaunches) count up to the
    confirmed verdict, `own` what the method needs by itself: culpa up to the moment when the true set is its
    likeliest one (the baseline not counted), a peer without confirming arms. `in_all` counts to the end of the
    search, further causes included. Shares are of all faults of the row."""

    method: str
    faults: int
    own: float
    trials: float
    most: float
    cost: float
    in_all: float
    exact: float
    all_found: float
    false: float
    nobody: float


@dataclass(frozen=True, slots=True)
class RowFigures:
    """One row: the bound in trials, culpa's figures and every peer's at each of its settings, culpa's first."""

    row: Row
    bound: float
    figures: tuple[Figures, ...]

    @property
    def own(self) -> Figures:
        return self.figures[0]

    def peers(self) -> tuple[Figures, ...]:
        """Every peer once: at the setting that takes the fewest trials among those that are at least as accurate
        as culpa was measured to be; where none is, at its most accurate one."""
        best: dict[str, Figures] = {}
        for one in self.figures:
            name = one.method.split(" @")[0]
            if one.method not in (OWN, FLAT_TWIN):
                best[name] = min(best.get(name, one), one, key=self._unfitness)
        return tuple(best.values())

    def equals(self) -> tuple[Figures, ...]:
        """The peers that are as accurate as culpa."""
        return tuple(one for one in self.peers() if one.exact >= self.own.exact)

    def _unfitness(self, one: Figures) -> tuple[bool, float]:
        accurate = one.exact >= self.own.exact
        return (not accurate, one.trials if accurate else -one.exact)


def summarised(records: Sequence[Record]) -> RowFigures:
    """The figures of one row; all records are of that row."""
    first = records[0]
    methods = {method for record in records for method in record.methods}
    order = [OWN, *sorted(methods - {OWN}, key=list(first.methods).index)]
    return RowFigures(
        row=first.row,
        bound=fmean(record.bound for record in records),
        figures=tuple(_of_method(method, [record.methods[method] for record in records]) for method in order),
    )


def _of_method(method: str, runs: Sequence[dict[str, Any]]) -> Figures:
    def mean(figure: str) -> float:
        return fmean(float(run[figure]) for run in runs)

    return Figures(
        method=method,
        faults=len(runs),
        own=mean("own"),
        trials=mean("trials"),
        most=float(np.percentile([run["trials"] for run in runs], 95)),
        cost=mean("cost"),
        in_all=mean("in_all"),
        exact=mean("exact"),
        all_found=mean("all"),
        false=mean("false"),
        nobody=mean("none"),
    )


def difference(
    records: Sequence[Record], one: str, other: str, figure: str = "trials"
) -> tuple[float, float]:
    """The mean of a figure of one method less that of another on the same faults, and half of its 95% interval."""
    values = [float(record.methods[one][figure]) - float(record.methods[other][figure]) for record in records]
    half = 1.96 * stdev(values) / sqrt(len(values)) if len(values) > 1 else float("inf")
    return fmean(values), half


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a share (Wilson, "Probable inference", JASA 22, 1927)."""
    if not total:
        return 0.0, 1.0
    share, square = hits / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = z / (1 + square / total) * sqrt(share * (1 - share) / total + square / (4 * total * total))
    return max(middle - half, 0.0), min(middle + half, 1.0)
