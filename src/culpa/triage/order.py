"""Which of several events came first, and whether the clocks can tell."""

from collections.abc import Callable, Sequence
from statistics import median

from culpa.triage.clock import Moment, yearless
from culpa.triage.events import Event

_YEAR_SECONDS = 13 * 31 * 86400.0
#: Zones differ by whole quarters of an hour; two clocks of one event that differ so show two zones.
_QUARTER = 900.0
_WIDEST_ZONE = 14 * 3600.0
#: How far apart a machine's and a container's clock may tell of one event.
_SLACK = 60.0


def in_order(events: Sequence[Event]) -> list[Event]:
    """Events on one time line: the collector's clock, the engine's seconds and the kernel's clocks are brought
    together as far as the events tell how. An event without a reading inherits the one before it in the file; at
    equal times the kernel's word comes first, then the file's order counts."""
    by_line = sorted(events, key=lambda event: event.line)
    readings = timeline(by_line)
    filled: list[tuple[float, Event]] = []
    last = float("-inf")
    for event, reading in zip(by_line, readings, strict=True):
        last = reading if reading is not None else last
        filled.append((last, event))
    filled.sort(key=lambda pair: pair[0])  # stable: ties stay in file order
    return [event for _, event in filled]


def timeline(events: Sequence[Event]) -> list[float | None]:
    """Seconds of each event on a common axis; None where nothing ties its clock to it.

    The axis is seconds within a year by UTC if a collector's clock shows it, else by the engine's zone. Uptimes are
    used as they are if there is nothing else.
    """
    zone = _zone(events)
    axis = [_wall(event.moment, zone) for event in events]
    if all(reading is None for reading in axis):
        if len({event.moment.epoch for event in events if event.moment.uptime is not None}) == 1:
            return [event.moment.uptime for event in events]
        return list(axis)
    axis = _unwrapped(axis)
    kernel = [index for index, event in enumerate(events) if event.kind == "kernel"]
    engine = [
        index for index, event in enumerate(events) if event.kind != "kernel" and axis[index] is not None
    ]
    if kernel and engine:
        _set_kernel(events, axis, kernel, engine)
    return axis


def _wall(moment: Moment, zone: float) -> float | None:
    if moment.stamp is not None:
        return yearless(moment.stamp)
    return moment.second - zone if moment.second is not None else None


def _zone(events: Sequence[Event]) -> float:
    """By how much the engine's own clock is ahead of UTC, from lines that show both clocks; 0 if none does."""
    both = [
        event.moment.second - yearless(event.moment.stamp)
        for event in events
        if event.moment.stamp is not None and event.moment.second is not None and event.kind != "kernel"
    ]
    if not both:
        return 0.0
    zone = round(median(both) / _QUARTER) * _QUARTER
    return zone if abs(zone) <= _WIDEST_ZONE else 0.0


def _unwrapped(axis: Sequence[float | None]) -> list[float | None]:
    known = [reading for reading in axis if reading is not None]
    wraps = max(known) - min(known) > _YEAR_SECONDS / 2  # December and January in one log
    return [
        reading + _YEAR_SECONDS if reading is not None and wraps and reading < _YEAR_SECONDS / 2 else reading
        for reading in axis
    ]


def _set_kernel(
    events: Sequence[Event], axis: list[float | None], kernel: Sequence[int], engine: Sequence[int]
) -> None:
    """Bring the kernel's clocks to the axis: another zone by whole quarters of an hour, an uptime by the process that
    both speak of, else by the failure that it must have preceded."""
    first = _first_failure(events, axis, engine)
    shift = _zone_of_kernel(events, axis, kernel, engine, first)
    for index in kernel:
        reading = axis[index]
        if reading is not None:
            # A second is coarse: the kernel knows of a fault before the process does.
            coarse = events[index].moment.stamp is None and events[index].role in ("cause", "clue")
            axis[index] = reading + shift - (1.0 if coarse else 0.0)
    for epoch in {events[index].moment.epoch for index in kernel if axis[index] is None}:
        if epoch is None:
            continue
        uptimes = [index for index in kernel if axis[index] is None and events[index].moment.epoch == epoch]
        since = _boot(events, axis, uptimes, engine, first)
        for index in uptimes:
            uptime = events[index].moment.uptime
            axis[index] = since + uptime if since is not None and uptime is not None else None


