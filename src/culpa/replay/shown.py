"""What `culpa replay` tells: its progress, its outcomes, and what a reduction came to."""

import json
import sys
from collections import Counter
from dataclasses import asdict
from types import TracebackType
from typing import Final

import typer
from rich.table import Table

from culpa.reduction.rate import interval
from culpa.replay.play import Now, Played
from culpa.replay.reduce import Found, Tried
from culpa.report.clean import line
from culpa.report.console import plain_console, print_trimmed
from culpa.traffic import Recorded, Recording

_MOST_SHOWN: Final = 20
_QUOTED: Final = 100
_BODY: Final = 200


class _Quiet:
    """Lines on standard error, unless nobody wants them."""

    def __init__(self, recording: Recording, requests: tuple[Recorded, ...], *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        some = "" if len(requests) == len(recording.requests) else f" of {len(recording.requests):,}"
        self._say(f"{len(requests):,}{some} requests from {line(recording.source)}{_about(recording)}")
        for note in recording.notes:
            self._say(line(note))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            typer.echo("\r\x1b[K", err=True, nl=False)

    def _say(self, text: str) -> None:
        if not self._quiet:
            typer.echo(f"culpa: {text}", err=True)


class Progress(_Quiet):
    """How far a replay is."""

    def __enter__(self) -> "Progress":
        return self

    def tell(self, now: Now) -> None:
        """One line that is written over, on a terminal only."""
        if self._terminal:
            text = f"{now.answered:,} of {now.requests:,} done, {now.sent - now.answered:,} under way"
            typer.echo(f"\r\x1b[K{text}", err=True, nl=False)


class Trials(_Quiet):
    """A line for each trial of a reduction."""

    def __enter__(self) -> "Trials":
        return self

    def tried(self, trial: Tried) -> None:
        """A trial has ended."""
        many = f"{len(trial.step.kept):,} request{'s' if len(trial.step.kept) != 1 else ''}"
        said = f"  {line(trial.reason, _QUOTED)}" if trial.reason else ""
        outcome = f"{trial.outcome.upper()} in {trial.seconds:.1f} s"
        self._say(f"trial {trial.number}: {many} ({trial.step.reason}): {outcome}{said}")


def print_played(played: Played, recording: Recording, *, same_text: bool, as_json: bool) -> None:
    """The outcomes, and the requests that are worth a look."""
    if as_json:
        found = {
            "schema": "culpa.replay/1",
            "source": recording.source,
            "failed": played.failed or (same_text and played.differing > 0),
            "hung": played.hung,
            "interrupted": played.interrupted,
            "seconds": played.seconds,
            "requests": [asdict(one) for one in played.requests],
        }
        typer.echo(json.dumps(found, indent=1))
        return
    counts = Counter(one.verdict for one in played.requests)
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
    typer.echo(
        f"Asked {sum(counts.values()) - counts['unsent']:,} requests in {played.seconds:.1f} s: {told}."
    )
    notable = [one for one in played.requests if one.failed or one.verdict in ("differs", "recovered")]
    if notable:
        table = _table("request", "path", "outcome", "then", "now")
        for one in notable[:_MOST_SHOWN]:
            table.add_row(
                str(one.index), line(one.path, 40), one.verdict, line(one.then, 60), line(one.now, _QUOTED)
            )
        print_trimmed(plain_console(sys.stdout), table)
        if len(notable) > _MOST_SHOWN:
            typer.echo(f"and {len(notable) - _MOST_SHOWN:,} more (--json has them all)")
    if played.hung:
        typer.echo("The engine hung: requests were under way, and nothing came any more.")
    elif counts["failed again"]:
        typer.echo("The failure came again: requests without an answer then have none now.")
    elif counts["failed"]:
        typer.echo("The engine failed at requests that it had answered when they were recorded.")
    elif counts["recovered"]:
        typer.echo("The failure did not come again: what was unanswered then was answered now.")


def print_reduced(found: Found, command: str, *, as_json: bool) -> None:
    """What is left, how often it fails, and how to ask it again."""
    reduced = found.reduced
    if as_json:
        typer.echo(json.dumps(_document(found), indent=1))
        return
    if not found.failed:
        tried = reduced.before[1]
        if found.interrupted:
            typer.echo(f"Interrupted after {found.trials} trials, before a failure was seen.")
            _go_on(found, command)
        elif found.untestable:
            typer.echo(
                f"Nothing can be said: none of {found.trials} trials could be judged (see {found.folder})."
            )
        else:
            high = interval(0, tried)[1]
            typer.echo(
                f"All {found.of:,} requests passed in {tried} of {tried} trials: the failure was not seen (its rate is "
                f"below {high:.0%} at 95%)."
            )
        return
    left = len(reduced.kept)
    typer.echo(
        f"{left:,} of {found.of:,} requests are enough for the failure; {found.trials} trials in {found.seconds:.0f} s."
    )
    typer.echo(f"Failure: {line(found.reason, 200)}")
    typer.echo(
        f"Fails {_rate(reduced.failed, reduced.trials)}; larger parts with them {_rate(*reduced.before)}."
    )
    if not reduced.held:
        typer.echo("They fail far more seldom than the whole: other requests help the failure along.")
    if reduced.minimal:
        typer.echo("Each of them is needed: without it the failure stayed away.")
    elif found.stopped or found.interrupted:
        why = found.stopped or "it was interrupted"
        typer.echo(f"The search had not ended ({why}): fewer may be enough.")
    else:
        typer.echo("That each of them is needed could not be shown.")
    if found.left_out:
        typer.echo(f"{found.left_out:,} requests were left out: no POST of a JSON object.")
    table = _table("request", "sent at", "path", "then", "size", "body")
    for one in found.requests[:_MOST_SHOWN]:
        body = one.content.read()
        start = line(body[:_BODY].decode("utf-8", "replace")) + ("…" if len(body) > _BODY else "")
        table.add_row(
            str(one.index), f"{one.at:.3f} s", line(one.path, 40), _then(one), f"{len(body):,} B", start
        )
    print_trimmed(plain_console(sys.stdout), table)
    if left > _MOST_SHOWN:
        typer.echo(f"and {left - _MOST_SHOWN:,} more")
    typer.echo("")
    typer.echo(f"Ask them again:          culpa replay {found.kept_in} --endpoint URL")
    typer.echo(f"Which settings it needs: culpa isolate --request {found.kept_in} -- {line(command, 200)}")
    _go_on(found, command)


def _table(*names: str) -> Table:
    """A table whose last column is cut where the terminal ends."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    return table


def _go_on(found: Found, command: str) -> None:
    if found.stopped or found.interrupted:
        words = f"culpa replay {line(found.source)} --reduce --resume {line(str(found.folder))} -- {line(command, 200)}"
        typer.echo(f"Go on with:              {words}")


def _document(found: Found) -> dict[str, object]:
    return {
        "schema": "culpa.reduction/1",
        "failed": found.failed,
        "requests": [one.index for one in found.requests],
        "of": found.of,
        "left_out": found.left_out,
        "minimal": found.reduced.minimal,
        "failed_trials": found.reduced.failed,
        "trials_of_these": found.reduced.trials,
        "larger_parts": list(found.reduced.before),
        "rate_held": found.reduced.held,
        "signature": asdict(found.signature) if found.signature is not None else None,
        "reason": line(found.reason),
        "trials": found.trials,
        "seconds": found.seconds,
        "folder": str(found.folder),
        "recording": str(found.kept_in) if found.kept_in is not None else None,
        "stopped": found.stopped,
        "interrupted": found.interrupted,
    }


def _then(one: Recorded) -> str:
    return f"HTTP {one.status}" if one.outcome == "answered" and one.status else one.outcome


def _rate(failed: int, trials: int) -> str:
    if not trials:
        return "were not tried again"
    low, high = interval(failed, trials)
    return f"{failed} of {trials} times ({low:.0%} to {high:.0%})"


def _about(recording: Recording) -> str:
    sealed = f", sealed: {line(recording.sealed)}" if recording.sealed else ""
    return f"{', shapes only' if recording.shapes else ''}{sealed}"
