"""`culpa triage`: from the logs that a failure left behind to the first thing that went wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from culpa.cli.errors import complain

if TYPE_CHECKING:
    from culpa.model import Reading

FAILURE_FOUND = 1


class EngineName(StrEnum):
    """Whose log it is."""

    AUTO = "auto"
    VLLM = "vllm"
    LLAMACPP = "llamacpp"


def triage(
    file: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Logs of one failure, in any order; - or none reads standard input.",
            show_default=False,
        ),
    ] = None,
    kernel_log: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The host's kernel log: dmesg, journalctl -k. May be repeated.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Go on reading a growing log; print a summary whenever a failure shows."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the incident as JSON (schema culpa.incident/1).")
    ] = False,
    annotate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the logs there, with root event, consequences and noise marked; - is standard output, and "
            "the summary goes to standard error.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        EngineName,
        typer.Option(help="Read the lines as this engine's. By default every engine is recognised."),
    ] = EngineName.AUTO,
) -> int:
    """Read logs and say what broke: the first event, what only followed, which GPU, how sure, and what to do.

    Ends with 1 if a failure was found, 0 if none is to be seen, 2 if the logs can't be read.

    Examples: culpa triage engine.log --kernel-log dmesg.txt; journalctl -u vllm | culpa triage; culpa triage -f
    engine.log
    """
    from culpa.logs import annotate_logs, read_logs, spooled_stdin
    from culpa.report import print_reading
    from culpa.sources import SourceError

    dialect = "generic" if engine is EngineName.AUTO else engine.value
    paths: list[Path | None] = [None if name == "-" else Path(name) for name in file or ["-"]]
    problem = _problem(paths, kernel_log or [], follow=follow, annotate=annotate)
    if problem:
        complain(problem)
        return 2
    kernel: list[Path | None] = list(kernel_log or [])
    try:
        if follow:
            found = _follow(paths[0], kernel, dialect, as_json=as_json)
        elif annotate is None:
            found = read_logs([*kernel, *paths], dialect)
            print_reading(found, as_json=as_json)
        else:
            with spooled_stdin() if None in paths else _nothing() as spool:
                named = [path if path is not None else spool for path in [*kernel, *paths]]
                found = read_logs(named, dialect)
                with _output(annotate) as out:
                    annotate_logs([path for path in named if path is not None], found, out, dialect)
            print_reading(found, as_json=as_json, stream=sys.stderr if annotate == "-" else None)
    except SourceError as error:
        complain(str(error))
        return 2
    return FAILURE_FOUND if found.incident is not None else 0


def _problem(paths: list[Path | None], kernel_log: list[Path], *, follow: bool, annotate: str | None) -> str:
    """Why these arguments can't be, in one line; empty if they can."""
    if paths.count(None) > 1:
        return "standard input can be read only once"
    if None in paths and (sys.stdin is None or sys.stdin.isatty()):
        return "name the log files, or pipe a log into culpa triage: journalctl -u vllm | culpa triage"
    for path in [*paths, *kernel_log]:
        if path is not None and not path.exists():
            return f"{path} does not exist"
    named = [path for path in [*paths, *kernel_log] if path is not None]
    for number, path in enumerate(named):
        if path.is_file() and any(path.samefile(other) for other in named[:number] if other.is_file()):
            return f"{path} is named twice: one log counts once"
    if follow and len(paths) > 1:
        return "--follow reads one log: name one file"
    if follow and len(kernel_log) > 1:
        return "--follow takes one --kernel-log"
    if follow and annotate is not None:
        return "--annotate needs a log that has ended: leave out --follow"
    if annotate not in (None, "-"):
        target = Path(str(annotate))
        if any(
            path is not None and target.exists() and path.samefile(target) for path in [*paths, *kernel_log]
        ):
            return f"--annotate would overwrite {target}, which is a log to be read"
        from culpa.written import why_unwritable

        if why := why_unwritable(target):
            return f"--annotate {target}: can't be written: {why}"
    return ""


def _follow(path: Path | None, kernel: list[Path | None], dialect: str, *, as_json: bool) -> "Reading":
    """Tell of every new judgement until the pipe ends or the user does."""
    from culpa.logs import follow_log
    from culpa.model import Reading
    from culpa.report import print_reading

    last = Reading((), 0, None)

    def tell(reading: Reading) -> None:
        nonlocal last
        last = reading
        print_reading(reading, as_json=as_json, compact=True)
        sys.stdout.flush()

    try:
        return follow_log(path, kernel[0] if kernel else None, tell, dialect)
    except KeyboardInterrupt:
        return last


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


@contextmanager
def _output(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield sys.stdout
        return
    from culpa.written import written_whole

    try:
        with written_whole(Path(name)) as out:
            yield out
    except OSError as error:
        from culpa.sources import SourceError

        raise SourceError(f"--annotate {name}: can't be written: {error.strerror or error}") from error
