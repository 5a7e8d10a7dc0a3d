"""The command `culpa`: its verbs, and how errors leave it."""

import errno
import os
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
import typer.exceptions

from culpa import __version__
from culpa.cli.bench import bench
from culpa.cli.bisect import bisect
from culpa.cli.demo import demo
from culpa.cli.env import env
from culpa.cli.errors import complain
from culpa.cli.guard import guard
from culpa.cli.isolate import isolate
from culpa.cli.layout import layout
from culpa.cli.minimize import minimize
from culpa.cli.mitigate import mitigate
from culpa.cli.record import record
from culpa.cli.replay import replay
from culpa.cli.report import report
from culpa.cli.runs import runs
from culpa.cli.triage import triage
from culpa.cli.verify import verify
from culpa.cli.why import why

BAD_INPUT = 2
INTERRUPTED = 130

app = typer.Typer(
    name="culpa",
    help="Find what is at fault when an LLM serving engine crashes, hangs or talks nonsense.",
    epilog="Start with: culpa isolate -- <the command that starts your engine>; or see culpa demo",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The list of verbs has room for one line each.
app.command(short_help="Find the settings that a failure of an engine needs, by trials.")(isolate)
app.command(short_help="Find the version with which a failure came in or went away.")(bisect)
app.command(short_help="Isolate a known fault of the reference engine: no GPU, no download.")(demo)
app.command(short_help="The smallest command and requests that still fail, as files to run.")(minimize)
app.command(short_help="Ask an engine the whole suite and judge every answer.")(verify)
app.command(short_help="Run an engine with checks of its state and cache bindings inside it.")(guard)
app.command(short_help="Read logs and say what broke, where, and how sure that is.")(triage)
app.command(short_help="Print what surrounds an engine, checked against known reports.")(env)
app.command(short_help="A stored run as a page, an issue, an advisory; private things out.")(report)
app.command(short_help="Measure what keeps a run's failure away, and its price.")(mitigate)
app.command(short_help="Keep the last requests to an engine, ready to be replayed.")(record)
app.command(short_help="Ask recorded requests again, and find the fewest that fail.")(replay)
app.command()(runs)
app.command(short_help="Account for a run, trial by trial: what each was to tell, and told.")(why)
# Flags of the engine stand among the words.
app.command(
    short_help="What a launch does to a model's layers and caches, before it.",
    context_settings={"ignore_unknown_options": True},
)(layout)
app.add_typer(bench)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"culpa {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. Bad input: one line on standard error, exit code 2."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - it lives as long as the process
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names and logs hold what a terminal's encoding may not
    try:
        code: Any = app(args=arguments, standalone_mode=False)
    except typer.exceptions.TyperException as error:
        context = getattr(error, "ctx", None)
        where = f" (see {context.command_path} --help)" if context is not None else ""
        # Where no parameter is named, typer's "Invalid value: " in front says nothing.
        text = error.format_message().removeprefix("Invalid value: ").replace("Value error, ", "", 1)
        complain(f"{text}{where}")
        return BAD_INPUT
    except typer.Exit as error:
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        # A full disk, a folder that may not be written to, too many open files: the machine's, not a defect of ours.
        named = f"{error.filename}: " if isinstance(error.filename, str) else ""
        what = "can't write: " if error.errno == errno.ENOSPC else ""
        complain(f"{what}{named}{error.strerror or error}")
        return BAD_INPUT
    return code if isinstance(code, int) else 0
