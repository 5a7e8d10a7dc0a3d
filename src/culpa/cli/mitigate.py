"""`culpa mitigate`: what keeps a run's failure away for the time being, and what that costs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import complain, result_printed

if TYPE_CHECKING:
    from culpa.isolate import Run

INTERRUPTED = 130


def mitigate(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run of culpa isolate that found a failure.")
    ],
    repeats: Annotated[
        int, typer.Option(metavar="N", help="Launches of each configuration.", min=1, max=100)
    ] = 3,
    most: Annotated[
        int, typer.Option(metavar="N", help="Measure at most this many configurations.", min=1, max=20)
    ] = 4,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON (schema culpa.mitigation/1).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Measure the nearest configurations that kept a failure away beside the failing launch: throughput, time to first
    token, time between tokens and cache size, on the same requests, in turns.

    What passes is offered with its exposure, its price and its command; what only changes the symptom never is. The
    result is kept in the run's folder (mitigation.json). Exit code: 0 something keeps the failure away, 1 nothing does,
    2 bad input, 130 interrupted.
    """
    from culpa.cli.errors import bad_input
    from culpa.isolate import resumed_run
    from culpa.report.source import load

    with bad_input():
        load(run)  # what is measured goes into the run's reports: asked before the launches, not after them
        return measure_and_print(
            resumed_run(run, {}), repeats=repeats, most=most, as_json=as_json, quiet=quiet
        )


def measure_and_print(
    run: "Run", *, repeats: int = 3, most: int = 4, as_json: bool = False, quiet: bool = False
) -> int:
    """Measure what keeps this run's failure away, write it into its folder, and print it; the exit code."""
    from culpa.mitigation import MitigateOptions, mitigate
    from culpa.report.console import plain_console
    from culpa.report.deliver import rewrite_reports
    from culpa.report.mitigation import mitigation_json, print_mitigation, write_mitigation

    def tell(text: str) -> None:
        if not quiet:
            from culpa.report.clean import line

            typer.echo(f"measuring {line(text)}", err=True)

    found = mitigate(run, MitigateOptions(repeats, most), tell)
    path = write_mitigation(found, run.folder)
    rewrite_reports(run.folder)
    with result_printed(f"; it lies in {path}"):
        if as_json:
            sys.stdout.write(mitigation_json(found))
        else:
            print_mitigation(found, plain_console(sys.stdout))
    if found.interrupted:
        return INTERRUPTED
    return 0 if found.options else 1


def measure_afterwards(run: "Run", *, as_json: bool, quiet: bool) -> bool:
    """The same at the end of `culpa isolate`, whose result stands whatever comes of it; whether it was interrupted.

    With `as_json` standard output holds the run's own result already: then it is only written to the folder.
    """
    from culpa.mitigation import MitigateOptions, NothingToMitigate, mitigate
    from culpa.report.deliver import rewrite_reports
    from culpa.report.mitigation import write_mitigation

    try:
        if not as_json:
            return measure_and_print(run, quiet=quiet) == INTERRUPTED
        found = mitigate(run, MitigateOptions())
        write_mitigation(found, run.folder)
        rewrite_reports(run.folder)
        return found.interrupted
    except NothingToMitigate as error:
        complain(str(error))
        return False
