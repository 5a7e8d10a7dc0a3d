"""The trials as a picture: factors down, trials across, a sign for the level, a colour for the outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from culpa.model import Configuration, Factor, Outcome
from culpa.report import clean

_NAME_WIDTH = 26
_LEAST_NAME_WIDTH = 14  # room for the words above the names
_STYLES = {
    Outcome.PASS: "green",
    Outcome.FAIL: "red",
    Outcome.OTHER: "magenta",
    Outcome.UNTESTABLE: "yellow",
    None: "bold",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One trial; without an outcome it is the one that runs."""

    id: int
    configuration: Configuration
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters of the picture. Outcomes differ in shape, too: not everybody sees the colours."""

    suspect: str
    safe: str
    between: str
    outcomes: Mapping[Outcome | None, str]
    more: str


UNICODE = Signs(
    suspect="●",
    safe="○",
    between="◐",
    outcomes={
        Outcome.PASS: "✓",
        Outcome.FAIL: "✗",
        Outcome.OTHER: "≠",
        Outcome.UNTESTABLE: "?",
        None: "▸",
    },
    more="…",
)
ASCII = Signs(
    suspect="#",
    safe=".",
    between="+",
    outcomes={
        Outcome.PASS: "P",
        Outcome.FAIL: "F",
        Outcome.OTHER: "O",
        Outcome.UNTESTABLE: "?",
        None: ">",
    },
    more="~",
)


def legend(signs: Signs) -> str:
    """What the signs mean, in one line."""
    outcomes = signs.outcomes
    return (
        f"{signs.suspect} as launched {signs.safe} safe {signs.between} between   "
        f"{outcomes[Outcome.FAIL]} fail {outcomes[Outcome.PASS]} pass "
        f"{outcomes[Outcome.OTHER]} other failure {outcomes[Outcome.UNTESTABLE]} untestable"
    )


def matrix(
    factors: Sequence[Factor],
    columns: Sequence[Column],
    weights: Mapping[str, float],
    *,
    width: int,
    height: int,
    signs: Signs = UNICODE,
) -> list[Text]:
    """Lines of at most `width` cells, at most `height` of them.

    Where the factors do not all fit, those with the highest weight stay, in their own order, and the rest is
    one line. Where the trials do not all fit, the last ones stay.
    """
    if height < 3 or width < 12 or not factors:
        return []
    shown = _chosen(factors, weights, height - 2)
    hidden = len(factors) - len(shown)
    longest = max(cell_len(clean.line(factor.name)) for factor in shown) + 1
    label_width = min(max(longest, _LEAST_NAME_WIDTH), _NAME_WIDTH, width // 2)
    cell = max(3, max((len(str(column.id)) for column in columns), default=1) + 1)
    room = (width - label_width) // cell
    visible = list(columns)[-room:] if room else []
    dropped = len(columns) - len(visible)
    head = f"+{dropped} earlier" if dropped else "trials"
    lines = [_line(head, label_width, [(str(c.id), "dim") for c in visible], cell, signs)]
    outcomes = [(signs.outcomes[c.outcome], _STYLES[c.outcome]) for c in visible]
    lines.append(_line("", label_width, outcomes, cell, signs))
    for factor in shown:
        marks = [(_mark(factor, column, signs), _STYLES[column.outcome]) for column in visible]
        lines.append(_line(clean.line(factor.name), label_width, marks, cell, signs))
    if hidden:
        word = "factor" if hidden == 1 else "factors"
        lines.append(Text(f"{hidden} more {word}, less likely"[:width], style="dim"))
    return lines


def _chosen(factors: Sequence[Factor], weights: Mapping[str, float], rows: int) -> list[Factor]:
    if len(factors) <= rows:
        return list(factors)
    ranked = sorted(factors, key=lambda factor: (-weights.get(factor.name, 0.0), -factor.prior, factor.name))
    kept = {factor.name for factor in ranked[: rows - 1]}
    return [factor for factor in factors if factor.name in kept]


def _mark(factor: Factor, column: Column, signs: Signs) -> str:
    level = column.configuration.get(factor.name, factor.suspect)
    if level == factor.suspect:
        return signs.suspect
    return signs.safe if level in factor.safe else signs.between


def _line(label: str, label_width: int, marks: Sequence[tuple[str, str]], cell: int, signs: Signs) -> Text:
    if cell_len(label) >= label_width:
        label = set_cell_size(label, label_width - 2) + signs.more
    line = Text(set_cell_size(label, label_width), no_wrap=True)
    for mark, style in marks:
        line.append(mark.rjust(cell - 1) + " ", style=style)
    return line
