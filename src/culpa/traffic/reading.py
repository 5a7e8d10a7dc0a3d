"""Reads a folder that `culpa record` wrote, sealed or cut off."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from culpa.traffic.frames import HEADER, SCHEMA, SEALED, SUFFIX, Frame, frames
from culpa.traffic.recorded import BadRecording, Content, Joined, Outcome, Recorded

_OUTCOMES = ("answered", "cancelled", "lost")


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded requests in the order in which they were sent, and what is known of the recording.

    `source` says what it was read from. `sealed` is why the recording ended, empty where it was cut off, and
    `died` whether that was the engine's end. `notes` are sentences about what could not be read.
    """

    requests: tuple[Recorded, ...]
    source: str
    shapes: bool = False
    sealed: str = ""
    died: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Under:
    """A request whose frames are being gathered."""

    sent: Frame
    parts: list[Content] = field(default_factory=list)
    end: Frame | None = None


def read_folder(folder: Path) -> Recording:
    """The recording in a folder. Raises BadRecording."""
    header = _json_file(folder / HEADER)
    if header is None or header.get("schema") != SCHEMA:
        raise BadRecording(f"{folder}: holds no recording: there is no {HEADER} of {SCHEMA} in it")
    gathered, notes = _gathered(folder)
    unsent = [name for name, one in gathered.items() if one.end and one.end.text("outcome") == "unsent"]
    for name in unsent:
        del gathered[name]
    if unsent:
        notes.append(f"{len(unsent)} requests came when the engine was gone; they never reached it")
    sealed = _json_file(folder / SEALED) or {}
    kept = sorted(gathered.values(), key=lambda one: (one.sent.number("t", 0.0), one.sent.number("id", 0)))
    requests = [_recorded(one) for one in kept]
    requests = _newest(requests, header.get("last_requests"), header.get("last_seconds"), sealed.get("t"))
    if not requests:
        raise BadRecording(f"{folder}: the recording holds no request")
    first = requests[0].at
    return Recording(
        tuple(
            replace(
                one, index=index, at=one.at - first, ended=None if one.ended is None else one.ended - first
            )
            for index, one in enumerate(requests)
        ),
        source=str(folder),
        shapes=header.get("mode") == "shapes",
        sealed=str(sealed.get("reason", "")),
        died=sealed.get("reason") == "upstream died",
        notes=tuple(notes),
    )


def _gathered(folder: Path) -> tuple[dict[int, _Under], list[str]]:
    found: dict[int, _Under] = {}
    notes = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            for one in frames(path):
                if isinstance(one, str):
                    notes.append(f"{path.name} {one}: what follows there is left out")
                else:
                    _take(found, one)
        except OSError as error:
            raise BadRecording(f"{path}: can't be read: {error.strerror or error}") from None
    return found, notes


def _take(found: dict[int, _Under], one: Frame) -> None:
    """Add a frame to its request. Those of requests that have left the ring are left out."""
    name = one.fields.get("id")
    if not isinstance(name, int):
        return
    if one.kind == "request":
        # A request that was still open when its segment left the ring is carried into a later one.
        if name not in found:
            found[name] = _Under(one)
    elif name in found and one.kind == "part":
        found[name].parts.append(one.payload)
    elif name in found and one.kind == "end":
        found[name].end = one


def _recorded(under: _Under) -> Recorded:
    sent, end = under.sent, under.end
    request = Recorded(
        index=0,
        at=sent.number("t", 0.0) or 0.0,
        path=sent.text("path") or "/",
        content=sent.payload,
        content_type=sent.text("type"),
        method=sent.text("method") or "POST",
        response=Joined(tuple(under.parts)) if under.parts else None,
        packed=sent.text("packed"),
    )
    if end is None:
        return request
    parts = [*under.parts, end.payload] if end.payload.length else under.parts
    outcome = end.text("outcome")
    return replace(
        request,
        outcome=cast(Outcome, outcome) if outcome in _OUTCOMES else "unanswered",
        ended=end.number("t"),
        status=_whole(end.number("status")),
        pieces=_whole(end.number("pieces")) or 0,
        response=Joined(tuple(parts)) if parts else None,
        response_type=end.text("type"),
        encoding=end.text("encoding"),
        prompt_tokens=_whole(end.number("prompt_tokens")),
        completion_tokens=_whole(end.number("completion_tokens")),
        said=end.text("said"),
        whole=end.fields.get("whole") is not False,
    )


def _newest(requests: Sequence[Recorded], count: Any, seconds: Any, end: Any) -> list[Recorded]:
    """Segments leave the ring as a whole: what is beyond what was to be kept is left out here. What was still
    open stays, however old it is."""
    kept = list(requests)
    if isinstance(count, int) and count < len(kept):
        kept = [one for one in kept[:-count] if one.open] + kept[-count:]
    if isinstance(seconds, int | float):
        last = end if isinstance(end, int | float) else max((one.at for one in kept), default=0.0)
        kept = [one for one in kept if one.open or one.at >= last - seconds]
    return kept


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _json_file(path: Path) -> Mapping[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
