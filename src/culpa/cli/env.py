"""`culpa env`: what surrounds an engine, in one block; checked against known reports, or compared."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import result_printed

if TYPE_CHECKING:
    from culpa.model.environment import Environment

KNOWN_BAD = 1


def env(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the engine; nothing is started.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The Python that the engine runs in, or its environment's folder.",
            show_default="that of the command, else python3",
        ),
    ] = None,
    from_log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Read it from a log or a pasted report, - for standard input: alone, or beside a command what the "
            "engine said of itself. May be repeated.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="A B",
            help="What differs between two: files of --json, folders of runs, or logs.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The container's image, which most can't tell.", show_default=False
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print it as Markdown that folds away, for a bug report.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print it as JSON (schema culpa.environment/1).")
    ] = False,
) -> int:
    """Print what a maintainer asks for: engine, libraries, GPUs, links, system, limits, variables, launch; and what
    public reports say of these releases and settings.

    Nothing is started, no GPU is needed, secrets are left out, and what can't be read says why. Exit code: 0, 1 if
    something is in a known-bad range (with --compare: if something differs), 2 bad input.

    Examples: culpa env -- vllm serve MODEL -pp 3; culpa env --python /opt/vllm/bin/python; culpa env --from-log
    engine.log; culpa env --compare good.json bad.json
    """
    from culpa.cli.errors import bad_environment

    if markdown and as_json:
        raise typer.BadParameter("--markdown and --json exclude each other")
    with bad_environment():
        if compare is not None:
            if command or from_log or python or image:
                raise typer.BadParameter("--compare takes two files or folders and nothing beside them")
            return _compare(compare, markdown=markdown, as_json=as_json)
        environment = _environment(command or [], python, from_log or [], image)
        from culpa.environment import check_environment
        from culpa.report.console import plain_console
        from culpa.report.environment import environment_json, environment_markdown, print_environment

        checks = check_environment(environment)
        with result_printed():
            if as_json:
                sys.stdout.write(environment_json(environment, checks))
            elif markdown:
                sys.stdout.write(environment_markdown(environment, checks))
            else:
                print_environment(environment, checks, plain_console(sys.stdout))
    return KNOWN_BAD if any(check.standing == "known_bad" for check in checks) else 0


def _environment(
    command: list[str], python: Path | None, from_log: list[str], image: str | None
) -> "Environment":
    from culpa.engines import parse_command
    from culpa.environment import interpreter_in, read_environment, read_from_logs, with_said

    logs = [None if name == "-" else Path(name) for name in from_log]
    if logs.count(None) > 1:
        raise typer.BadParameter("standard input can be read only once")
    if not command and logs:
        if python or image:
            raise typer.BadParameter(
                "--from-log without a command reads the log alone: leave out --python and --image"
            )
        return read_from_logs(logs)
    launch = parse_command(command) if command else None
    environment = read_environment(
        launch, python=interpreter_in(python) if python is not None else None, image=image
    )
    if python is not None and environment.get("python.version") is None:
        told = environment.fact("python.version")
        raise typer.BadParameter(
            f"--python {python}: is no Python that answers ({told.reason if told else ''})"
        )
    if logs:
        environment = with_said(environment, read_from_logs(logs), ", ".join(from_log))
    return environment


def _compare(paths: tuple[Path, Path], *, markdown: bool, as_json: bool) -> int:
    from culpa.environment import compare, load_environment
    from culpa.report.console import plain_console
    from culpa.report.environment import comparison_json, comparison_markdown, print_comparison

    left, right = (load_environment(path) for path in paths)
    found = compare(left, right, (str(paths[0]), str(paths[1])))
    with result_printed():
        if as_json:
            sys.stdout.write(comparison_json(found))
        elif markdown:
            sys.stdout.write(comparison_markdown(found))
        else:
            print_comparison(found, plain_console(sys.stdout))
    return 1 if found.differences else 0
