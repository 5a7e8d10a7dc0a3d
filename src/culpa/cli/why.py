"""`culpa why`: trial by trial, why it was chosen, what it was expected to tell, and what it told."""

from pathlib import Path
from typing import Annotated

import typer

from culpa.cli.errors import complain


def why(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Account for a run: for each trial why it was chosen, what it was expected to tell, what it told (in bits)."""
    from culpa.record import Record
    from culpa.report.why import print_why, why_json
    from culpa.store import BadRunFolder, open_run

    try:
        journal, _, entries = open_run(folder)
        record = Record(journal, entries)
    except BadRunFolder as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"can't read {folder}: {error.strerror}")
        return 2
    if as_json:
        typer.echo(why_json(record), nl=False)
    else:
        print_why(record)
    return 0
