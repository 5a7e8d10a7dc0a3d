"""`culpa bench`: how well culpa does where the truth is known."""

from pathlib import Path
from typing import Annotated

import typer

bench = typer.Typer(
    name="bench",
    help="Measure how well culpa does where the truth is known.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@bench.callback()
def _bench(ctx: typer.Context) -> None:
    """Keeps `zoo` a verb of its own although it is the only one."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@bench.command(short_help="Isolate every known fault and compare with the truth.")
def zoo(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="FAULT...", help="Only these faults.", show_default="all of them"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the runs.", show_default="a temporary folder"),
    ] = None,
    max_trials: Annotated[
        int, typer.Option(metavar="N", help="Trials that one fault may take at most.", min=1)
    ] = 80,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of prompts and of the search.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> int:
    """Isolate every fault of the reference engine and compare with the truth.

    Exit code: 0 every finding is exact, 1 some are not, 2 bad input, 130 interrupted.
    """
    from culpa.cli.errors import bad_input
    from culpa.report.zoo import RowPrinter
    from culpa.zoo import check_room, fault_named, isolate_fault, known_faults

    with bad_input():
        faults = tuple(map(fault_named, dict.fromkeys(names))) if names else known_faults()
        if out is not None:
            check_room(faults, out)
        table = RowPrinter(as_json=as_json)
        for fault in faults:
            result = isolate_fault(fault, out, max_trials=max_trials, seed=seed)
            if result is None:
                table.close()
                return 130
            table.show(result)
        table.close()
    return 0 if table.all_exact else 1
