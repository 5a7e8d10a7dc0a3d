"""`culpa verify`: whether an engine answers rightly, and what that excludes."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from culpa.cli.errors import complain, result_printed

#: A name, a number, or an address of IPv6 with its zone.
_HOST = re.compile(r"[\w.:%-]{1,253}", re.ASCII)


def verify(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the engine, where none runs yet.",
            show_default=False,
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="An engine that runs already.", show_default=False)
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The model's name at the endpoint.", show_default="the first one served"
        ),
    ] = "",
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", envvar="OPENAI_API_KEY", help="Key for the endpoint.", show_default=False
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="quick, standard, or soak (standard again and again).",
            show_default="standard, or that of --golden",
        ),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Go on asking for this long (90s, 30m, 2h).",
            show_default="once; soak: 1h",
        ),
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="A wrong answer does not end it.")] = False,
    request: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own request(s) beside the short questions.")
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(metavar="Q=A", help="A question with its known answer. May be repeated."),
    ] = None,
    record: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A record to hide in the long prompt.")
    ] = None,
    probe_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Length of the long prompt.", min=16, max=4_000_000, show_default="by context"
        ),
    ] = None,
    golden: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with the answers recorded in this file.")
    ] = None,
    record_golden: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record the answers as trusted ones, for --golden.")
    ] = None,
    kernel_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the host's kernel messages from this growing file.",
            show_default="this machine's own",
        ),
    ] = None,
    factors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Describes an engine that is not recognised.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the log of an engine that is started here.")
    ] = None,
    stall_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long nothing at all may happen before it counts as a hang."),
    ] = "60s",
    request_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a request may go without a token.")
    ] = "10m",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the prompts.")] = 0,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JUnit XML.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Ask an engine the whole suite and judge every answer: a gate for releases and changes of configuration.

    Exit code: 0 no failure was seen, 1 the engine failed, 2 bad input or nothing can be said, 130 interrupted.
    In a GitHub workflow the result is added to the summary of the run.
    """
    from culpa.cli.errors import bad_input
    from culpa.cli.seconds import seconds
    from culpa.model.options import IsolateOptions
    from culpa.session import Patience
    from culpa.verify import SOAK_SECONDS, SUITES, VerifyOptions, Wanted
    from culpa.verify import verify as carry_out
    from culpa.written import why_unwritable

    with bad_input():
        if (endpoint is None) == (not command):
            raise typer.BadParameter(
                "give either --endpoint URL or, after --, the command that starts the engine"
            )
        if command and model:
            raise typer.BadParameter(
                f"--model {model}: goes with --endpoint; a launch names its model itself"
            )
        if suite is not None and suite not in SUITES:
            raise typer.BadParameter(f"--suite {suite}: there are {', '.join(SUITES)}")
        if golden is not None and record_golden is not None:
            raise typer.BadParameter("--golden and --record-golden exclude each other")
        for option, path in (("--junit", junit), ("--record-golden", record_golden)):
            if path is not None and (why := why_unwritable(path)):
                raise typer.BadParameter(f"{option} {path}: can't be written: {why}")
        if endpoint is not None:
            _check_address(endpoint)
        if api_key is not None:
            api_key = api_key.strip()  # files and shells leave a line end behind
            if not (api_key.isascii() and api_key.isprintable()):
                raise typer.BadParameter("--api-key: a key holds nothing but printable ASCII characters")
        lasting = seconds("--duration", length) if length is not None else None
        options = VerifyOptions(
            suite=suite or "standard",
            suite_given=suite is not None,
            duration=lasting if lasting is not None else SOAK_SECONDS if suite == "soak" else None,
            keep_going=keep_going,
            probes=IsolateOptions(
                questions=tuple(question or ()),
                records=tuple(record or ()),
                request_file=str(request) if request is not None else None,
                probe_tokens=probe_tokens,
                seed=seed,
            ),
            golden=golden,
            record_golden=record_golden,
        )
        wanted = Wanted(
            endpoint=endpoint,
            model=model,
            api_key=api_key,
            words=tuple(command or ()),
            factors_file=factors,
            out=out,
            kernel_log=kernel_log,
            patience=Patience(
                stall=seconds("--stall-timeout", stall_timeout),
                request=seconds("--request-timeout", request_timeout),
            ),
        )
        from culpa.report.verifying import Progress, print_result, write_files

        with Progress(quiet=quiet, as_json=as_json) as progress:
            found = carry_out(wanted, options, progress.done, progress.starting)
        unwritten = write_files(found, junit=junit, summary=os.environ.get("GITHUB_STEP_SUMMARY"))
        with result_printed():
            print_result(found, as_json=as_json)
    problems = [*unwritten, *([f"no answers were recorded: {found.unrecorded}"] if found.unrecorded else ())]
    for problem in problems:
        complain(problem)
    if found.interrupted:
        return 130
    if found.failed and not found.untestable:
        return 1
    # Who records answers of a model that knows nothing has what was asked for, if nothing failed meanwhile.
    recorded = bool(found.recorded) and not found.untestable
    return 0 if (found.passed or recorded) and not problems else 2


def _check_address(text: str) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        named = text.isprintable() and _HOST.fullmatch(parts.hostname or "")
        good = parts.scheme in ("http", "https") and parts.port != 0 and named
    except ValueError:  # a port that is none, brackets that aren't closed
        good = False
    if not good:
        raise typer.BadParameter(
            f"--endpoint {text}: an address begins with http:// or https:// and names a host: http://127.0.0.1:8000"
        )
