"""The comparison of what keeps a failure away: printed, and as `mitigation.json` (schema culpa.mitigation/1)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model.mitigation import METRICS, Measured, Metric, Mitigation, NotOffered, Option
from culpa.report import clean
from culpa.report.console import print_trimmed
from culpa.report.words import listing, percent, plural
from culpa.written import write_whole

SCHEMA = "culpa.mitigation/1"
FILE = "mitigation.json"
_TITLES: dict[Metric, str] = {
    "throughput": "tokens/s",
    "first_token": "first token",
    "inter_token": "next token",
    "capacity": "KV tokens",
}


def mitigation_json(found: Mitigation) -> str:
    """The text of `mitigation.json`, with a newline at its end; only ASCII."""
    document: dict[str, Any] = {"schema": SCHEMA, **asdict(found)}
    return json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def write_mitigation(found: Mitigation, folder: Path) -> Path:
    """Write it into the run's folder, whole or not at all; its path. Raises OSError."""
    path = folder / FILE
    write_whole(path, mitigation_json(found))
    return path


def parse_mitigation(document: Any) -> Mitigation | None:
    """What a document of `mitigation.json` holds; None where there is none, or one of another version."""
    from pydantic import TypeAdapter, ValidationError

    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        return None
    plain = {name: value for name, value in document.items() if name != "schema"}
    try:
        found: Mitigation = TypeAdapter(Mitigation).validate_python(plain)
    except ValidationError:
        return None
    return found


def read_mitigation(folder: Path) -> Mitigation | None:
    """What a run's folder holds of it; None where nothing was measured, or by another culpa."""
    try:
        return parse_mitigation(json.loads((folder / FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def print_mitigation(found: Mitigation, console: Console) -> None:
    """Print the table, each configuration's command with what to know of it, and what is not offered."""
    count = len(found.options)
    words = (
        f"{plural(count, 'configuration')} kept the failure away"
        if count
        else "nothing that was measured kept it away"
    )
    cut = ", interrupted" if found.interrupted else ""
    print_trimmed(console, Text(f"{words}{cut}", style="bold"))
    asked = f"asked of each, in each of {plural(found.repeats, 'launch')}: {found.workload}"
    print_trimmed(console, Text(clean.line(asked), style="dim"))
    console.print()
    print_trimmed(console, _table(found))
    for caveat in found.caveats:
        print_trimmed(console, Text(f"note: {clean.line(caveat)}", style="yellow"))
    for number, option in enumerate(found.options, start=1):
        console.print()
        print_trimmed(console, Text(clean.line(f"{number}  {option.name}"), style="bold green"))
        for sentence in sentences(option):
            print_trimmed(console, Padding(Text(clean.line(sentence)), (0, 0, 0, 3)))
        for line in command_lines(option, found):
            console.print(Text(f"   {line}"), soft_wrap=True)
    if found.not_offered:
        console.print()
        print_trimmed(console, Text("not offered", style="bold"))
        for one in found.not_offered:
            print_trimmed(console, Padding(Text(clean.line(_refused(one))), (0, 0, 0, 2)))


def sentences(option: Option) -> list[str]:
    """What it is, and how far it is known to keep the failure away."""
    exposure = option.exposure
    said = [
        f"A contrast that passes with this exposure: {plural(exposure.launches, 'launch')}, "
        f"{plural(exposure.requests, 'request')}, no failure; a rate over "
        f"{percent(exposure.excluded_launch_rate)} of launches or {percent(exposure.excluded_request_rate)} of "
        "requests is excluded at 95%. The cause is still there."
    ]
    if option.workarounds:
        named = listing(
            [f"{one.url} ({one.status})" if one.status else one.url for one in option.workarounds]
        )
        said.append(f"A known upstream workaround: {named}.")
    if option.asked == "passed":
        said.append("The failing requests were asked again during the measurement, and passed.")
    return said


def command_lines(option: Option, found: Mitigation) -> list[str]:
    """The command to run for the time being, with a comment on when to remove it; made for a shell."""
    changes = listing(
        [f"{name}={level} in place of {before or 'unset'}" for name, before, level in option.changes]
    )
    watch = [f"# and watch {one.url}" for one in option.workarounds]
    return [
        f"# stands in for the time being: {clean.line(changes)}",
        f"# remove it when this passes on a newer release: culpa verify -- {clean.line(found.command)}",
        *watch,
        clean.line(option.command),
    ]


def _table(found: Mitigation) -> Table:
    """A row each, by the numbers under which they are told below; a ratio stands under its value."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True)
    for metric in METRICS:
        table.add_column(_TITLES[metric], justify="right")
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_row(Text("failing launch"), *_cells(found.failing), Text("1"))
    for number, option in enumerate(found.options, start=1):
        cost = Text(f"{option.cost:.2f}" if option.cost is not None else "-")
        table.add_row(Text(str(number)), *_cells(option.measured), cost)
    return table


def _cells(measured: Sequence[Measured]) -> list[Text]:
    by_metric = {one.metric: one for one in measured}
    return [Text("\n".join(_cell(by_metric.get(metric)))) for metric in METRICS]


def _cell(one: Measured | None) -> list[str]:
    if one is None:
        return ["-"]
    lines = [value_text(one.metric, one.median)]
    low, high = value_text(one.metric, one.lowest), value_text(one.metric, one.highest)
    if low != high:
        unit = low.partition(" ")[2]
        lines.append(f"{low.partition(' ')[0]}-{high}" if high.endswith(unit) else f"{low}-{high}")
    return [*lines, *ratio_text(one).split(" ", 1)] if one.ratio is not None else lines


def ratio_text(one: Measured) -> str:
    """`x0.31 (0.28-0.34)`; without the interval where it is a point or unknown."""
    if one.ratio is None:
        return ""
    text = f"x{one.ratio:.2f}"
    if one.low is None or one.high is None or f"{one.low:.2f}" == f"{one.high:.2f}":
        return text
    return f"{text} ({one.low:.2f}-{one.high:.2f})"


def value_text(metric: Metric, value: float) -> str:
    """A value in the unit in which people speak of it."""
    if metric == "capacity":
        return f"{value:,.0f}"
    if metric == "throughput":
        return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def _refused(one: NotOffered) -> str:
    changes = listing([f"{name}={level}" for name, _, level in one.changes])
    return f"{changes}: {one.reason}"
