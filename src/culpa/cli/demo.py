"""`culpa demo`: the whole of culpa at work on the reference engine, whose fault is known."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    name: Annotated[
        str, typer.Argument(metavar="FAULT", help="Which fault of the reference engine to look for.")
    ] = "incident",
    show_list: Annotated[bool, typer.Option("--list", help="List the faults and stop.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the run.", show_default="culpa-runs/<time>"),
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run at most this many trials.", min=1, show_default="no limit"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of prompts and of the search.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result (or the list) as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Isolate a fault of the reference engine that comes with culpa: no GPU, no download, about a minute.

    Without a name it is the incident that culpa began with: captured execution, pipeline stages and a long prompt
    give an illegal memory access on PP1. Exit code: 0 the finding is the fault that was switched on, 1 it is not,
    2 bad input or the harness could not run, 130 interrupted.
    """
    from culpa.cli.errors import bad_input
    from culpa.isolate import new_run, set_up
    from culpa.model.options import IsolateOptions
    from culpa.zoo import asked, fault_named, known_faults

    with bad_input():
        if show_list:
            from culpa.report.zoo import print_faults

            print_faults(known_faults(), as_json=as_json)
            return 0
        fault = fault_named(name)
        options = IsolateOptions(max_trials=max_trials, seed=seed)
        run = new_run(set_up(asked(fault, options)), out)
        from culpa.cli.isolate import run_and_report
        from culpa.report.zoo import print_verdict
        from culpa.zoo import score

        experiment = run_and_report(run, as_json=as_json, quiet=quiet)
    if experiment.interrupted:
        return 130
    result = score(fault, experiment)
    if not as_json:
        print_verdict(fault, result)
    return 0 if result.exact else 1
