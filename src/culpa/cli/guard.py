"""`culpa guard`: an engine watched from inside."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import result_printed

if TYPE_CHECKING:
    from culpa.guarded import GuardOptions, Live
    from culpa.model.guard import GuardedRun


def guard(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="The command that starts the engine.", show_default=False
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="log: go on after a violation; raise: stop the engine at the first one; sample:N: every Nth step.",
        ),
    ] = "log",
    serve: Annotated[
        bool, typer.Option("--serve", help="Ask nothing: run the engine for your own traffic until Ctrl-C.")
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Plant faults in the living engine and see each caught; without a command in the reference engine.",
        ),
    ] = False,
    pages: Annotated[
        int,
        typer.Option(
            metavar="N", help="Cache blocks whose content is checked at each step.", min=0, max=100_000
        ),
    ] = 1,
    suite: Annotated[str, typer.Option(metavar="NAME", help="What is asked: quick, standard.")] = "standard",
    probe_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Length of the long prompt.", min=16, max=4_000_000, show_default="by context"
        ),
    ] = None,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own request(s) beside the short questions.")
    ] = None,
    factors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Describes an engine that is not recognised.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the guard's files and the engine's log here.", show_default=False
        ),
    ] = None,
    start_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a start that still makes progress may take.")
    ] = "15m",
    stall_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long nothing at all may happen before it counts as a hang."),
    ] = "60s",
    request_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a request may go without a token.")
    ] = "10m",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the prompts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Run an engine with checks inside it that its state and cache bindings are right, and tell what they saw.

    For vLLM and the reference engine; nothing is installed into the engine's environment. Exit code: 0 no violation
    was seen (--self-test: every fault was caught), 1 a violation or a failure of the engine, 2 bad input or nothing
    was checked, 130 interrupted. See docs/guard.md.
    """
    from culpa.cli.errors import bad_input
    from culpa.cli.seconds import seconds
    from culpa.guarded import GuardOptions, Live
    from culpa.model.options import IsolateOptions
    from culpa.report.guarding import LiveLines
    from culpa.session import Patience

    with bad_input():
        if serve and self_test:
            raise typer.BadParameter("--serve and --self-test exclude each other")
        if not command and not self_test:
            raise typer.BadParameter("give, after --, the command that starts the engine")
        if suite not in ("quick", "standard"):
            raise typer.BadParameter(f"--suite {suite}: there are quick, standard")
        options = GuardOptions(
            words=tuple(command or _reference_engine()),
            mode=mode,
            pages=pages,
            suite=suite,
            out=out,
            factors_file=factors,
            probes=IsolateOptions(
                request_file=str(request) if request is not None else None,
                probe_tokens=probe_tokens,
                seed=seed,
            ),
            patience=Patience(
                start=seconds("--start-timeout", start_timeout),
                stall=seconds("--stall-timeout", stall_timeout),
                request=seconds("--request-timeout", request_timeout),
            ),
        )
        with LiveLines(quiet=quiet, as_json=as_json) as lines:
            live = Live(lines.violation, lines.probe, lines.starting, lines.serving, lines.proof)
            if self_test:
                return _self_test(options, live, as_json)
            return _run(options, live, serve, as_json)


def _run(options: "GuardOptions", live: "Live", serve: bool, as_json: bool) -> int:
    from culpa.guarded import guarded, served
    from culpa.report.guarding import print_run, run_json

    run = (served if serve else guarded)(options, live)
    with result_printed():
        if as_json:
            sys.stdout.write(run_json(run))
        else:
            print_run(run)
    return _code(run, serve)


def _code(run: "GuardedRun", serve: bool) -> int:
    if run.record.total or run.failure:
        return 1
    if run.interrupted and not serve:
        return 130
    return 0 if run.clean else 2


def _self_test(options: "GuardOptions", live: "Live", as_json: bool) -> int:
    from culpa.guarded import self_test
    from culpa.report.guarding import print_self_test, self_test_json

    test = self_test(options, live)
    with result_printed():
        if as_json:
            sys.stdout.write(self_test_json(test))
        else:
            print_self_test(test)
    if test.interrupted:
        return 130
    return 0 if test.passed else 1


def _reference_engine() -> tuple[str, ...]:
    """A launch of the reference engine with what there is to guard: stages, captured steps, prefix caching."""
    return (sys.executable, "-m", "culpa_lab", "serve", "--max-model-len", "8192", "-pp", "2")
