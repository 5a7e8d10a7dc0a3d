"""Which Xids belong to a failure, which are older, and which only tear down."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from culpa.triage.clock import Moment
from culpa.triage.context import Boot, Context
from culpa.triage.order import apart
from culpa.triage.xid_catalogue import xid_catalogue
from culpa.triage.xids import Xid

#: An older message may still explain a failure within this many seconds: hangs are noticed late.
_REACH_SECONDS = 3600.0
#: What an application did kills it at once.
_AT_ONCE_SECONDS = 300.0
#: How long after the failure its own teardown may take.
_AFTERWARDS_SECONDS = 900.0
#: The GPU's microcontroller has halted: by itself, or after a fault of what ran there.
HALTED = frozenset({61, 62})
#: Programs that are no serving engine: what they did to a GPU is their own.
_OTHER_PROGRAMS = re.compile(
    r"^(?:Xorg|Xwayland|gnome-shell|kwin_|plasmashell|firefox|chrom|code$|steam|blender|ffmpeg|obs$|nvidia-settings)"
)
#: Two clocks that differ by whole quarters of an hour show different zones.
_QUARTER = 900.0
_ZONE_SLACK = 120.0
_WIDEST_ZONE = 14 * 3600.0 + _ZONE_SLACK


@dataclass(frozen=True, slots=True)
class JudgedXid:
    """A message, whether it is another failure's, whether it only follows one, and what speaks for that."""

    xid: Xid
    stale: bool
    teardown: bool
    why: str


def judge_xids(
    context: Context, failed: Moment, failed_line: int | None, pids: Collection[int]
) -> tuple[JudgedXid, ...]:
    """All messages of a log in their order.

    `failed` and `failed_line` are time and line of the failure, `pids` those of the engine's processes. Clocks are
    compared only where both show the same one; else the machine's starts, the process ids and the distance of the
    messages from one another decide.
    """
    newest = _newest_own(context.xids, pids)
    judged: list[JudgedXid] = []
    for xid in context.xids:
        why = _stale(xid, context, failed, failed_line, pids, newest)
        meaning = xid_catalogue().get(xid.code)
        teardown = meaning is not None and meaning.role == "teardown"
        if not why and (first := _followed(xid, judged)) is not None:
            followed = f"Xid {xid.code} only follows Xid {first.code} on the same GPU"
            judged.append(JudgedXid(xid, False, True, followed))
            continue
        if not why and teardown:
            shown = "it only says that the process's channels are cleared" if xid.code != 154 else ""
            judged.append(JudgedXid(xid, False, True, shown or "it only says what the GPU now needs"))
        else:
            judged.append(JudgedXid(xid, bool(why), teardown, why or _belongs(xid, pids)))
    return tuple(judged)


def _followed(xid: Xid, before: Sequence[JudgedXid]) -> Xid | None:
    """The fault of an application after which the GPU's microcontroller halted; None if it halted by itself."""
    if xid.code not in HALTED:
        return None
    for other in reversed(before):
        if other.stale or other.xid.pci_bus != xid.pci_bus or other.xid.code not in (13, 31):
            continue
        distance = apart(other.xid.moment, xid.moment)
        if distance is None or abs(distance[0]) <= _AT_ONCE_SECONDS:
            return other.xid
    return None


def is_older(moment: Moment, context: Context, failed: Moment, failed_line: int | None) -> bool:
    """Whether any other message of the kernel is too old for a failure: from before the engine was started, or from
    more than an hour before it failed."""
    began = _started(context, failed_line)
    if began is not None and (_seconds(moment, began) or 0.0) > 1.0:
        return True
    return (_seconds(moment, failed) or 0.0) > _REACH_SECONDS


def _belongs(xid: Xid, pids: Collection[int]) -> str:
    if xid.pid is not None and xid.pid in pids:
        return f"it names process {xid.pid} of the engine"
    return "it fits in time" if xid.moment.shown else "nothing speaks against it"