def _first_failure(
    events: Sequence[Event], axis: Sequence[float | None], engine: Sequence[int]
) -> float | None:
    """When the engine first says that something is wrong."""
    tests: tuple[Callable[[Event], bool], ...] = (
        lambda event: event.fatal,
        lambda event: event.role in ("cause", "symptom"),
        lambda event: True,
    )
    for test in tests:
        found = [reading for index in engine if test(events[index]) and (reading := axis[index]) is not None]
        if found:
            return min(found)
    return None


def _pairs(events: Sequence[Event], kernel: Sequence[int], engine: Sequence[int]) -> list[tuple[int, int]]:
    """First words of the kernel and of the engine of the same process."""
    by_pid: dict[int, int] = {}
    for index in engine:
        pid = events[index].pid
        if pid is not None and events[index].role in ("cause", "header", "symptom"):
            by_pid.setdefault(pid, index)
    pairs = []
    for index in kernel:
        pid = events[index].pid
        if pid is not None and pid in by_pid:
            pairs.append((index, by_pid.pop(pid)))
    return pairs


def _zone_of_kernel(
    events: Sequence[Event],
    axis: Sequence[float | None],
    kernel: Sequence[int],
    engine: Sequence[int],
    first: float | None,
) -> float:
    walls = [index for index in kernel if axis[index] is not None and events[index].moment.stamp is None]
    if not walls:
        return 0.0
    gaps = [
        there - here
        for k, e in _pairs(events, walls, engine)
        if (there := axis[e]) is not None and (here := axis[k]) is not None
    ]
    if not gaps and first is not None:
        telling = [index for index in walls if events[index].role in ("cause", "clue")]
        gaps = [first - here for index in telling if (here := axis[index]) is not None]
    shifts = []
    for gap in gaps:
        shift = round(gap / _QUARTER) * _QUARTER
        if abs(shift) <= _WIDEST_ZONE and abs(gap - shift) <= _SLACK:
            shifts.append(shift)
    return min(shifts, key=abs, default=0.0)


def _boot(
    events: Sequence[Event],
    axis: Sequence[float | None],
    uptimes: Sequence[int],
    engine: Sequence[int],
    first: float | None,
) -> float | None:
    """When the uptime began, on the axis."""
    for k, e in _pairs(events, uptimes, engine):
        there, uptime = axis[e], events[k].moment.uptime
        if there is not None and uptime is not None:
            return there - uptime - 0.5
    telling = sorted(
        uptime
        for index in uptimes
        if events[index].role in ("cause", "clue") and (uptime := events[index].moment.uptime) is not None
    )
    if first is None or not telling:
        return None
    begun = telling[-1]  # what the kernel said last without a pause is taken for this failure
    for uptime in reversed(telling):
        if begun - uptime > _SLACK:
            break
        begun = uptime
    return first - begun - 0.5


def apart(first: Moment, second: Moment) -> tuple[float, float] | None:
    """Seconds from the first to the second by a clock that both show, and that clock's resolution in seconds;
    None if they share none."""
    if first.stamp is not None and second.stamp is not None:
        return (second.stamp - first.stamp) / 1e9, 1e-9
    if first.second is not None and second.second is not None:
        return second.second - first.second, 1.0
    if first.uptime is not None and second.uptime is not None and first.epoch == second.epoch:
        return second.uptime - first.uptime, 1e-6
    return None


def within(seconds: float, event: Event, others: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Those of the other events that lie within so many seconds of an event on the common axis."""
    if not others:
        return []
    by_line = sorted(events, key=lambda one: one.line)
    readings = dict(zip((id(one) for one in by_line), timeline(by_line), strict=True))
    here = readings.get(id(event))
    if here is None:
        return []
    return [
        other
        for other in others
        if (there := readings.get(id(other))) is not None and abs(there - here) <= seconds
    ]
