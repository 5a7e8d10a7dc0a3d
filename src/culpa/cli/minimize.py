"""`culpa minimize`: the smallest command and requests that still fail, as files that run by themselves."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import bad_input, result_printed

if TYPE_CHECKING:
    from culpa.minimize import MinimizeOptions


def minimize(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run that isolated a failure.")
    ],
    max_trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run at most this many trials.", min=1, show_default="no limit"),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Start no trial after this time (90s, 30m, 2h).", show_default="no limit"
        ),
    ] = None,
    finding: Annotated[
        int, typer.Option(metavar="N", help="Which finding of the run, counted from 1.", min=1)
    ] = 1,
    rerun: Annotated[
        bool, typer.Option("--rerun/--no-rerun", help="Run the files in a clean shell at the end.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Make the failing case of a run smaller, while its failure and its rate stay.

    Flags, variables, requests and fields that do not matter go; numbers go to their thresholds; the prompt says less.
    Writes repro.sh and repro.py into RUN/minimize and runs them. Goes on where it was cut off.

    Exit code: 1 the smallest case fails, as it should; 2 bad input, or the failure does not come any more;
    130 interrupted (the same command goes on).
    """
    from culpa.cli.seconds import seconds
    from culpa.minimize import MinimizeOptions

    with bad_input():
        limit = seconds("--max-time", max_time) if max_time is not None else None
        return carry_out(
            folder, MinimizeOptions(max_trials, limit, finding, rerun), as_json=as_json, quiet=quiet
        )


def carry_out(
    folder: Path, options: "MinimizeOptions", *, as_json: bool, quiet: bool, printed: bool = True
) -> int:
    """Minimize a run while it is shown, write the page, print the result (unless `printed` is False)."""
    from culpa.minimize import FOLDER, Watcher, minimize
    from culpa.minimize.document import minimization_json
    from culpa.report.deliver import rewrite_reports
    from culpa.report.minimizing import MinimizeLines, minimization_markdown, print_minimization
    from culpa.written import write_whole

    place = folder.resolve() / FOLDER
    lines = MinimizeLines(sys.stderr if as_json or not printed else sys.stdout, quiet=quiet)
    result, interrupted = minimize(folder, options, Watcher(lines.attempt, lines.progress, lines.note))
    write_whole(place / "minimization.md", minimization_markdown(result))
    rewrite_reports(place.parent)
    with result_printed(f"; it lies in {place}"):
        if as_json:
            sys.stdout.write(minimization_json(result))
        elif printed:
            print_minimization(result, place, sys.stdout)
    return 130 if interrupted else 1
