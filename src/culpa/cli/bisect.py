"""`culpa bisect`: with which version a failure came in."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from culpa.cli.errors import bad_input, complain, result_printed

if TYPE_CHECKING:
    from culpa.bisect import BisectRun, BisectSetup

_RESUMABLE = ("confidence", "max_trials", "max_time", "patience")
_ALWAYS = frozenset({"resume", "as_json", "quiet", "dry_run"})


def bisect(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the engine. It may hold {version}, and {root} with --git.",
            show_default=False,
        ),
    ] = None,
    good: Annotated[str, typer.Option(metavar="V", help="A version that works.", show_default=False)] = "",
    bad: Annotated[str, typer.Option(metavar="V", help="A version that fails.", show_default=False)] = "",
    package: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The package that has the versions: the engine's, or a dependency's. May be repeated.",
        ),
    ] = None,
    versions: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="The versions, oldest first: a,b,c, or 1..64, or @FILE with one a line.",
            show_default=False,
        ),
    ] = None,
    wheels: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Versions are the wheels in this folder.", show_default=False),
    ] = None,
    git: Annotated[
        Path | None,
        typer.Option(metavar="REPO", help="Versions are the commits of this repository.", show_default=False),
    ] = None,
    build: Annotated[
        str, typer.Option(metavar="CMD", help="Builds a commit, in its checkout.", show_default=False)
    ] = "",
    tags: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Versions are container tags, one a line.", show_default=False),
    ] = None,
    pre: Annotated[bool, typer.Option("--pre", help="Pre-releases of the index too.")] = False,
    yanked: Annotated[bool, typer.Option("--yanked", help="Yanked versions of the index too.")] = False,
    environment: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            help="How a package gets to run: overlay (unpacked before the launch's environment), own (an environment "
            "each), or auto (overlay where that environment has what the version requires).",
        ),
    ] = "auto",
    overlay: Annotated[bool, typer.Option("--overlay", help="The same as --environment overlay.")] = False,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQ",
            help="A further requirement of each environment of its own. May be repeated.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where environments are kept.", show_default="~/.cache/culpa/versions"
        ),
    ] = None,
    cache_limit: Annotated[
        str, typer.Option(metavar="SIZE", help="At most so much is kept there (20G, 500M).")
    ] = "40G",
    notes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Release notes to quote from.", show_default=False)
    ] = None,
    checkout: Annotated[
        Path | None,
        typer.Option(
            metavar="REPO",
            help="A checkout whose tags are the versions: commits to list.",
            show_default=False,
        ),
    ] = None,
    isolate: Annotated[
        bool | None,
        typer.Option(
            help="Isolate the settings that it needs beside the version.", show_default="if it needs any"
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="FACTOR", help="Of the settings look at this only. May be repeated."),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="FACTOR", help="Never vary this setting. May be repeated.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability that the answer must reach.", min=0.5, max=0.999)
    ] = 0.95,
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
    patience: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long to go on launching a bad end that has not failed yet."),
    ] = "3m",
    factors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML table of factors, for an engine that is not recognised."),
    ] = None,
    request: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own failing request(s): JSON, an array, or JSON lines."),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="Q=A", help="A question with its known answer. May be repeated."),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A record to hide in the long prompt and ask for."),
    ] = None,
    probe: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Ask only this kind of request. May be repeated.")
    ] = None,
    probe_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Length of the long prompt.", min=16, max=4_000_000, show_default="by context"
        ),
    ] = None,
    kernel_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the host's kernel messages from this growing file."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run.", show_default="culpa-runs/<time>")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Go on with the run in this folder; no command is needed."),
    ] = None,
    start_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a start that still makes progress may take.")
    ] = "15m",
    stall_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long nothing at all may happen before it counts as a hang."),
    ] = "60s",
    request_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a request may keep the engine busy without a token.")
    ] = "10m",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the prompts.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Find the version of an engine, or of a package that it uses, with which a failure came in or went away.

    Exit code: 0 the bad end did not fail, 1 a failure was seen (its version found or not), 2 bad input or the harness
    could not run, 130 interrupted (go on with --resume).
    """
    from culpa.bisect import BisectAsked, new_bisection, resumed_bisection, set_up
    from culpa.bisect.changes import NotesAsked
    from culpa.cli.seconds import seconds
    from culpa.cli.sizes import sizes
    from culpa.model.options import IsolateOptions
    from culpa.versions import VersionsAsked

    def tell(text: str) -> None:
        if not quiet:
            typer.echo(f"culpa: {text}", err=True)

    with bad_input():
        values: dict[str, Any] = {
            "confidence": confidence,
            "max_trials": max_trials,
            "max_seconds": seconds("--max-time", max_time) if max_time is not None else None,
            "patience": seconds("--patience", patience),
            "probes": tuple(probe or ()),
            "probe_tokens": probe_tokens,
            "questions": tuple(question or ()),
            "records": tuple(record or ()),
            "request_file": str(request) if request is not None else None,
            "kernel_log": str(kernel_log) if kernel_log is not None else None,
            "start_timeout": seconds("--start-timeout", start_timeout),
            "stall_timeout": seconds("--stall-timeout", stall_timeout),
            "request_timeout": seconds("--request-timeout", request_timeout),
            "seed": seed,
        }
        if resume is not None:
            given = _given(ctx)
            _refuse_changes(given, bool(command))
            changes = {
                ("max_seconds" if name == "max_time" else name): values[
                    "max_seconds" if name == "max_time" else name
                ]
                for name in _RESUMABLE
                if name in given
            }
            run = resumed_bisection(resume, changes, tell)
            return _print_plan(run.bisect, as_json) if dry_run else _carry_out(run, as_json, quiet)
        for option, value in (("--good", good), ("--bad", bad)):
            if not value:
                raise typer.BadParameter(
                    f"{option} is missing: name a version that {'works' if option == '--good' else 'fails'}"
                )
        if tags is not None:
            return _containers(str(tags), command or [], good, bad, dry_run)
        if overlay and environment == "own":
            raise typer.BadParameter("--overlay and --environment own exclude each other")
        if environment not in ("auto", "overlay", "own"):
            raise typer.BadParameter(f"--environment {environment}: there are auto, overlay, own")
        source = VersionsAsked(
            listed=versions,
            packages=tuple(package or ()),
            wheels=str(wheels) if wheels is not None else None,
            git=str(git) if git is not None else None,
            build=build,
            pre=pre,
            yanked=yanked,
            way="overlay" if overlay else environment,  # type: ignore[arg-type]
            extra=tuple(with_ or ()),
            cache_folder=str(cache) if cache is not None else None,
            cache_limit=sizes("--cache-limit", cache_limit)[0],
        )
        asked = BisectAsked(
            tuple(command or ()),
            good,
            bad,
            source,
            IsolateOptions(**values),
            "auto" if isolate is None else "isolate" if isolate else "no",
            NotesAsked(str(notes) if notes else None, str(checkout) if checkout else None),
            tuple(only or ()),
            tuple(skip or ()),
            str(factors) if factors is not None else None,
        )
        bisected = set_up(asked, tell)
        return (
            _print_plan(bisected, as_json)
            if dry_run
            else _carry_out(new_bisection(bisected, out), as_json, quiet)
        )


