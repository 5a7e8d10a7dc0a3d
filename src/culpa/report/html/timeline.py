"""The failing trial in time: a lane for each process and for the kernel's log, the root event and what followed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from culpa.report.html.columns import NARROW, WIDE
from culpa.report.html.labels import Labels
from culpa.report.html.logs import KERNEL, LogRow, process_name
from culpa.report.html.svg import Svg, diamond, disc, square

_MOST_EVENTS = 24
_MOST_LANES = 24
_LANE = 26.0
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
_CLOCKS_AGREE = 120.0
#: Roles that make a line an event of the failure.
_EVENTS = frozenset({"root", "same", "cascade", "xid"})


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of the failure in its place; `number` is the one that picture and list share."""

    number: int
    row: LogRow


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the picture and its list are made of. `dropped` events came later and are not shown."""

    lanes: tuple[str, ...]
    rows: tuple[LogRow, ...]
    events: tuple[Happening, ...]
    dropped: int = 0


def timeline(rows: Sequence[LogRow]) -> Timeline | None:
    """The lanes and events of a trial, None where no line tells of the failure.

    The root comes first: triage has judged that. The others follow by the seconds that they print, at equal
    seconds the kernel first, then by the order in the log.
    """
    marked = [row for row in rows if row.role in _EVENTS]
    if not marked:
        return None
    root = next((row for row in marked if row.role == "root"), None)
    ordered = sorted(_dated(marked, root), key=lambda pair: pair[0])
    chosen = [row for _, row in ordered]
    events = tuple(Happening(number, row) for number, row in enumerate(chosen[:_MOST_EVENTS], start=1))
    lanes = _lanes(rows, chosen[:_MOST_EVENTS])
    return Timeline(lanes, tuple(rows), events, max(0, len(chosen) - _MOST_EVENTS))


def _dated(
    rows: Sequence[LogRow], root: LogRow | None
) -> list[tuple[tuple[bool, float, bool, str, int], LogRow]]:
    """Each row with its place in the order; one without a clock inherits the reading before it in its log."""
    engine = [row.seconds for row in rows if row.speaker != KERNEL and row.seconds is not None]
    dated: list[tuple[tuple[bool, float, bool, str, int], LogRow]] = []
    last = float("-inf")
    for row in rows:
        seconds = row.seconds
        if row.speaker == KERNEL and seconds is not None:
            # A kernel that counts in another zone says nothing about the order.
            agrees = any(abs(seconds - other) <= _CLOCKS_AGREE for other in engine)
            seconds = seconds if agrees else None
        elif seconds is not None:
            last = seconds
        reading = (
            seconds if seconds is not None else (engine[0] if row.speaker == KERNEL and engine else last)
        )
        dated.append(((row is not root, reading, row.speaker != KERNEL, row.log, row.number), row))
    return dated


def _lanes(rows: Sequence[LogRow], events: Sequence[LogRow]) -> tuple[str, ...]:
    """The speakers in the order in which they first spoke, the kernel last; those with events are never left out."""
    seen = dict.fromkeys(_lane(row) for row in rows if row.speaker or row.role in _EVENTS)
    needed = {_lane(row) for row in events}
    found = _in_ranks([lane for lane in seen if lane != KERNEL])
    spare = _MOST_LANES - len(needed)
    others = [lane for lane in found if lane not in needed][: max(0, spare)]
    kept = [lane for lane in found if lane in needed or lane in others]
    return (*kept, KERNEL) if KERNEL in seen else tuple(kept)


def _in_ranks(lanes: Sequence[str]) -> list[str]:
    """The lanes as they come, but those of one kind by their numbers, since workers start in any order."""
    stems = list(dict.fromkeys(_DIGITS.sub("", lane) for lane in lanes))

    def place(lane: str) -> tuple[int, list[int]]:
        return stems.index(_DIGITS.sub("", lane)), [int(digits) for digits in _DIGITS.findall(lane)]

    return sorted(lanes, key=place)


def _lane(row: LogRow) -> str:
    return row.speaker or row.log.rpartition("/")[2]


def timeline_picture(found: Timeline, labels: Labels, *, narrow: bool = False) -> Markup:
    """On the left the whole trial by its clock, on the right the failure, event by event."""
    width, left = (NARROW, 4.0) if narrow else (WIDE, 176.0)
    lane = 40.0 if narrow else _LANE
    top = 30.0
    root = found.events[0].row
    description = labels(
        "timeline_desc",
        lanes=", ".join(process_name(one)[0] for one in found.lanes),
        root=process_name(_lane(root))[0],
        line=root.number,
        events=len(found.events),
    )
    name = "timeline-narrow" if narrow else "timeline"
    drawing = Svg(width, name, labels("timeline"), description, kind="narrow" if narrow else "wide")
    middles = {
        one: top + lane * index + (lane * 0.68 if narrow else lane / 2)
        for index, one in enumerate(found.lanes)
    }
    bottom = top + lane * len(found.lanes)
    split = left + (width - left) * (0.34 if narrow else 0.42)
    for one, y in middles.items():
        drawing.line(left, y, width, y, "rule")
        kind = "name needed" if one == _lane(root) else "name"
        process, pid = process_name(one)
        if narrow:
            drawing.text(left, y - 14, f"{process} {pid}", f"{kind} tiny", limit=40)
        else:
            drawing.text(0, y + 4, process, kind, limit=18 if pid else 24)
            drawing.text(left - 10, y + 4, pid, "tiny dim", anchor="end")
    drawing.box(split + 12, top - 9, width - split - 12, bottom - top + 13, "panel", radius=4)
    drawing.text(left, 14, labels("whole_trial"), "small dim")
    drawing.text(split + 20, 14, labels("in_order"), "small dim")
    _overview(drawing, found, middles, left, split, bottom, labels)
    _failure(drawing, found, middles, split + 12, width)
    return drawing.finished(bottom + 24)


def _overview(
    drawing: Svg,
    found: Timeline,
    middles: Mapping[str, float],
    left: float,
    right: float,
    bottom: float,
    labels: Labels,
) -> None:
    """A stroke for each line that is shown, by its clock; by its place in the log where it has none."""
    drawing.line(left, bottom + 4, right - 6, bottom + 4, "axis")
    timed = [row.seconds for row in found.rows if row.seconds is not None and row.speaker != KERNEL]
    first, last = (min(timed), max(timed)) if timed else (0.0, 0.0)
    by_clock = last > first
    span = right - left - 12
    strokes: dict[str, set[str]] = {}
    reading = first
    for place, row in enumerate(found.rows):
        if _lane(row) not in middles:
            continue
        if row.seconds is not None and (
            row.speaker != KERNEL or first <= row.seconds <= last + _CLOCKS_AGREE
        ):
            reading = row.seconds
        share = (reading - first) / (last - first) if by_clock else place / max(1, len(found.rows) - 1)
        x = left + 2 + min(1.0, max(0.0, share)) * span
        kind = "event" if row.role in _EVENTS else "bad" if row.bad else "quiet"
        strokes.setdefault(kind, set()).add(f"M{x:.1f} {middles[_lane(row)] - 6:g}v12")
    for kind in ("quiet", "bad", "event"):
        drawing.path("".join(sorted(strokes.get(kind, ()))), f"stroke {kind}")
    seconds = last - first
    drawing.text(left, bottom + 18, "0 s" if by_clock else labels("first_line"), "small dim")
    end = f"{seconds:.0f} s" if by_clock else labels("last_line")
    drawing.text(right - 8, bottom + 18, end, "small dim", anchor="end")


def _failure(drawing: Svg, found: Timeline, middles: Mapping[str, float], left: float, right: float) -> None:
    """The events in their order, fading: the later, the less they tell of the cause."""
    count = len(found.events)
    step = (right - left - 28) / max(1, count)
    step = min(step, 60.0)
    places = [left + 16 + step * index + (0 if count > 1 else 10) for index in range(count)]
    for index in range(1, count):
        before, after = found.events[index - 1].row, found.events[index].row
        drawing.path(
            f"M{places[index - 1]:.1f} {middles[_lane(before)]:g}L{places[index]:.1f} {middles[_lane(after)]:g}",
            "thread",
            opacity=_opacity(index, count),
        )
    radius = min(7.0, max(2.5, step / 2 - 1))
    for happening, x in zip(found.events, places, strict=True):
        row = happening.row
        y = middles[_lane(row)]
        if row.role == "root":
            drawing.path(diamond(x, y, 10), "halo")
            drawing.path(diamond(x, y, 10), "root")
        elif row.role in ("same", "xid"):
            drawing.path(square(x, y, 2 * radius - 1), "halo")
            drawing.path(square(x, y, 2 * radius - 1), "same", opacity=_opacity(happening.number - 1, count))
        else:
            drawing.path(disc(x, y, radius), "halo")
            drawing.path(disc(x, y, radius), "cascade", opacity=_opacity(happening.number - 1, count))
        room = step >= 13 or happening.number == 1 or happening.number % 3 == 0
        if room:
            drawing.text(x, y - 11, str(happening.number), "small strong", anchor="middle")


def _opacity(index: int, count: int) -> float:
    return 1.0 if count <= 1 else max(0.25, 1.0 - 0.75 * index / (count - 1))
