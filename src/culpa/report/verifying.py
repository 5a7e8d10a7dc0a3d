"""A verification while it runs, and where its result goes."""

import sys
from pathlib import Path
from types import TracebackType

from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from culpa.model.verification import ProbeReport, Verification
from culpa.report import clean
from culpa.report.console import plain_console, print_trimmed
from culpa.report.verification import (
    github_summary,
    junit_xml,
    print_verification,
    probe_line,
    verification_json,
)
from culpa.written import write_whole


class Progress:
    """A line for each probe that is done; in a terminal also what is asked right now, and for how long."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self._stream = sys.stderr if as_json else sys.stdout
        self._console = plain_console(self._stream)
        self._quiet = quiet
        self._bar: Bar | None = None
        if not quiet and self._stream.isatty():
            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            self._bar = Bar(*columns, console=self._console, transient=True)

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def starting(self, name: str, number: int) -> None:
        """A probe is asked from now on."""
        if self._bar is not None:
            again = f", round {number}" if number > 1 else ""
            self._bar.reset(self._task, description=clean.line(f"{name}{again}"), total=None)

    def done(self, probe: ProbeReport) -> None:
        """A probe is done."""
        if self._quiet:
            return
        try:
            print_trimmed(self._console, probe_line(probe))
        except OSError:  # the reader has gone; the verification goes on for its exit code and its files
            self._quiet = True


def write_files(found: Verification, *, junit: Path | None, summary: str | None) -> list[str]:
    """Write what was asked for; what could not be written is told, a line each."""
    unwritten = []
    if junit is not None:
        try:
            write_whole(junit, junit_xml(found))
        except OSError as error:
            unwritten.append(f"--junit {junit}: can't be written: {error.strerror or error}")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(github_summary(found) + "\n")
        except OSError as error:
            unwritten.append(f"GITHUB_STEP_SUMMARY {summary}: can't be written: {error.strerror or error}")
    return unwritten


def print_result(found: Verification, *, as_json: bool) -> None:
    """Print the result. Raises OSError where nobody reads any more."""
    if as_json:
        sys.stdout.write(verification_json(found))
    else:
        print_verification(found, plain_console(sys.stdout))
