"""Logs of trials cut around their events, whatever their size, each line with its part in what happened."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from culpa.triage.lines import LineParser
from culpa.triage.scan import lines_of
from culpa.triage.tables import load_tables
from culpa.triage.text import MAX_LINE

Role = Literal["", "root", "same", "cascade", "xid"]
LONGEST_LINE = 1000
_MARGIN = 3  # lines read beyond what is shown: a secret may be cut by the edge
_HEAD = 3  # lines of the start that are always shown
_BEFORE, _AFTER = 6, 14
_CHUNK = 1 << 20
_XID = re.compile(r"NVRM: Xid|fallen off the bus|oom-kill|Out of memory: Killed")


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of a log that is shown: its 1-based number, its text, its role, who wrote it and when, as it prints it.

    `process` is the kind of process (`worker`, `engine_core`, `api_server`, `kernel`), empty where the line does not
    tell; `rank` its place (`PP1`); `seconds` its time on the clock of that log, for order and distances.
    """

    number: int
    text: str
    role: Role = ""
    process: str = ""
    rank: str = ""
    time: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LogExcerpt:
    """A log: its name relative to the run's folder, its size, and the lines that are shown. Where their numbers are not
    consecutive, lines were left out; `truncated` is true if any were."""

    name: str
    size: int
    total: int
    lines: tuple[ShownLine, ...]

    @property
    def truncated(self) -> bool:
        """Whether the log has more lines than are shown."""
        return len(self.lines) < self.total


@dataclass(frozen=True, slots=True)
class RawExcerpt:
    """A log as it lies there: the numbers of the lines to show, and these with their neighbours, not redacted."""

    name: str
    size: int
    total: int
    wanted: tuple[int, ...]
    lines: Mapping[int, str]

    def texts(self) -> Iterator[str]:
        """Neighbouring lines together, since a secret may be broken over them."""
        for run in _runs(sorted(self.lines)):
            yield _joined([self.lines[number] for number in run])

    def shown(self, roles: Mapping[int, Role], redacted: Callable[[str], str]) -> LogExcerpt:
        """The excerpt, redacted. `redacted` keeps the number of lines."""
        clean = {
            number: text
            for run in _runs(sorted(self.lines))
            for number, text in zip(
                run, _clean([self.lines[number] for number in run], redacted), strict=True
            )
        }
        parser = LineParser(load_tables("generic"))
        kernel = self.name.endswith("kernel.log")
        lines = tuple(
            _line(parser, number, clean[number], _role(roles, number, clean[number], kernel), kernel)
            for number in self.wanted
            if number in clean
        )
        return LogExcerpt(self.name, self.size, self.total, lines)


def read_excerpt(path: Path, name: str, roles: Mapping[int, Role], most: int) -> RawExcerpt | None:
    """The log at `path`, `most` lines of it at the most; None where there is none.

    Lines with a role come first, with their surroundings, root before all others; then the last lines, then the first.
    """
    if not path.is_file():
        return None
    total, size = _measure(path)
    wanted = _chosen(total, roles, most)
    with_margin = {near for number in wanted for near in range(number - _MARGIN, number + _MARGIN + 1)}
    return RawExcerpt(name, size, total, tuple(wanted), _read(path, sorted(with_margin)))


def _measure(path: Path) -> tuple[int, int]:
    count = size = 0
    last = b"\n"
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            count += block.count(b"\n")
            size += len(block)
            last = block[-1:]
    return count + (last != b"\n"), size


