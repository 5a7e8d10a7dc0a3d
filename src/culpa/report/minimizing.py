"""`culpa minimize` on a terminal: a line for each candidate, and what is left at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.table import Table
from rich.text import Text

from culpa.model.minimization import Attempt, Minimization, Rerun, Size
from culpa.report import clean
from culpa.report.console import plain_console, print_trimmed
from culpa.report.words import plural

_CHANGE = 160


class MinimizeLines:
    """One line a candidate, flushed at once; on a terminal the trial under way is told too."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._phase: tuple[int, str] | None = None

    def attempt(self, attempt: Attempt) -> None:
        """What was tried, and how it ended."""
        self._line(f"{attempt.step}: {clean.line(attempt.change, _CHANGE)}: {outcome_text(attempt)}")

    def progress(self, number: int, phase: str, _seconds: float, _detail: str) -> None:
        """The phase of the trial under way, once."""
        if phase in ("starting", "probing") and (number, phase) != self._phase and self._stream.isatty():
            self._phase = (number, phase)
            self._line(f"  trial {number}: {phase}")

    def note(self, text: str) -> None:
        """A sentence."""
        self._line(clean.line(text))

    def _line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._stream, flush=True)


def outcome_text(attempt: Attempt) -> str:
    """How the trials of a candidate ended, and whether it was kept."""
    count = attempt.count
    parts = [f"failed {count.failed} of {count.trials}"] if count.trials else []
    parts += [f"failed differently {plural(attempt.other, 'time')}"] if attempt.other else []
    parts += [f"could not be tried {plural(attempt.untestable, 'time')}"] if attempt.untestable else []
    text = ", ".join(parts) or "not tried"
    text += ", kept" if attempt.kept else ""
    return f"{text} ({attempt.note})" if attempt.note else text


def print_minimization(result: Minimization, folder: Path, stream: TextIO) -> None:
    """The summary."""
    console = plain_console(stream)
    stopped = f", ended early: {result.stopped}" if result.stopped else ""
    headline = f"Made smaller in {plural(result.trials, 'trial')} ({result.elapsed_seconds:.0f} s{stopped})"
    console.print()
    console.print(Text(headline, style="bold"), soft_wrap=True)
    rows = [
        ("still fails with", clean.line(result.signature)),
        ("command", clean.line(result.command)),
        ("requests", clean.line(result.request)),
        ("size", f"{size_text(result.before)} → {size_text(result.after)}"),
        ("rate", result.rate_sentence or "not measured at the end"),
        *(("threshold", sentence) for sentence in result.thresholds),
        *((("passes with", clean.line(result.control)),) if result.control else ()),
        *(("files run", rerun_text(rerun)) for rerun in result.reruns),
        *(("note", clean.line(note)) for note in result.notes),
        ("files", str(folder)),
    ]
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    print_trimmed(console, table)


def size_text(size: Size) -> str:
    """A size in a few words."""
    parts = [plural(size.words, "word"), plural(size.variables, "variable"), plural(size.requests, "request")]
    return ", ".join([*parts, f"{size.prompt_tokens} prompt tokens"])


def rerun_text(rerun: Rerun) -> str:
    """What came of the files when they were run by themselves."""
    which = "repro.sh control" if rerun.control else "repro.sh"
    times = "" if rerun.runs == 1 else f" ({rerun.failed} of {rerun.runs} runs failed)"
    return f"{which} in a clean shell: {clean.line(rerun.said, 200)}{times}"


def minimization_markdown(result: Minimization) -> str:
    """The result as a page: the smallest case, and what was tried on the way."""
    from culpa.report.markup import code, fence

    lines = [
        "# The smallest case that still fails",
        "",
        f"It fails with {code(clean.line(result.signature))}.",
        "",
        fence(clean.block(result.command), "sh"),
        "",
        f"- requests: {result.request}",
        f"- size: {size_text(result.before)} → {size_text(result.after)}",
        f"- rate: {result.rate_sentence or 'not measured at the end'}",
        *(f"- threshold: {sentence}" for sentence in result.thresholds),
        *((f"- passes with {code(clean.line(result.control))}",) if result.control else ()),
        *(f"- {code(clean.line(rerun_text(rerun)))}" for rerun in result.reruns),
        *(f"- {clean.line(note)}" for note in result.notes),
        *((f"- ended early: {result.stopped}",) if result.stopped else ()),
        "",
        "`sh repro.sh` starts the engine, asks, and prints PASS or FAIL; `sh repro.sh control` is the same where it "
        "passes. Both need the engine and Python's standard library.",
        "",
        f"## What was tried: {plural(result.trials, 'trial')} in {result.elapsed_seconds:.0f} s",
        "",
        "| step | change | outcome |",
        "|---|---|---|",
        *_rows(result.attempts),
    ]
    return "\n".join(lines) + "\n"


def _rows(attempts: Sequence[Attempt]) -> list[str]:
    from culpa.report.markup import cell

    return [
        f"| {one.step} | {cell(clean.line(one.change, _CHANGE))} | {cell(outcome_text(one))} |"
        for one in attempts
    ]