def _newest_own(xids: Sequence[Xid], pids: Collection[int]) -> Xid | None:
    """The last message that names a process of the engine."""
    own = [xid for xid in xids if xid.pid is not None and xid.pid in pids]
    return own[-1] if own else None


def _stale(
    xid: Xid,
    context: Context,
    failed: Moment,
    failed_line: int | None,
    pids: Collection[int],
    newest: Xid | None,
) -> str:
    """Why the message is not part of this failure; empty if it is, or may be."""
    own = xid.pid is not None and xid.pid in pids
    if own:
        return ""
    if any(_between(boot, xid, context.xids, failed) for boot in context.boots):
        return "the machine or the driver was started again between it and the failure"
    if xid.name is not None and _of_an_application(xid) and _OTHER_PROGRAMS.match(xid.name):
        return f"it names another program ({xid.name})"
    began = _started(context, failed_line)
    if began is not None:
        older = _seconds(xid.moment, began)
        if older is not None and older > 1.0:
            return f"older than the process by {_span(older)}"
    age = _seconds(xid.moment, failed)
    if age is not None:
        if age > _limit(xid):
            return f"{_span(age)} before the failure"
        if age < -_AFTERWARDS_SECONDS:
            return f"{_span(-age)} after the failure"
        return ""
    return _by_neighbours(xid, context.xids, newest)


def _between(boot: Boot, xid: Xid, xids: Sequence[Xid], failed: Moment) -> bool:
    """Whether a start of machine or driver lies after the message and before the failure. The start may also be what
    the failure led to: without a common clock it separates only if messages follow it."""
    if boot.line <= xid.line or boot.section != xid.section:
        return False
    before = _seconds(boot.moment, failed)
    if before is not None:
        return before > 0
    return any(other.line > boot.line and other.section == boot.section for other in xids)


def _started(context: Context, failed_line: int | None) -> Moment | None:
    """When the engine that failed was started: the last start before the failure that the log shows."""
    before = [moment for line, moment in context.started if failed_line is None or line < failed_line]
    if not before:
        return None
    # Several lines announce one start: the earliest of the last burst counts.
    chosen = before[-1]
    for moment in reversed(before[:-1]):
        gap = apart(moment, chosen)
        if gap is None or gap[0] > 600.0:
            break
        chosen = moment
    return chosen if chosen.shown else None


def _limit(xid: Xid) -> float:
    return _AT_ONCE_SECONDS if _of_an_application(xid) else _REACH_SECONDS


def _of_an_application(xid: Xid) -> bool:
    """Whether the code tells of what a program did, by the catalogue."""
    meaning = xid_catalogue().get(xid.code)
    return meaning is not None and meaning.cause == "application"


def _seconds(earlier: Moment, later: Moment) -> float | None:
    """Seconds from one to the other. Clocks without a zone that differ by whole quarters of an hour, up to the widest
    zone, are taken to be the same time in two zones: nothing is said of their order then."""
    distance = apart(earlier, later)
    if distance is None:
        return None
    seconds, resolution = distance
    if resolution < 1e-3 or abs(seconds) > _WIDEST_ZONE or abs(seconds) < _QUARTER:
        return seconds
    off = abs(seconds) % _QUARTER
    return None if min(off, _QUARTER - off) <= _ZONE_SLACK / 2 else seconds


def _by_neighbours(xid: Xid, xids: Sequence[Xid], newest: Xid | None) -> str:
    """Without a common clock: messages far before the one that names the engine, or before the last ones, are old."""
    anchor = newest or xids[-1]
    if anchor is xid:
        return ""
    distance = apart(xid.moment, anchor.moment)
    if distance is None:
        return ""
    seconds = distance[0]
    limit = _limit(xid)
    if seconds > limit:
        whose = "names the engine" if newest is not None else "is the last of the log"
        return f"{_span(seconds)} before the message that {whose}"
    return ""


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"
