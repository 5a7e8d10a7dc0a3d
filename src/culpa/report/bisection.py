"""What a bisection found: in the terminal, as Markdown, as JSON (schema culpa.bisection/1), and lines while it runs."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model.bisection import Bisection
from culpa.report import clean
from culpa.report.bisection_words import details, headline, row_cells, shown_rows, subject
from culpa.report.console import plain_console, print_trimmed
from culpa.report.markup import cell, fence, table, text
from culpa.store import EXPERIMENT, REPORT
from culpa.written import write_whole

SCHEMA = "culpa.bisection/1"
_STYLES = {"found": "bold red", "no_failure": "bold green"}
_MOST_TITLES = 12
_MOST_SETTINGS = 12
_WIDTH = 200


def write_bisection(result: Bisection, folder: Path) -> None:
    """Write `report.md` and `experiment.json` into the run's folder."""
    write_whole(folder / EXPERIMENT, bisection_json(result))
    write_whole(folder / REPORT, bisection_markdown(result))


def print_bisection(result: Bisection, *, as_json: bool) -> None:
    """Print the summary, or all of it as JSON. Raises OSError where nobody reads any more."""
    if as_json:
        sys.stdout.write(bisection_json(result))
    else:
        print_summary(result, plain_console(sys.stdout))


def bisection_json(result: Bisection) -> str:
    """The whole as JSON, redacted; only ASCII is written."""
    plain = asdict(result)
    trials = [
        {
            "id": trial.id,
            "version": trial.configuration.get("engine_version"),
            "outcome": trial.outcome.value,
            "purpose": trial.purpose,
            "reason": clean.line(trial.reason),
            "seconds": trial.seconds,
            "effective": {name: clean.line(value) for name, value in trial.effective},
            "folder": trial.folder,
        }
        for trial in result.trials
    ]
    good, bad = result.edge
    document: dict[str, Any] = {
        "schema": SCHEMA,
        **{
            name: _clean(value)
            for name, value in plain.items()
            if name not in ("trials", "launch", "edge", "commands")
        },
        "command": clean.line(result.launch.command_line()),
        "last_good": good,
        "first_bad": bad,
        "commands": {"good": result.commands[0], "bad": result.commands[1]},
        "headline": clean.line(headline(result)),
        "trials": trials,
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean.line(value)
    if isinstance(value, dict):
        return {key: _clean(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(one) for one in value]
    return value


def print_summary(result: Bisection, console: Console) -> None:
    """The summary in a terminal: short, with commands that can be copied."""
    console.print()
    style = _STYLES.get(result.outcome, "bold yellow")
    print_trimmed(console, Text(clean.line(headline(result)), style=style))
    for sentence in details(result):
        print_trimmed(console, Padding(Text(clean.line(sentence)), (0, 0, 0, 2)))
    if result.hunted is not None:
        console.print()
        print_trimmed(
            console, Text.assemble(("failure  ", "bold"), (clean.line(result.hunted.describe(), 300), "red"))
        )
    rows = shown_rows(result)
    if rows:
        console.print()
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("version", "trials", "change here", "says of itself", ""):
            grid.add_column(heading, overflow="fold")
        for row in rows:
            grid.add_row(*(Text(clean.line(one, 80)) for one in (row.label, *row_cells(row))))
        print_trimmed(console, grid)
    _print_changes(result, console)
    for label, command in zip(("last good", "first bad"), result.commands, strict=True):
        if command:
            console.print()
            console.print(Text(label, style="bold"))
            console.print(Text(clean.block(command)), soft_wrap=True)
    if result.folder:
        console.print()
        where = str(Path(result.folder) / REPORT)
        console.print(Text.assemble(("report  ", "bold"), clean.line(where)), soft_wrap=True)


def _print_changes(result: Bisection, console: Console) -> None:
    changed = result.changed
    if changed.settings:
        console.print()
        console.print(Text("printed with another value, the command being the same", style="bold"))
        for one in changed.settings[:_MOST_SETTINGS]:
            shown = f"{one.name}: {_value(one.before)} -> {_value(one.after)}"
            print_trimmed(console, Padding(Text(clean.line(shown, _WIDTH)), (0, 0, 0, 2)))
        _print_more(console, len(changed.settings) - _MOST_SETTINGS)
    if changed.titles:
        console.print()
        console.print(Text(f"what came in ({clean.line(changed.source)})", style="bold"))
        for title in changed.titles[:_MOST_TITLES]:
            print_trimmed(console, Padding(Text(clean.line(title, _WIDTH)), (0, 0, 0, 2)))
        _print_more(console, len(changed.titles) - _MOST_TITLES)


def _print_more(console: Console, more: int) -> None:
    if more > 0:
        print_trimmed(console, Padding(Text(f"and {more} more, in the report"), (0, 0, 0, 2)))


def _value(value: str | None) -> str:
    return "(not printed)" if value is None else value


def bisection_markdown(result: Bisection) -> str:
    """The report as a maintainer would want to read it; all foreign text is redacted and escaped."""
    lines = [f"# culpa bisect: {text(subject(result))}", "", text(headline(result)), ""]
    lines += [f"- {text(sentence)}" for sentence in details(result)]
    lines += ["", "## Launch", "", fence(result.launch.command_line(), "sh"), ""]
    if result.hunted is not None:
        lines += ["## Failure", "", text(result.hunted.describe()), ""]
    rows = [(cell(row.label), *(text(one) for one in row_cells(row))) for row in shown_rows(result)]
    if rows:
        lines += ["## Versions", ""]
        lines += [table(("version", "trials", "change here", "says of itself", "remark"), rows), ""]
    if result.changed.settings:
        lines += ["## Settings printed with another value", ""]
        cells = [
            (cell(one.name), text(_value(one.before)), text(_value(one.after)))
            for one in result.changed.settings
        ]
        lines += [table(("setting", "last good", "first bad"), cells), ""]
    if result.changed.titles:
        lines += ["## What came in", "", f"From {text(result.changed.source)}:", ""]
        lines += [f"- {text(title)}" for title in result.changed.titles]
        lines += [""]
    for label, command in zip(("Last good", "First bad"), result.commands, strict=True):
        if command:
            lines += [f"## {label}", "", fence(command, "sh"), ""]
    lines += ["## Trials", ""]
    trials = [
        (
            str(trial.id), cell(trial.configuration.get("engine_version")), text(trial.purpose),
            trial.outcome.value, text(trial.reason),
        )
        for trial in result.trials
    ]  # fmt: skip
    lines += [table(("trial", "version", "why", "outcome", "what"), trials, ("trial",)), ""]
    lines += [f"culpa {result.culpa_version}, run {text(result.run_id)}, {text(result.started)}"]
    return "\n".join(str(line) for line in lines) + "\n"
