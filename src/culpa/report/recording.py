"""What `culpa record` tells while it records, and at its end."""

import sys
import time
from types import TracebackType
from typing import Final

import typer

from culpa.recorder import Now, Recorded, Wanted
from culpa.report.clean import line

_EVERY_SECONDS: Final = 10.0


class Progress:
    """A line on standard error at the start, every ten seconds, and when the engine's state changes."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._told = 0.0
        self._state = "up"
        self._problem = ""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stderr.flush()

    def started(self, wanted: Wanted) -> None:
        """Connections are taken from now on."""
        kept = (
            f"the last {wanted.keep.requests:,} requests"
            if wanted.keep.requests is not None
            else f"the last {_duration(wanted.keep.seconds or 0.0)}"
        )
        what = "shapes of " if wanted.shapes else ""
        host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
        self._say(
            f"recording http://{host}:{wanted.port} -> {line(wanted.upstream)} (up); keeps {what}{kept} in "
            f"{line(str(wanted.folder))}"
        )
        if wanted.host not in ("127.0.0.1", "::1", "localhost"):
            self._say("other machines can reach this address: culpa asks nobody for a key, the engine may")
        self._told = time.monotonic()

    def tell(self, now: Now) -> None:
        """How it stands."""
        counts = now.counts
        if counts.problem and not self._problem:
            self._problem = counts.problem
            self._say(f"{counts.problem}: requests are passed on, and no longer kept")
        due = time.monotonic() - self._told >= _EVERY_SECONDS
        if not due and now.upstream == self._state:
            return
        self._told, self._state = time.monotonic(), now.upstream
        self._say(
            f"{_duration(now.seconds)}: engine {now.upstream}, {counts.requests:,} requests, "
            f"{counts.under_way:,} under way, {counts.cancelled:,} cancelled, {counts.lost:,} lost; "
            f"{now.kept:,} kept in {now.bytes / 1e6:,.1f} MB"
        )

    def _say(self, text: str) -> None:
        if not self._quiet:
            typer.echo(f"culpa: {text}", err=True)


def print_result(ended: Recorded) -> None:
    """How the recording ended, and what to do with it."""
    counts = ended.counts
    how = f"the engine died: {line(ended.detail)}" if ended.died else f"ended by {line(ended.detail)}"
    folder = line(str(ended.folder))
    typer.echo(f"Recorded {counts.requests:,} requests in {_duration(ended.seconds)}; {how}.")
    typer.echo(
        f"{counts.answered:,} answered, {counts.cancelled:,} cancelled by clients, {counts.lost:,} lost with the "
        f"engine, {counts.unsent:,} came when it was gone."
    )
    typer.echo(
        f"Kept: {ended.kept:,} requests, {ended.open:,} of them without an answer ({ended.bytes / 1e6:,.1f} MB)."
    )
    if not ended.kept:
        return
    typer.echo("")
    typer.echo(f"Ask them again:        culpa replay {folder} --endpoint http://127.0.0.1:8000")
    typer.echo(
        f"Find those it needs:   culpa replay {folder} --reduce -- <the command that starts the engine>"
    )


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.0f} s"
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
