"""What the command line asks of the reports: choose a view, write the files, print the result."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from culpa.model import Experiment, Observer, Plan, Reading
from culpa.model.summary import RunSummary
from culpa.store import EXPERIMENT, PAGE, REPORT
from culpa.written import write_whole


def choose_view(*, quiet: bool = False, as_json: bool = False) -> Observer:
    """Nothing if quiet, a live view on a terminal, else plain lines. JSON keeps standard output for itself."""
    from culpa.report.lines import PlainLines, Quiet

    if quiet:
        return Quiet()
    stream = sys.stderr if as_json else sys.stdout
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return PlainLines(stream)
    from culpa.report.console import plain_console
    from culpa.report.live import RichLive

    return RichLive(plain_console(stream))


def write_reports(experiment: Experiment, folder: Path) -> tuple[Path, Path]:
    """Write `experiment.json`, then `report.md` and `report.html` from what is stored; paths of Markdown and JSON.

    The two reports are made to be passed on: all that is private is taken out of them. Each file is written whole or
    not at all. Raises BadRunFolder if the folder has no journal.
    """
    from culpa.report.json_report import experiment_json

    document = folder / EXPERIMENT
    write_whole(document, experiment_json(experiment))
    return rewrite_reports(folder), document


def rewrite_reports(folder: Path) -> Path:
    """Write `report.md` and `report.html` once more from what the run's folder holds by now; the path of the first."""
    from culpa.report.formats import FORMATS
    from culpa.report.source import load

    source = load(folder)
    write_whole(folder / REPORT, FORMATS["md"].render(source, "en", ""))
    write_whole(folder / PAGE, FORMATS["html"].render(source, "en", ""))
    return folder / REPORT


def print_result(experiment: Experiment, *, as_json: bool = False) -> None:
    """Print the summary, or the whole experiment as JSON."""
    if as_json:
        from culpa.report.json_report import experiment_json

        sys.stdout.write(experiment_json(experiment))
        return
    from culpa.report.console import plain_console
    from culpa.report.terminal import print_summary

    print_summary(experiment, plain_console(sys.stdout), experiment.folder)


def print_plan(plan: Plan, *, as_json: bool = False) -> None:
    """Print what `--dry-run` shows."""
    from culpa.report import plan as report

    if as_json:
        sys.stdout.write(report.plan_json(plan))
    else:
        from culpa.report.console import plain_console

        report.print_plan(plan, plain_console(sys.stdout))


def print_reading(
    reading: Reading, *, as_json: bool = False, compact: bool = False, stream: TextIO | None = None
) -> None:
    """Print what logs tell, or the incident as JSON; `compact` puts the JSON on one line."""
    out = stream or sys.stdout
    if as_json:
        from culpa.report.incident_json import incident_json

        out.write(incident_json(reading, indent=None if compact else 2))
        return
    from culpa.report.console import plain_console
    from culpa.report.incident_terminal import print_incident

    print_incident(reading, plain_console(out))


def print_runs(summaries: Sequence[RunSummary], *, as_json: bool = False) -> None:
    """Print the list of runs."""
    from culpa.report import runs as report

    if as_json:
        sys.stdout.write(report.runs_json(summaries))
    else:
        from culpa.report.console import plain_console

        report.print_runs(summaries, plain_console(sys.stdout))
