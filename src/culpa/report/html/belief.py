"""How the belief in the likeliest sets moved, trial by trial, and what each trial told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from culpa.model import Trial
from culpa.model.told import Told
from culpa.report import words
from culpa.report.html.columns import NAMES, NARROW, WIDE, Grid, narrow_grid, wide_grid
from culpa.report.html.labels import Labels
from culpa.report.html.svg import Svg

_MOST = 4
_KEYS = "ABCD"
_HIGH, _BITS_HIGH = 170.0, 44.0
_TOP = 12.0

Set = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A set of factors with its probability after each trial; None where it was not among the likeliest."""

    key: str
    members: Set
    chances: tuple[float | None, ...]

    @property
    def last(self) -> float | None:
        """The probability after the last trial."""
        return next((chance for chance in reversed(self.chances) if chance is not None), None)


def lines(trials: Sequence[Trial], told: Mapping[int, Told]) -> list[Line]:
    """The sets that are likeliest in the end, and those that once were, the likeliest first."""
    if not told:
        return []
    after: list[dict[Set, float]] = []
    current: dict[Set, float] = {}
    for trial in trials:
        if trial.id in told:
            current = dict(told[trial.id].after)
        after.append(current)
    last = after[-1]
    peak: dict[Set, float] = {}
    for belief in after:
        for members, chance in belief.items():
            peak[members] = max(peak.get(members, 0.0), chance)
    first = max(last, key=lambda members: last[members], default=())
    rest = sorted((members for members in peak if members != first), key=lambda one: (-peak[one], one))
    chosen = ([first] if last else []) + rest[: _MOST - 1]
    return [
        Line(_KEYS[index], members, tuple(belief.get(members) for belief in after))
        for index, members in enumerate(chosen)
    ]


def belief_picture(
    trials: Sequence[Trial], told: Mapping[int, Told], labels: Labels, *, narrow: bool = False
) -> Markup:
    """Lines of probability over the trials, and under them the bits that each trial told."""
    found = lines(trials, told)
    grid = _grid(len(trials), narrow=narrow)
    best = found[0] if found else None
    description = labels(
        "belief_desc",
        best=words.names(best.members) if best else labels("none"),
        chance=words.probability(best.last) if best and best.last is not None else "",
        trials=len(trials),
    )
    name = "belief-narrow" if narrow else "belief"
    drawing = Svg(grid.width, name, labels("belief"), description, kind="narrow" if narrow else "wide")
    end = grid.x(len(trials) - 1) + grid.step / 2
    for share in (0.0, 0.5, 1.0):
        y = _y(share)
        drawing.line(grid.left, y, end, y, "rule" if share else "axis")
        if not narrow:
            drawing.text(grid.left - 8, y + 4, f"{share:.0%}", "small dim", anchor="end")
        elif share:
            drawing.text(grid.left, y + 11, f"{share:.0%}", "tiny dim")
    if not narrow:
        drawing.text(0, _TOP + 4, labels("probability"), "small dim")
    for line in reversed(found):
        _line(drawing, grid, line)
    _end_labels(drawing, found, end)
    bottom = _bits(drawing, grid, trials, told, labels, narrow=narrow)
    return drawing.finished(bottom)


def _grid(count: int, *, narrow: bool) -> Grid:
    """The columns of the matrix if they fit into one band, so that both are read as one picture; else closer."""
    grid = narrow_grid(count) if narrow else wide_grid(count)
    if count <= grid.per_band and not narrow:
        return grid
    width, left, right = (NARROW, 2.0, 26.0) if narrow else (WIDE, NAMES, 96.0)
    return Grid(width, left, (width - left - right) / max(1, count), max(1, count))


def _y(chance: float) -> float:
    return _TOP + (1 - chance) * _HIGH


def _line(drawing: Svg, grid: Grid, line: Line) -> None:
    data: list[str] = []
    previous: int | None = None
    for place, chance in enumerate(line.chances):
        if chance is None:
            continue
        joined = previous is not None and place == previous + 1
        data.append(f"{'L' if joined else 'M'}{grid.x(place):g} {_y(chance):.1f}")
        if not joined:
            data.append("h0.01")  # a single point shows as a dot
        previous = place
    drawing.path("".join(data), f"belief {line.key}")


def _end_labels(drawing: Svg, found: Sequence[Line], end: float) -> None:
    """Keys at the ends of the lines, apart from each other."""
    places = sorted((_y(line.last or 0.0), line.key, line) for line in found if line.chances[-1] is not None)
    taken = -100.0
    for y, key, line in places:
        taken = max(y + 4, taken + 14)
        chance = words.probability(line.last or 0.0)
        text = key if drawing.width < 500 else f"{key}  {chance}"
        drawing.text(end + 8, taken, text, f"small {'strong' if key == 'A' else 'dim'}")


def _bits(
    drawing: Svg,
    grid: Grid,
    trials: Sequence[Trial],
    told: Mapping[int, Told],
    labels: Labels,
    *,
    narrow: bool,
) -> float:
    """Bars of what each trial told; returns where the picture ends."""
    base = _TOP + _HIGH + 34 + _BITS_HIGH
    most = max((told[trial.id].told for trial in trials if trial.id in told), default=0.0)
    if most > 0:
        width = max(1.0, grid.step - 4)
        data = []
        for place, trial in enumerate(trials):
            height = told[trial.id].told / most * _BITS_HIGH if trial.id in told else 0.0
            if height > 0.4:
                left = grid.x(place) - width / 2
                data.append(f"M{left:g} {base:g}v{-height:.1f}h{width:g}v{height:.1f}z")
        drawing.path("".join(data), "bits")
    end = grid.x(len(trials) - 1) + grid.step / 2
    drawing.line(grid.left, base, end, base, "axis")
    if narrow:
        drawing.text(grid.left, base - _BITS_HIGH - 8, labels("bits_told"), "tiny dim")
    else:
        drawing.text(0, base - 3, labels("bits_told"), "small dim")
        if most > 0:
            peak = f"{most:.1f}"
            drawing.text(grid.left - 8, base - _BITS_HIGH + 8, peak, "small dim", anchor="end")
    every = 1 if grid.step >= 18 else 5 if grid.step >= 8 else 20 if grid.step >= 2 else 100
    for place, trial in enumerate(trials):
        if trial.id % every == 0 or (every == 1 and place == 0):
            drawing.text(grid.x(place), base + 14, str(trial.id), "small dim", anchor="middle")
    return base + 20
