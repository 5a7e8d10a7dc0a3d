"""One raw line, taken apart: who said it, when, at which level, and what."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from culpa.triage.clock import NO_MOMENT, Moment, stamp_nanoseconds, uptime_seconds, wall_second
from culpa.triage.tables import Tables
from culpa.triage.text import segments

Ranks = tuple[tuple[str, int], ...]

_RANK_PART = re.compile(r"([A-Z]+(?:_[A-Z]+)?)(\d+)")
_SECTION = re.compile(r"^==> (.{1,300}) <==$")
_MAX_PREFIXES = 8
_LEVELS = {
    "E": "ERROR",
    "W": "WARNING",
    "I": "INFO",
    "D": "DEBUG",
    "F": "FATAL",
    "WARN": "WARNING",
    "ERR": "ERROR",
    "VERB": "DEBUG",
}
#: A kind of parallelism that is only another view of the same place: it adds nothing to a rank.
_ORDER = ("DP", "PP", "PCP", "CP", "ATTN_CP", "TP", "DCP", "EP")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line without its prefixes. `number` is 1-based; `process` is the innermost speaker as printed."""

    number: int
    text: str
    process: str | None = None
    pid: int | None = None
    role: str | None = None
    ranks: Ranks = ()
    level: str | None = None
    place: str | None = None
    time: str | None = None
    moment: Moment = NO_MOMENT
    section: int = 0
    excepthook: bool = False

    @property
    def source(self) -> tuple[str | None, str | None, str | None]:
        """What lines of one log record have in common: speaker, level and place."""
        return (self.process, self.level, self.place)


class LineParser:
    """Takes raw lines apart, one by one. Keeps the section, since `tail` joins files under headers."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.section = 0

    def parse(self, number: int, raw: str) -> Iterator[LogLine]:
        """The line, or its parts where carriage returns redrew it. Never raises for any text."""
        for text in segments(_unwrap_json(raw)):
            if _SECTION.match(text):
                self.section += 1
                continue
            yield self._parse(number, text)

    def _parse(self, number: int, text: str) -> LogLine:
        process = role = level = place = time = stamp_text = unit = epoch = None
        pid: int | None = None
        ranks: Ranks = ()
        excepthook = False
        stamp: int | None = None
        second: float | None = None
        uptime: float | None = None
        for _ in range(_MAX_PREFIXES):
            for rule in self._tables.prefixes:
                match = rule.regex.match(text)
                if match is not None:
                    break
            else:
                break
            found = match.groupdict()
            text = text[match.end() :]
            role = rule.role or role
            if label := found.get("process"):
                process = label
                excepthook = label.startswith("[rank")
            if (number_text := found.get("pid")) is not None:
                pid = int(number_text)
            ranks = _ranks(found.get("ranks"), found.get("rank")) or ranks
            if found_level := found.get("level"):
                level = _LEVELS.get(found_level, found_level)
            if found_place := found.get("place"):
                place = found_place
            unit = found.get("unit") or unit
            if (found_stamp := found.get("stamp")) is not None:
                stamp, stamp_text = stamp_nanoseconds(found_stamp), found_stamp
            if (found_time := found.get("time")) is not None:
                second, time = wall_second(found_time), found_time
            if (found_uptime := found.get("uptime")) is not None:
                uptime, time, epoch = uptime_seconds(found_uptime), found_uptime, process or "server"
            if (boot := found.get("boot")) is not None:
                uptime, time, epoch = float(boot), boot, "boot"
        if unit == "kernel":
            role = "kernel"
        if role is None and place is not None:
            role = self._tables.source_roles.get(place.rpartition("/")[2].partition(":")[0])
        return LogLine(
            number=number,
            text=text,
            process=process,
            pid=pid,
            role=role,
            ranks=ranks,
            level=level,
            place=place,
            time=stamp_text or time,
            moment=Moment(stamp, second, uptime, epoch),
            section=self.section,
            excepthook=excepthook,
        )


@lru_cache(maxsize=1024)
def _ranks(named: str | None, number: str | None) -> Ranks:
    """Ranks of a prefix: PP0_TP1 or a global rank. Expert rank beside a tensor rank is the same place."""
    if named:
        parts = {kind: int(digits) for kind, digits in _RANK_PART.findall(named)}
        if "TP" in parts:
            parts.pop("EP", None)
        ordered = sorted(parts, key=lambda kind: _ORDER.index(kind) if kind in _ORDER else len(_ORDER))
        return tuple((kind.lower(), parts[kind]) for kind in ordered)
    if number is not None:
        return (("rank", int(number)),)
    return ()


def _unwrap_json(raw: str) -> str:
    """The inner line of docker's json-file driver; anything else as it is."""
    if not raw.startswith('{"log":'):
        return raw
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    text = record.get("log") if isinstance(record, dict) else None
    if not isinstance(text, str):
        return raw
    time = record.get("time")
    return f"{time} {text.rstrip()}" if isinstance(time, str) else text.rstrip()
