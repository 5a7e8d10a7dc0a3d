"""`culpa runs`: the runs that lie in a folder."""

from pathlib import Path
from typing import Annotated

import typer

from culpa.cli.errors import complain


def runs(
    root: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that holds the runs.")] = Path(
        "culpa-runs"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> int:
    """List the runs in a folder with their outcomes, oldest first."""
    from culpa.report import print_runs
    from culpa.store import list_runs

    if root.exists() and not root.is_dir():
        complain(f"{root} is a file: give the folder that holds the runs")
        return 2
    if not root.is_dir():
        complain(f"there are no runs: {root} does not exist (culpa isolate makes it)")
        return 2
    print_runs(list_runs(root), as_json=as_json)
    return 0