def _carry_out(run: "BisectRun", as_json: bool, quiet: bool) -> int:
    from culpa.bisect import carry_out
    from culpa.report import choose_view
    from culpa.report.bisection import print_bisection, write_bisection

    observer = choose_view(quiet=quiet, as_json=as_json)
    try:
        result = carry_out(run, observer)
    finally:
        observer.close()
    write_bisection(result, run.folder)
    with result_printed(f"; it lies in {run.folder}"):
        print_bisection(result, as_json=as_json)
    if result.interrupted:
        return 130
    return 0 if result.outcome == "no_failure" else 1


def _print_plan(bisected: "BisectSetup", as_json: bool) -> int:
    from culpa.bisect import plan_of
    from culpa.report import print_plan

    print_plan(plan_of(bisected), as_json=as_json)
    return 0


def _containers(tags: str, words: list[str], good: str, bad: str, dry_run: bool) -> int:
    """Containers are planned by their commands; culpa does not run them."""
    import shlex

    from culpa.report.clean import line
    from culpa.versions import container_plan, container_runtime

    row, commands = container_plan(tags, words, good, bad)
    if dry_run:
        for label, argv in zip(row.labels, commands, strict=True):
            typer.echo(f"{line(label)}: {line(shlex.join(argv))}")
        return 0
    runtime = container_runtime(words)
    complain(
        f"--tags: culpa does not start engines in containers of {runtime} yet: --dry-run prints the command of each "
        "tag; or unpack the images, and put {version} into the path of a command"
    )
    return 2


def _given(ctx: typer.Context) -> frozenset[str]:
    return frozenset(
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    )


def _refuse_changes(given: frozenset[str], command: bool) -> None:
    if command:
        raise typer.BadParameter("--resume takes the command from the run: leave it out")
    refused = sorted(given - {*_RESUMABLE, *_ALWAYS, "command"})
    if refused:
        names = ", ".join(f"--{name.rstrip('_').replace('_', '-')}" for name in refused)
        raise typer.BadParameter(f"--resume goes on with the options of the run: leave out {names}")
