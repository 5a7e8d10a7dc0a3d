"""Times as logs print them, made comparable where they can be.

Three clocks occur: a collector's wall clock with nanoseconds and zone, the engine's own wall clock in seconds
without year or zone, and uptime. Only readings of the same clock may be compared; where two events share
none, their order in the file is all that is known.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = {
    name: index
    for index, name in enumerate("JanFebMarAprMayJunJulAugSepOctNovDec"[i : i + 3] for i in range(0, 36, 3))
}
_VLLM = re.compile(r"^(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)$")
_ISO = re.compile(r"^\d{4}[-/](\d\d)[-/](\d\d)(?:[ T]| - )(\d\d):(\d\d):(\d\d)")
_AMERICAN = re.compile(r"^(\d\d)/(\d\d)/\d{4}-(\d\d):(\d\d):(\d\d)$")
_GLOG = re.compile(r"^(\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,9})$")
_SYSLOG = re.compile(r"^(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)")
_STAMP = re.compile(
    r"^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:Z|UTC|([+-])(\d\d):?(\d\d))?$",
    re.ASCII,
)
_EPOCH = re.compile(r"^(\d{10})(?:\.(\d{1,12}))?$|^(\d{13}|\d{16}|\d{19})$", re.ASCII)
_UPTIME = re.compile(r"^(\d{1,6})\.(\d\d)\.(\d{3})\.(\d{3})$")


@dataclass(frozen=True, slots=True)
class Moment:
    """When a line was written, by the clocks that it shows.

    `stamp` is nanoseconds since the epoch (a collector's clock), `second` a count of seconds within a year of
    the engine's wall clock, `uptime` seconds since a process or a machine started, with `epoch` naming which
    one.
    """

    stamp: int | None = None
    second: float | None = None
    uptime: float | None = None
    epoch: str | None = None

    @property
    def shown(self) -> bool:
        """Whether any clock is shown."""
        return self.stamp is not None or self.second is not None or self.uptime is not None


#: No clock shown.
NO_MOMENT = Moment()


def wall_second(text: str) -> float | None:
    """Seconds within a year of a wall-clock time in any of the known notations; months count 31 days, since
    only order and short distances matter. None if the notation is unknown."""
    if match := _VLLM.match(text) or _ISO.match(text) or _AMERICAN.match(text):
        month, day, hour, minute, second = (int(part) for part in match.groups())
        return _seconds(month, day, hour, minute, second)
    if match := _GLOG.match(text):
        month, day, hour, minute, second = (int(part) for part in match.groups()[:5])
        # Fractions are dropped: the other lines of the same engine have whole seconds.
        return _seconds(month, day, hour, minute, second)
    if (match := _SYSLOG.match(text)) and (index := _MONTHS.get(match[1])) is not None:
        return _seconds(index + 1, *(int(part) for part in match.groups()[1:]))
    return None


def _seconds(month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    return float((((month * 31 + day) * 24 + hour) * 60 + minute) * 60 + second)


def stamp_nanoseconds(text: str) -> int | None:
    """Nanoseconds since the epoch of an RFC 3339 time, or of a count of seconds, milliseconds, microseconds or
    nanoseconds; None if it is none. A collector's time without a zone is taken for UTC."""
    if (epoch := _EPOCH.match(text)) is not None:
        if epoch[3]:
            return int(epoch[3].ljust(19, "0"))
        return int(epoch[1]) * 1_000_000_000 + int((epoch[2] or "0")[:9].ljust(9, "0"))
    match = _STAMP.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    offset = (int(match[9]) * 60 + int(match[10])) * (-60 if match[8] == "-" else 60) if match[8] else 0
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return seconds * 1_000_000_000 + int((match[7] or "0").ljust(9, "0"))


def days_added(second: float, seconds: float) -> float:
    """A time within a year, that many seconds later, as `wall_second` counts: over the real lengths of months. The
    year is not known; a common one is assumed."""
    days, rest = divmod(second, 86400.0)
    month, day = divmod(int(days), 31)
    if day == 0:
        month, day = month - 1, 31
    try:
        later = datetime(2001, month, min(day, 28) if month == 2 else day, tzinfo=UTC) + timedelta(
            seconds=rest + seconds
        )
    except (ValueError, OverflowError):
        return second + seconds
    wrapped = (later.year - 2001) * 13 * 31 * 86400.0
    whole = _seconds(later.month, later.day, later.hour, later.minute, later.second) or 0.0
    return whole + later.microsecond / 1e6 + wrapped


def yearless(stamp: int) -> float:
    """A wall-clock time in nanoseconds since the epoch as seconds within its year, by UTC, as `wall_second` counts."""
    try:
        moment = datetime.fromtimestamp(stamp // 1_000_000_000, UTC)
    except (OverflowError, ValueError, OSError):  # the year 0, or one beyond 9999
        return stamp / 1e9
    whole = _seconds(moment.month, moment.day, moment.hour, moment.minute, moment.second)
    return (whole or 0.0) + stamp % 1_000_000_000 / 1e9


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a Gregorian date (Hinnant, "chrono-Compatible Low-Level Date Algorithms")."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def uptime_seconds(text: str) -> float | None:
    """Seconds of llama.cpp's minutes.seconds.milliseconds.microseconds; None if it is none."""
    match = _UPTIME.match(text)
    if match is None:
        return None
    minutes, seconds, milli, micro = (int(part) for part in match.groups())
    return minutes * 60 + seconds + milli / 1e3 + micro / 1e6
