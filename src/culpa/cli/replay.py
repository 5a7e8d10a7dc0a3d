"""`culpa replay`: recorded requests asked again, and the smallest part of them that makes a launch fail."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import result_printed

if TYPE_CHECKING:
    from culpa.replay import Wanted
    from culpa.traffic import Recorded, Recording


def replay(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of culpa record, a crash dump of SGLang, or JSON lines of vLLM's benchmark.",
            show_default=False,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the engine, with --reduce.",
            show_default=False,
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="An engine that runs already.", show_default=False)
    ] = None,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Find the fewest requests that make the launch fail.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHICH",
            help="17, 10-20, last:50, unanswered, cancelled, /v1/completions; lists with commas. May be repeated.",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(metavar="X", help="2.0 is twice as fast; max: as fast as order and overlap allow."),
    ] = "1.0",
    longest_pause: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Cut longer pauses.", show_default="--reduce: 5s, else none"),
    ] = None,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Ask for this model instead.", show_default="the recorded one"),
    ] = "",
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", envvar="OPENAI_API_KEY", help="Key for the endpoint.", show_default=False
        ),
    ] = None,
    same_text: Annotated[
        bool, typer.Option("--same-text", help="Another text at temperature 0 is a failure, too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of a reduction.", show_default="culpa-runs/<time>-replay"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with the reduction in this folder (same source and command).",
            show_default=False,
        ),
    ] = None,
    tries: Annotated[
        int,
        typer.Option(metavar="N", help="How often all requests are tried until they fail.", min=1, max=100),
    ] = 3,
    repeat: Annotated[
        int, typer.Option(metavar="N", help="How often what is left must fail.", min=1, max=100)
    ] = 2,
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="How sure that each request left is needed.", min=0.5, max=0.9999),
    ] = 0.95,
    max_trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Start at most so many engines.", min=1, show_default=False),
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Begin no trial after this.", show_default=False)
    ] = None,
    factors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Describes an engine that is not recognised.")
    ] = None,
    kernel_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the host's kernel messages from this growing file.",
            show_default="this machine's own",
        ),
    ] = None,
    start_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a start that still makes progress may take.")
    ] = "15m",
    stall_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long nothing at all may happen before it is a hang.")
    ] = "60s",
    request_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long a request may go without a token.")
    ] = "10m",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Ask recorded requests again: the same bodies, order, overlap, times and cancellations.

    With --endpoint each answer is laid beside the recorded one. With --reduce and a command the engine is started
    anew for parts of the requests, until the fewest are found that still make it fail.

    Exit code: 0 nothing failed, 1 the engine failed, 2 bad input or nothing can be said, 130 interrupted.
    """
    from culpa.cli.errors import bad_input, bad_traffic
    from culpa.cli.seconds import seconds
    from culpa.traffic import chosen, read_traffic

    with bad_traffic(), bad_input():
        if reduce == (endpoint is not None) or reduce != bool(command):
            raise typer.BadParameter(
                "give --endpoint URL of an engine that runs, or --reduce and, after --, the command that starts one"
            )
        if resume is not None and (out is not None or not reduce):
            raise typer.BadParameter("--resume goes with --reduce, and without --out")
        pause = seconds("--longest-pause", longest_pause) if longest_pause is not None else None
        pace = _speed(speed)
        recording = read_traffic(source)
        requests = chosen(recording.requests, only or ())
        if endpoint is not None:
            from culpa.cli.address import root_url
            from culpa.replay import Wanted

            wanted = Wanted(
                root_url("--endpoint", endpoint),
                model,
                _key(api_key),
                pace,
                pause,
                seconds("--request-timeout", request_timeout),
            )
            return _play(recording, requests, wanted, same_text=same_text, as_json=as_json, quiet=quiet)
        from culpa.isolate import Asked, set_up
        from culpa.model.options import IsolateOptions
        from culpa.replay import Options
        from culpa.replay import reduce as carry_out
        from culpa.replay.shown import Trials, print_reduced

        setup = set_up(
            Asked(
                tuple(command or ()),
                IsolateOptions(
                    kernel_log=str(kernel_log) if kernel_log is not None else None,
                    start_timeout=seconds("--start-timeout", start_timeout),
                    stall_timeout=seconds("--stall-timeout", stall_timeout),
                    request_timeout=seconds("--request-timeout", request_timeout),
                ),
                factors_file=str(factors) if factors is not None else None,
            )
        )
        options = Options(
            speed=pace,
            tries=tries,
            repeat=repeat,
            confidence=confidence,
            max_trials=max_trials,
            max_seconds=seconds("--max-time", max_time) if max_time is not None else None,
            **({"pause": pause} if pause is not None else {}),
        )
        with Trials(recording, requests, quiet=quiet or as_json) as trials:
            found = carry_out(
                recording, requests, setup, options, resume or out, trials.tried, resume=resume is not None
            )
    with result_printed():
        print_reduced(found, setup.launch.command_line(), as_json=as_json)
    if found.interrupted:
        return 130
    if found.failed:
        return 1
    return 2 if found.untestable else 0


def _play(
    recording: "Recording",
    requests: "tuple[Recorded, ...]",
    wanted: "Wanted",
    *,
    same_text: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    from culpa.replay import played
    from culpa.replay.shown import Progress, print_played

    with Progress(recording, requests, quiet=quiet or as_json) as progress:
        found = played(requests, wanted, progress.tell)
    with result_printed():
        print_played(found, recording, same_text=same_text, as_json=as_json)
    if found.interrupted:
        return 130
    return 1 if found.failed or (same_text and found.differing) else 0


def _speed(text: str) -> float:
    if text == "max":
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.001 <= value <= 10_000:
        raise typer.BadParameter(f"--speed {text}: give a number from 0.001 to 10000, or max")
    return value


def _key(text: str | None) -> str | None:
    if text is None:
        return None
    key = text.strip()  # files and shells leave a line end behind
    if not (key.isascii() and key.isprintable()):
        raise typer.BadParameter("--api-key: a key holds nothing but printable ASCII characters")
    return key
