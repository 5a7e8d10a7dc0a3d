"""`culpa isolate`: which settings a failure needs, found by trials."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from culpa.cli.errors import result_printed

if TYPE_CHECKING:
    from culpa.isolate import Run, Setup
    from culpa.model import Experiment

# Options that a resumed run may be given anew: none of them changes what earlier trials mean.
RESUMABLE = (
    "confidence",
    "max_trials",
    "max_seconds",
    "patience",
    "start_timeout",
    "stall_timeout",
    "request_timeout",
)


def isolate(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the engine, environment assignments allowed in front.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability that a finding must reach.", min=0.5, max=0.999)
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
    only: Annotated[
        list[str] | None, typer.Option(metavar="FACTOR", help="Vary only this factor. May be repeated.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="FACTOR", help="Never vary this factor. May be repeated.")
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Always run this arm: a factor (its safe level), FACTOR=LEVEL, a level such as eager, or several "
            "joined by commas; 'NAME: ...' names it. May be repeated.",
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(metavar="N", help="Try every configuration at least this often.", min=1, max=1000)
    ] = 1,
    patience: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long to go on launching a command that has not failed yet."),
    ] = "3m",
    factors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML table of factors, for an engine that is not recognised."),
    ] = None,
    factor: Annotated[
        str | None,
        typer.Option(
            metavar="engine_version=V,V",
            help="The version as a factor, the one that fails first; the options of culpa bisect say where versions "
            "come from: --package, --wheels, --overlay, or {version} in the command.",
            show_default=False,
        ),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --factor: the package that has the versions."),
    ] = None,
    wheels: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --factor: versions are wheels in this folder.", show_default=False
        ),
    ] = None,
    overlay: Annotated[
        bool,
        typer.Option("--overlay", help="With --factor: unpack versions before the launch's environment."),
    ] = False,
    request: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Your own failing request(s): a JSON body, an array, JSON lines, or a folder of culpa record.",
        ),
    ] = None,
    kernel_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the host's kernel messages from this growing file.",
            show_default="this machine's own",
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="Q=A",
            help="A question with its known answer, asked beside the built-in ones. May be repeated.",
        ),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A record to hide in the long prompt and ask for."),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Ask only this kind of request (see --dry-run), beside short questions. May be repeated.",
        ),
    ] = None,
    probe_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Length of the long prompt in tokens.",
            min=16,
            max=4_000_000,
            show_default="by context",
        ),
    ] = None,
    thresholds: Annotated[
        bool, typer.Option(help="Search the boundary of numeric factors once they are found to matter.")
    ] = True,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Make the isolated failure smaller afterwards: culpa minimize.")
    ] = False,
    mitigate: Annotated[
        bool,
        typer.Option("--mitigate", help="Measure what keeps the failure away afterwards: culpa mitigate."),
    ] = False,
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
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of prompts and of the search.")] = 0,
    guard: Annotated[
        bool | None,
        typer.Option(
            help="Check state and cache bindings from inside the engine in every trial, or in none.",
            show_default="in a last trial of what was isolated, where the engine can have it",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Reproduce a failure of a serving engine and find the settings that it needs.

    Exit code: 0 no failure was seen, 1 a failure was found (isolated or not), 2 bad input or the harness could
    not run, 130 interrupted (go on with --resume).
    """
    from culpa.cli.errors import bad_input
    from culpa.cli.seconds import seconds
    from culpa.cli.versions import version_factor
    from culpa.isolate import Asked, new_run, resumed_run, set_up
    from culpa.model.options import IsolateOptions

    with bad_input():
        values: dict[str, Any] = {
            "confidence": confidence,
            "max_trials": max_trials,
            "max_seconds": seconds("--max-time", max_time) if max_time is not None else None,
            "repeat": repeat,
            "patience": seconds("--patience", patience),
            "thresholds": thresholds,
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
            "guard": guard,
        }
        if resume is not None:
            given = _given(ctx)
            _refuse_changes(given, bool(command))
            changes = {name: values[name] for name in RESUMABLE if _option_of(name) in given}
            run = resumed_run(resume, changes)
            if dry_run:
                return _print_plan(run.setup, as_json)
            return _carry_out(run, as_json, quiet, minimize=minimize, mitigate=mitigate)
        setup = set_up(
            Asked(
                tuple(command or ()),
                IsolateOptions(**values),
                tuple(only or ()),
                tuple(skip or ()),
                tuple(arm or ()),
                str(factors) if factors is not None else None,
                version_factor(factor, package, wheels, overlay),
            )
        )
        if dry_run:
            return _print_plan(setup, as_json)
        return _carry_out(new_run(setup, out), as_json, quiet, minimize=minimize, mitigate=mitigate)


def _carry_out(run: "Run", as_json: bool, quiet: bool, *, minimize: bool, mitigate: bool) -> int:
    experiment = run_and_report(run, as_json=as_json, quiet=quiet)
    if experiment.interrupted:
        return 130
    if mitigate and experiment.conclusion.findings:
        from culpa.cli.mitigate import measure_afterwards

        if measure_afterwards(run, as_json=as_json, quiet=quiet):
            return 130
    if minimize and experiment.conclusion.findings:
        from culpa.cli.minimize import carry_out
        from culpa.minimize import MinimizeOptions

        run.journal.release()
        # Standard output holds one result: with --json that of the isolation, and this one lies in the folder.
        return carry_out(run.folder, MinimizeOptions(), as_json=False, quiet=quiet, printed=not as_json)
    return 0 if experiment.conclusion.outcome == "no_failure" else 1


def run_and_report(run: "Run", *, as_json: bool, quiet: bool) -> "Experiment":
    """Run to the end while it is shown, write the reports, and print the result."""
    from culpa.isolate import execute
    from culpa.report import choose_view, print_result, write_reports

    observer = choose_view(quiet=quiet, as_json=as_json)
    try:
        experiment = execute(run, observer)
    finally:
        observer.close()
    write_reports(experiment, run.folder)
    with result_printed(f"; it lies in {run.folder}"):
        print_result(experiment, as_json=as_json)
    return experiment


def _print_plan(setup: "Setup", as_json: bool) -> int:
    from culpa.isolate import plan_of
    from culpa.report import print_plan

    print_plan(plan_of(setup), as_json=as_json)
    return 0


def _given(ctx: typer.Context) -> frozenset[str]:
    """The parameters that the user spelled out on the command line."""
    return frozenset(
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    )


def _option_of(name: str) -> str:
    return "max_time" if name == "max_seconds" else name


def _refuse_changes(given: frozenset[str], command: bool) -> None:
    afterwards = {"as_json", "quiet", "dry_run", "minimize", "mitigate"}
    allowed = {*(_option_of(name) for name in RESUMABLE), "resume", *afterwards}
    refused = sorted(given - allowed - {"command"})
    if command:
        raise typer.BadParameter("--resume takes the command from the run: leave it out")
    if refused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in refused)
        raise typer.BadParameter(f"--resume goes on with the options of the run: leave out {names}")
