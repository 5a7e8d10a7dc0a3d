"""One raw line, taken apart: who said it, when, at which level, and what."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from culpa.triage.clock import NO_MOMENT, Moment, stamp_nanoseconds, uptime_seconds, wall_second
from culpa.triage.tables import PrefixRule, Tables
from culpa.triage.text import MAX_LINE, segments
from culpa.triage.wrappers import TRACEBACK, JsonRecord, json_record, unfold_traceback

Ranks = tuple[tuple[str, int], ...]

_RANK_PART = re.compile(r"([A-Z]+(?:_[A-Z]+)?)(\d+)")
_SECTION = re.compile(r"^==> (.{1,300}) <==$")
_REPEATED = re.compile(r"\s{0,4}\[repeated (\d{1,7})x across cluster\](?: \(Ray deduplicates .{0,400})?$")
_MAX_PREFIXES = 10
_MAX_DEPTH = 4
_MAX_INNER = 400
_MAX_PARTS = 64
#: How CRI marks a part of a line, and where that mark stands at the latest.
_PART, _PART_WITHIN = " P ", 300
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
    """A line without its prefixes. `number` is 1-based; `process` is the innermost speaker as printed,
    `repeated` how many times Ray says that its processes wrote it, `engine` whose way of beginning lines it has."""

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
    repeated: int = 1
    engine: str | None = None

    @property
    def source(self) -> tuple[str | None, str | None, str | None]:
        """What lines of one log record have in common: speaker, level and place."""
        return (self.process, self.level, self.place)


@dataclass(slots=True)
class _Found:
    """What the prefixes of a line have told so far."""

    process: str | None = None
    pid: int | None = None
    role: str | None = None
    engine: str | None = None
    ranks: Ranks = ()
    level: str | None = None
    place: str | None = None
    unit: str | None = None
    time: str | None = None
    stamp: int | None = None
    stamp_text: str | None = None
    second: float | None = None
    uptime: float | None = None
    epoch: str | None = None
    excepthook: bool = False
    repeated: int = 1

    def take(self, rule: PrefixRule, match: re.Match[str]) -> None:
        """Learn from a prefix."""
        found = match.groupdict()
        if rule.role == "kernel" or found.get("unit") == "kernel":
            self.stamp = self.stamp_text = (
                None  # the kernel's own clock tells of the event, a collector's of its print
            )
        self.role = rule.role or self.role
        if rule.engine != "any":
            self.engine = rule.engine
        if label := found.get("process"):
            self.process = label.strip()
            self.excepthook = label.startswith("[rank")
        if (number := found.get("pid")) is not None:
            self.pid = int(number)
        self.ranks = _ranks(found.get("ranks"), found.get("rank")) or self.ranks
        if level := found.get("level"):
            self.level = _LEVELS.get(level.upper(), level.upper())
        if place := found.get("place"):
            self.place = place
        self.unit = found.get("unit") or self.unit
        if (stamp := found.get("stamp")) is not None:
            self.stamped(stamp)
        if (time := found.get("time")) is not None:
            self.second, self.time = wall_second(time), time
        if (uptime := found.get("uptime")) is not None:
            self.uptime, self.time, self.epoch = uptime_seconds(uptime), uptime, self.process or "server"
        if (boot := found.get("boot")) is not None:
            self.uptime, self.time, self.epoch = float(boot), boot, "boot"

    def record(self, record: JsonRecord) -> None:
        """Learn from a JSON record."""
        if record.time is not None:
            self.stamped(record.time)
        if record.level is not None:
            self.level = _LEVELS.get(record.level, record.level)
        if record.rank is not None:
            self.ranks = (("rank", record.rank),)
        self.unit = record.unit or self.unit
        self.place = record.place or self.place
        self.pid = record.pid if record.pid is not None else self.pid

    def stamped(self, text: str) -> None:
        """Take the outermost wall clock: its collector saw all processes."""
        if self.stamp is None and (stamp := stamp_nanoseconds(text)) is not None:
            self.stamp, self.stamp_text = stamp, text

    def line(self, number: int, text: str, section: int, source_roles: Mapping[str, str]) -> LogLine:
        """The line, with all that is known of it."""
        role = "kernel" if self.unit == "kernel" else self.role
        if role is None and self.place is not None:
            role = source_roles.get(self.place.rpartition("/")[2].partition(":")[0])
        return LogLine(
            number=number,
            text=text,
            process=self.process,
            engine=self.engine,
            pid=self.pid,
            role=role,
            ranks=self.ranks,
            level=self.level,
            place=self.place,
            time=self.stamp_text or self.time,
            moment=Moment(self.stamp, self.second, self.uptime, self.epoch),
            section=section,
            excepthook=self.excepthook,
            repeated=self.repeated,
        )


class LineParser:
    """Takes raw lines apart, one by one. Keeps the section, since `tail` joins files under headers, and the
    beginnings of lines that a collector has cut."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.section = 0
        self._parts: dict[str, tuple[int, str, _Found]] = {}

    @property
    def holds(self) -> bool:
        """Whether the beginning of a line is kept back until its rest comes."""
        return bool(self._parts)

    def parse(self, number: int, raw: str) -> Iterator[LogLine]:
        """The line, or its parts where carriage returns redrew it; nothing where its rest is still to come.
        Never raises for any text."""
        # The blank at the end of a part of a line belongs to the line.
        for text in segments(raw, keep_end=_PART in raw[:_PART_WITHIN]):
            yield from self._parse(number, text, _Found(), 0)

    def flush(self) -> Iterator[LogLine]:
        """The lines whose rest never came."""
        parts, self._parts = self._parts, {}
        for number, text, found in parts.values():
            yield from self._parse(number, text, found, 1)

    def starts_record(self, text: str) -> bool:
        """Whether a text begins as the lines of a log do."""
        text = text.lstrip() if text.startswith("\t") else text
        return bool(_SECTION.match(text)) or any(
            rule.regex.match(text) for rule in self._tables.prefixes_of(text)
        )

    def _parse(self, number: int, text: str, found: _Found, depth: int) -> Iterator[LogLine]:
        for _ in range(_MAX_PREFIXES):
            if text.startswith("{") and depth < _MAX_DEPTH and (record := json_record(text)) is not None:
                found.record(record)
                if record.partial:
                    self._keep_part(number, record.stream, record.text, found)
                    return
                yield from self._inner(
                    number, self._with_part(record.stream, number, record.text), found, depth
                )
                return
            for rule in self._tables.prefixes_of(text):
                match = rule.regex.match(text)
                if match is not None:
                    break
            else:
                break
            text = text[match.end() :]
            if rule.suffix is not None:
                text = rule.suffix.sub("", text)
            found.take(rule, match)
            if (part := match.groupdict().get("part")) is not None:
                if part == "P":
                    self._keep_part(number, match["stream"], text, found)
                    return
                number, text = self._with_part(match["stream"], number, text)
        if text.startswith("==> ") and _SECTION.match(text):
            self.section += 1
            return
        if "x across cluster]" in text and (again := _REPEATED.search(text)):
            text, found.repeated = text[: again.start()], int(again[1])
        if TRACEBACK in text:
            for part in unfold_traceback(text):
                yield found.line(number, part, self.section, self._tables.source_roles)
            return
        yield found.line(number, text, self.section, self._tables.source_roles)

    def _inner(self, number: int, numbered: tuple[int, str], found: _Found, depth: int) -> Iterator[LogLine]:
        """The line or lines that a JSON record holds."""
        number, text = numbered
        for part in text.rstrip("\r\n").split("\n")[:_MAX_INNER]:
            for piece in segments(part):
                yield from self._parse(number, piece, replace(found), depth + 1)

    def _keep_part(self, number: int, stream: str, text: str, found: _Found) -> None:
        first, before, _ = self._parts.pop(stream, (number, "", found))
        self._parts[stream] = (first, (before + text)[:MAX_LINE], found)
        if len(self._parts) > _MAX_PARTS:
            self._parts.pop(next(iter(self._parts)))

    def _with_part(self, stream: str, number: int, text: str) -> tuple[int, str]:
        if stream not in self._parts:
            return number, text
        first, before, _ = self._parts.pop(stream)
        return first, before + text


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
