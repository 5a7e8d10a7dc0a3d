"""`culpa record`: a proxy in front of an engine that keeps what went through lately."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from culpa.recorder import Keep


def record(
    upstream: Annotated[str, typer.Option(metavar="URL", help="The engine: http://127.0.0.1:8000.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the recording.")],
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect to.")
    ] = "127.0.0.1:8001",
    last: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Keep what was sent in this time (10m).", show_default="10m"),
    ] = None,
    last_requests: Annotated[
        int | None,
        typer.Option(metavar="N", help="Keep this many requests.", min=1, max=10_000_000, show_default=False),
    ] = None,
    max_disk: Annotated[
        str, typer.Option(metavar="SIZE", help="Never take more of the disk than this.")
    ] = "4GiB",
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Keep no texts: lengths, fields, shared beginnings and times.")
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Wait so long for the engine to listen.", show_default="not at all"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")] = False,
) -> int:
    """Stand between clients and an engine, and keep the last requests for `culpa replay`.

    Every request is on disk before the engine gets it. The recording ends when the engine dies, or by Ctrl-C.
    Headers with keys are passed on and never stored.

    Exit code: 0 ended by you, 1 the engine died while it was recorded, 2 bad input or the recording is incomplete.
    """
    from culpa.cli.address import address, root_url
    from culpa.cli.errors import bad_traffic, complain
    from culpa.recorder import Wanted
    from culpa.recorder import record as carry_out
    from culpa.report.recording import Progress, print_result

    with bad_traffic():
        from culpa.cli.seconds import seconds

        host, port = address("--listen", listen)
        wanted = Wanted(
            upstream=root_url("--upstream", upstream),
            host=host,
            port=port,
            folder=out,
            keep=_keep(last, last_requests, max_disk),
            shapes=shapes,
            wait=seconds("--wait", wait) if wait is not None else 0.0,
        )
        with Progress(quiet=quiet) as progress:
            ended = carry_out(wanted, progress.started, progress.tell)
        print_result(ended)
    if ended.counts.problem:
        complain(f"{ended.counts.problem}; {ended.counts.unwritten} requests are not in the recording")
        return 2
    return 1 if ended.died else 0


def _keep(last: str | None, requests: int | None, disk: str) -> "Keep":
    from culpa.cli.seconds import seconds
    from culpa.cli.sizes import sizes
    from culpa.recorder import Keep

    if last is not None and requests is not None:
        raise typer.BadParameter("--last and --last-requests exclude each other")
    most = sizes("--max-disk", disk)
    if len(most) != 1 or most[0] < 1 << 20:
        raise typer.BadParameter(f"--max-disk {disk}: give one size of at least 1MiB")
    if requests is not None:
        return Keep(requests=requests, seconds=None, most_bytes=most[0])
    return Keep(seconds=seconds("--last", last if last is not None else "10m"), most_bytes=most[0])
