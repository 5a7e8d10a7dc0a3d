"""The trials as a picture: a row for each factor, a column for each trial, a shape for the level and the outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from markupsafe import Markup
from rich.cells import cell_len

from culpa.model import Experiment, Factor, Outcome, Trial
from culpa.report import clean
from culpa.report.html.columns import LETTERS, Grid, badge, narrow_grid, wide_grid
from culpa.report.html.labels import Labels
from culpa.report.html.svg import Svg

Mark = Literal["suspect", "safe", "between"]
_ORDER = {"in": 0, "masking": 1, "untested": 2, "out": 3}
_NAME = 26
_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """A factor with what it turned out to be."""

    factor: Factor
    status: str

    @property
    def needed(self) -> bool:
        """Whether the failure needs it."""
        return self.status == "in"


def rows(experiment: Experiment) -> list[Row]:
    """The factors, those that matter first, then as the catalogue has them."""
    status = {one.name: one.status for one in experiment.conclusion.statuses}
    found = [Row(factor, status.get(factor.name, "untested")) for factor in experiment.factors]
    return sorted(found, key=lambda row: _ORDER.get(row.status, 3))[:_MOST_ROWS]


def mark(factor: Factor, trial: Trial) -> Mark:
    """The level of a factor in a trial. One that the trial does not name was as launched."""
    level = trial.configuration.get(factor.name, factor.suspect)
    if level == factor.suspect:
        return "suspect"
    return "safe" if level in factor.safe else "between"


def matrix(experiment: Experiment, labels: Labels, *, narrow: bool = False) -> Markup:
    """The whole picture, band below band."""
    found = rows(experiment)
    trials = experiment.trials
    grid = narrow_grid(len(trials)) if narrow else wide_grid(len(trials))
    counts = {outcome: sum(trial.outcome is outcome for trial in trials) for outcome in Outcome}
    needed = [row.factor.name for row in found if row.needed]
    description = labels(
        "matrix_desc",
        factors=len(found),
        trials=len(trials),
        failed=counts[Outcome.FAIL],
        passed=counts[Outcome.PASS],
        other=counts[Outcome.OTHER],
        untestable=counts[Outcome.UNTESTABLE],
        needed=", ".join(needed) or labels("none"),
    )
    drawing = Svg(
        grid.width,
        "matrix-narrow" if narrow else "matrix",
        labels("matrix"),
        description,
        kind="narrow" if narrow else "wide",
    )
    y = 0.0
    for band in grid.bands(trials):
        y = _band(drawing, grid, found, band, y, labels, narrow=narrow) + 18
    return drawing.finished(max(1.0, y - 12))


def _band(
    drawing: Svg,
    grid: Grid,
    found: Sequence[Row],
    band: Sequence[Trial],
    top: float,
    labels: Labels,
    *,
    narrow: bool,
) -> float:
    """One band; returns where it ends."""
    height = 33.0 if narrow else 30.0 if len(found) <= 16 else 19.0
    head = 52.0
    bottom = top + head + height * len(found)
    failing = [place for place, trial in enumerate(band) if trial.outcome is Outcome.FAIL]
    for place in failing:
        drawing.box(grid.x(place) - grid.step / 2, top + 16, grid.step, bottom - top - 16, "tint")
    _phases(drawing, grid, band, top, labels)
    _heads(drawing, grid, band, top, labels, narrow=narrow)
    for number, row in enumerate(found):
        y = top + head + height * number
        _row(drawing, grid, row, band, y, height, labels, narrow=narrow)
    for place, trial in enumerate(band):
        tip = f"{labels('trial')} {trial.id} · {trial.arm or trial.purpose}: {labels(trial.outcome.value)}"
        drawing.link(
            f"#trial-{trial.id}", tip, grid.x(place) - grid.step / 2, top + 16, grid.step, bottom - top - 16
        )
    return bottom


def _phases(drawing: Svg, grid: Grid, band: Sequence[Trial], top: float, labels: Labels) -> None:
    """What the trials were run for, over the columns."""
    place = 0
    for purpose, group in groupby(band, key=lambda trial: labels.purpose(trial.purpose)):
        count = len(list(group))
        left, right = grid.x(place) - grid.step / 2 + 1.5, grid.x(place + count - 1) + grid.step / 2 - 1.5
        drawing.line(left, top + 13, right, top + 13, "phase")
        if cell_len(purpose) * 6.2 <= right - left:
            drawing.text(left, top + 9, purpose, "small dim")
        place += count


def _heads(
    drawing: Svg, grid: Grid, band: Sequence[Trial], top: float, labels: Labels, *, narrow: bool
) -> None:
    """Number and outcome of each trial."""
    if not narrow:
        drawing.text(0, top + 26, labels("trial"), "small dim")
        drawing.text(0, top + 43, labels("outcome"), "small dim")
    every = 1 if grid.roomy else 5 if grid.step >= 10 else 20
    shapes: dict[Outcome, list[str]] = {}
    for place, trial in enumerate(band):
        x = grid.x(place)
        if trial.id % every == 0 or (place == 0 and every == 1):
            drawing.text(x, top + 26, str(trial.id), "small dim", anchor="middle")
        radius = min(7.5, grid.step / 2 - 0.5)
        shapes.setdefault(trial.outcome, []).append(badge(trial.outcome, x, top + 39, radius))
    for outcome, paths in shapes.items():
        drawing.path("".join(paths), f"badge {outcome.value}")
    if grid.roomy:
        for place, trial in enumerate(band):
            if trial.outcome is not Outcome.UNTESTABLE:
                letter = LETTERS[trial.outcome]
                drawing.text(grid.x(place), top + 43, letter, "letter", anchor="middle")


def _row(
    drawing: Svg,
    grid: Grid,
    row: Row,
    band: Sequence[Trial],
    top: float,
    height: float,
    labels: Labels,
    *,
    narrow: bool,
) -> None:
    factor = row.factor
    level = clean.value(factor.name, factor.suspect) or labels("unset")
    safe = clean.value(factor.name, factor.safe[0]) or labels("unset")
    weight = "name needed" if row.needed else "name"
    end = grid.x(len(band) - 1) + grid.step / 2
    drawing.line(0, top, grid.width if narrow else end, top, "rule")
    if narrow:
        drawing.text(2, top + 12, f"{factor.name}: {level} → {safe}", f"{weight} tiny", limit=44)
        drawing.text(grid.width - 2, top + 12, labels(f"status_{row.status}"), "tiny dim", anchor="end")
        middle = top + 23
    else:
        middle = top + height / 2
        if row.needed:
            drawing.box(0, top + 4, 3, height - 8, "bar")
        if height > 24:
            drawing.text(10, top + 13, factor.name, weight, limit=_NAME)
            drawing.text(10, top + 25, f"{level} → {safe}", "tiny dim", limit=32)
        else:
            drawing.text(10, middle + 4, factor.name, weight, limit=_NAME)
        status = labels(f"status_{row.status}")
        drawing.text(end + 12, middle + 4, status, f"small {'strong' if row.needed else 'dim'}")
    _cells(drawing, grid, factor, band, middle)


def _cells(drawing: Svg, grid: Grid, factor: Factor, band: Sequence[Trial], middle: float) -> None:
    """Full for the level of the launch, hollow for a safe one, half full for one between."""
    paths: dict[tuple[str, Outcome], list[str]] = {}
    side = min(12.0, grid.step - 3) if grid.step >= 9 else grid.step - 1.5
    tall = side if grid.step >= 9 else 12.0
    for place, trial in enumerate(band):
        level = mark(factor, trial)
        x, y = grid.x(place) - side / 2, middle - tall / 2
        whole = f"M{x:g} {y:g}h{side:g}v{tall:g}h{-side:g}z"
        if level == "suspect":
            paths.setdefault(("full", trial.outcome), []).append(whole)
        elif grid.step >= 9:
            paths.setdefault(("hollow", trial.outcome), []).append(whole)
            if level == "between":
                half = f"M{x:g} {y:g}v{tall:g}h{side:g}z"
                paths.setdefault(("full", trial.outcome), []).append(half)
        else:
            low = 2.0 if level == "safe" else tall / 2
            stroke = f"M{x:g} {middle + tall / 2 - low:g}h{side:g}v{low:g}h{-side:g}z"
            paths.setdefault(("full", trial.outcome), []).append(stroke)
    for (fill, outcome), parts in paths.items():
        drawing.path("".join(parts), f"{fill} {outcome.value}")


def legend(experiment: Experiment, labels: Labels) -> Sequence[Mapping[str, object]]:
    """The signs that occur in the picture, with what they mean."""
    entries: list[Mapping[str, object]] = []
    outcomes = {trial.outcome for trial in experiment.trials}
    marks = {mark(row.factor, trial) for row in rows(experiment) for trial in experiment.trials}
    for outcome in (Outcome.FAIL, Outcome.PASS, Outcome.OTHER, Outcome.UNTESTABLE):
        if outcome not in outcomes:
            continue
        drawing = Svg(18, "", "", "", kind="key")
        drawing.path(badge(outcome, 9, 9, 7.5), f"badge {outcome.value}")
        if outcome is not Outcome.UNTESTABLE:
            drawing.text(9, 13, LETTERS[outcome], "letter", anchor="middle")
        entries.append({"sign": drawing.decoration(18), "means": labels(f"{outcome.value}_means")})
    for kind in ("suspect", "safe", "between"):
        if kind not in marks:
            continue
        drawing = Svg(18, "", "", "", kind="key")
        whole = "M3 3h12v12h-12z"
        drawing.path(whole, "full plain" if kind == "suspect" else "hollow plain")
        if kind == "between":
            drawing.path("M3 3v12h12z", "full plain")
        entries.append({"sign": drawing.decoration(18), "means": labels(kind)})
    return entries
