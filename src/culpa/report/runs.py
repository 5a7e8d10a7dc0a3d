"""The table of `culpa runs`, and the same as JSON."""

import json
from collections.abc import Sequence
from math import isfinite

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model.summary import RunSummary
from culpa.report import clean, words
from culpa.report.console import print_trimmed

_STYLES = {"isolated": "red", "no_failure": "green", "broken": "bold red"}
_WIDE = 110
_FINDING_WIDTH = 160


def print_runs(summaries: Sequence[RunSummary], console: Console) -> None:
    """Print the runs in the order given: one line each, or two where the console is narrow."""
    if not summaries:
        console.print(Text("no runs here"))
        return
    print_trimmed(console, _wide(summaries) if console.width >= _WIDE else _narrow(summaries))


def _wide(summaries: Sequence[RunSummary]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("run", overflow="fold", max_width=30)
    table.add_column("started", no_wrap=True)
    table.add_column("engine", overflow="fold", max_width=20)
    table.add_column("outcome", no_wrap=True)
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("finding", overflow="fold", ratio=1)
    for run in summaries:
        table.add_row(
            Text(clean.line(run.run_id)),
            Text(_minute(run)),
            Text(clean.line(run.engine)),
            _outcome(run),
            Text(str(run.trials)),
            Text(words.duration(run.elapsed_seconds)),
            Text(clean.line(run.finding, _FINDING_WIDTH)),
        )
    return table


def _narrow(summaries: Sequence[RunSummary]) -> Group:
    parts: list[RenderableType] = []
    for run in summaries:
        took = f"{words.plural(run.trials, 'trial')} in {words.duration(run.elapsed_seconds)}"
        about = [_minute(run), clean.line(run.engine), took]
        parts.append(Text.assemble(clean.line(run.run_id), "  ", _outcome(run)))
        parts.append(Padding(Text("  ".join(part for part in about if part), style="dim"), (0, 0, 0, 2)))
        if run.finding:
            parts.append(Padding(Text(clean.line(run.finding, _FINDING_WIDTH)), (0, 0, 0, 2)))
    return Group(*parts)


def _minute(run: RunSummary) -> str:
    return clean.line(run.started)[:16].replace("T", " ")


def _outcome(run: RunSummary) -> Text:
    return Text(clean.line(run.outcome).replace("_", " "), style=_STYLES.get(run.outcome, ""))


def runs_json(summaries: Sequence[RunSummary]) -> str:
    """The same as a JSON list, with a newline at its end; only ASCII."""
    rows = [
        {
            "run_id": run.run_id,
            "started": run.started,
            "engine": clean.line(run.engine),
            "outcome": run.outcome,
            "finding": clean.line(run.finding),
            "trials": run.trials,
            "elapsed_seconds": run.elapsed_seconds if isfinite(run.elapsed_seconds) else None,
        }
        for run in summaries
    ]
    return json.dumps(rows, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