def _chosen(total: int, roles: Mapping[int, Role], most: int) -> list[int]:
    """The numbers of the lines to show, sorted."""
    if total <= most:
        return list(range(1, total + 1))
    order: dict[str, int] = {"root": 0, "same": 1, "xid": 1, "cascade": 2}
    chosen: dict[int, None] = {}

    def take(numbers: Iterable[int], limit: int) -> None:
        for number in numbers:
            if len(chosen) >= limit:
                return
            if 1 <= number <= total:
                chosen.setdefault(number)

    events = sorted(roles, key=lambda number: (order.get(roles[number], 3), number))
    room = most * 3 // 4
    for number in events:
        first, last = (_BEFORE, _AFTER) if roles[number] == "root" else (1, 2)
        take(range(number - first, number + last + 1), room)
    take(range(1, _HEAD + 1), most)
    take(range(total, 0, -1), most)
    return sorted(chosen)


def _read(path: Path, numbers: Sequence[int]) -> dict[int, str]:
    """These lines of the file, as text. Reads it once, and nothing behind the last of them."""
    wanted = [number for number in numbers if number >= 1]
    found: dict[int, str] = {}
    if not wanted:
        return found
    index, number, rest = 0, 1, b""
    with path.open("rb") as file:
        while index < len(wanted):
            block = file.read(_CHUNK)
            whole = rest + block
            if block:
                cut = whole.rfind(b"\n") + 1
                if cut == 0 and len(whole) < 64 * _CHUNK:
                    rest = whole
                    continue
                whole, rest = (whole[:cut], whole[cut:]) if cut else (whole, b"")
            count = whole.count(b"\n") + (not block and not whole.endswith(b"\n") and bool(whole))
            if wanted[index] < number + count:
                lines = lines_of(whole)
                while index < len(wanted) and wanted[index] < number + len(lines):
                    found[wanted[index]] = lines[wanted[index] - number]
                    index += 1
            number += count
            if not block:
                break
    return found


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _joined(lines: Sequence[str]) -> str:
    # A line that a progress bar redrew stays one line.
    return "\n".join(line[:MAX_LINE].rstrip("\r").replace("\r", " ") for line in lines)


def _clean(lines: Sequence[str], redacted: Callable[[str], str]) -> list[str]:
    """The lines redacted together, each cut to a length to show."""
    parts = redacted(_joined(lines)).split("\n")
    return [part if len(part) <= LONGEST_LINE else f"{part[:LONGEST_LINE]}…" for part in parts]


def _role(roles: Mapping[int, Role], number: int, text: str, kernel: bool) -> Role:
    return roles.get(number) or ("xid" if kernel and _XID.search(text) else "")


def _line(parser: LineParser, number: int, text: str, role: Role, kernel: bool) -> ShownLine:
    told = next(iter(parser.parse(number, text)), None)
    if told is None:
        return ShownLine(number, text, role, "kernel" if kernel else "")
    moment = told.moment
    seconds = moment.stamp / 1e9 if moment.stamp is not None else moment.second
    return ShownLine(
        number,
        text,
        role,
        "kernel" if kernel else told.role or "",
        "_".join(f"{kind.upper()}{place}" for kind, place in told.ranks),
        told.time or "",
        moment.uptime if seconds is None else seconds,
    )


def around(lines: Sequence[ShownLine], most: int) -> list[ShownLine]:
    """The lines that matter most, in order: the root with its neighbours, other events, the end."""
    if len(lines) <= most:
        return list(lines)
    rank = {"root": 0, "same": 1, "xid": 2, "cascade": 3}
    events = [index for index, line in enumerate(lines) if line.role]
    roots = [index for index in events if lines[index].role == "root"] or events[:1] or [len(lines) - 1]
    chosen: dict[int, None] = {}
    candidates = [
        near for root in roots for near in (root, *range(root + 1, root + 13), *range(root - 1, root - 4, -1))
    ]
    candidates += [
        near
        for index in sorted(events, key=lambda index: (rank.get(lines[index].role, 9), index))
        for near in (index, index + 1, index - 1)
    ]
    candidates += list(range(len(lines) - 1, -1, -1))
    for index in candidates:
        if len(chosen) >= most:
            break
        if 0 <= index < len(lines):
            chosen.setdefault(index)
    return [lines[index] for index in sorted(chosen)]
