"""Bad input leaves as one line on standard error and exit code 2."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer


def complain(text: str) -> None:
    """Tell what is wrong in one printable line on standard error, if anybody reads it: names that a user or an engine
    gave may hold line ends and terminal escapes."""
    from culpa.report.clean import line

    with suppress(OSError):  # the exit code tells it too
        typer.echo(f"culpa: {line(text)}", err=True)


@contextmanager
def result_printed(elsewhere: str = "") -> Iterator[None]:
    """A result that can't be printed is told in one line; what it means is told by the exit code all the same."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        complain(f"can't print the result ({error.strerror}){elsewhere}")
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the interpreter's own flush at exit


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn every error that a user can mend into one line; anything else is our own fault and stays a crash."""
    from culpa.engines import BadFactors, BadLaunch
    from culpa.experiment import HarnessCannotRun
    from culpa.guard import BadGuard
    from culpa.minimize import NothingToMinimize
    from culpa.mitigation import NothingToMitigate
    from culpa.probes import BadRequestFile, BadText
    from culpa.selection import BadSelection
    from culpa.store import BadRunFolder
    from culpa.target import Unreachable
    from culpa.traffic import BadRecording
    from culpa.verify import BadGolden, CannotVerify
    from culpa.versions import BadVersions
    from culpa.zoo import BadFault

    mendable = (
        BadFactors,
        BadFault,
        BadGolden,
        BadGuard,
        BadLaunch,
        BadRecording,
        BadRequestFile,
        BadRunFolder,
        BadSelection,
        BadText,
        BadVersions,
        CannotVerify,
        HarnessCannotRun,
        NothingToMinimize,
        NothingToMitigate,
        Unreachable,
    )
    try:
        yield
    except mendable as error:
        complain(str(error))
        raise typer.Exit(2) from None


@contextmanager
def bad_layout() -> Iterator[None]:
    """The same for `culpa layout`, which needs none of the rooms that run trials."""
    from culpa.engines.errors import BadFactors, BadLaunch
    from culpa.layout.errors import BadLayout

    try:
        yield
    except (BadFactors, BadLaunch, BadLayout) as error:
        complain(str(error))
        raise typer.Exit(2) from None


@contextmanager
def bad_environment() -> Iterator[None]:
    """The same for `culpa env`."""
    from culpa.engines.errors import BadFactors, BadLaunch
    from culpa.environment import BadEnvironment
    from culpa.sources import SourceError

    try:
        yield
    except (BadEnvironment, BadFactors, BadLaunch, SourceError) as error:
        complain(str(error))
        raise typer.Exit(2) from None


@contextmanager
def bad_traffic() -> Iterator[None]:
    """The same for `culpa record` and for `culpa replay` on an endpoint, which start no engine."""
    from culpa.traffic import BadRecording

    try:
        yield
    except BadRecording as error:
        complain(str(error))
        raise typer.Exit(2) from None
