"""Which of several events came first, and whether the clocks can tell."""

from collections.abc import Sequence

from culpa.triage.clock import Moment
from culpa.triage.events import Event

_YEAR_SECONDS = 13 * 31 * 86400.0


def in_order(events: Sequence[Event]) -> list[Event]:
    """Events by time: the collector's clock if any has one, else the engine's seconds, else uptime of one
    epoch, else the file's order. An event without a reading inherits the one before it in the file; ties keep
    the file's order."""
    by_line = sorted(events, key=lambda event: event.line)
    readings = _readings(by_line)
    filled: list[tuple[float, Event]] = []
    last = float("-inf")
    for event, reading in zip(by_line, readings, strict=True):
        last = reading if reading is not None else last
        filled.append((last, event))
    filled.sort(key=lambda pair: pair[0])  # stable: ties stay in file order
    return [event for _, event in filled]


def _readings(events: Sequence[Event]) -> list[float | None]:
    moments = [event.moment for event in events]
    if any(moment.stamp is not None for moment in moments):
        return [None if moment.stamp is None else moment.stamp / 1e9 for moment in moments]
    seconds = [moment.second for moment in moments]
    known = [second for second in seconds if second is not None]
    if known:
        wraps = max(known) - min(known) > _YEAR_SECONDS / 2  # December and January in one log
        return [
            second + _YEAR_SECONDS if second is not None and wraps and second < _YEAR_SECONDS / 2 else second
            for second in seconds
        ]
    if len({moment.epoch for moment in moments if moment.uptime is not None}) == 1:
        return [moment.uptime for moment in moments]
    return [None] * len(moments)


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
