"""What the rest of a log says about its processes: which pid is which rank, and which clock ran where."""

import re
from dataclasses import replace

from culpa.triage.clock import NO_MOMENT, Moment, days_added, wall_second
from culpa.triage.lines import LogLine, Ranks

_LOCAL = re.compile(r"world_size=\d{1,6} rank=\d{1,6} local_rank=(\d{1,6})")
_INDEX = re.compile(r"^VllmWorker-(\d{1,5}) pid=")
_MAX_PROCESSES = 8192
_BOOTED = re.compile(r"^(?:system boot {1,8})?(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?)$")
_UPTIME_ASKED = re.compile(r"\buptime (?:-s|--since)\b")
_TRAILING_RANK = re.compile(r" rank=(\d{1,5})$")
_WORLD = re.compile(r"\bworld_size=(\d{1,6})\b|\bnranks (\d{1,6})\b")
#: The answer of `uptime -s` stands so many lines below the command at most.
_ANSWER_WITHIN = 4


class Facts:
    """Grows with the log; bounded by the number of processes, not of lines."""

    def __init__(self) -> None:
        self.ready = False
        self.orderly_ends: set[int] = set()
        self._ranks_by_pid: dict[int, Ranks] = {}
        self._label_by_pid: dict[int, str] = {}
        self._kind_by_pid: dict[int, str] = {}
        self._local: dict[int, int | None] = {}  # None: several processes had this index, so it names none
        self._sections: dict[int, set[str]] = {}
        self._section_line: dict[str, LogLine] = {}
        self._latest: dict[int, Moment] = {}
        self.rank_names: dict[str, set[int]] = {}
        self.places: dict[Ranks, None] = {}
        self.worlds: set[int] = set()
        self._booted: float | None = None
        self._uptime_asked: int | None = None

    def clocked(self, line: LogLine) -> LogLine:
        """The line with the wall clock of an uptime, where the log tells when the machine started."""
        text, moment = line.text, line.moment
        if text.startswith(("$", "#")):
            if _UPTIME_ASKED.search(text):
                self._uptime_asked = line.number
        elif (
            self._uptime_asked is not None
            and line.number - self._uptime_asked <= _ANSWER_WITHIN
            and (found := _BOOTED.match(text.strip()))
        ):
            self._booted = wall_second(found[1] if found[1].count(":") > 1 else f"{found[1]}:00")
        if moment.epoch != "boot" or moment.uptime is None:
            return line
        if moment.second is not None:
            self._booted = moment.second - moment.uptime
        elif self._booted is not None and moment.stamp is None:
            return replace(line, moment=replace(moment, second=days_added(self._booted, moment.uptime)))
        return line

    def note(self, line: LogLine) -> None:
        """Learn from any line."""
        if line.process is not None and len(self._section_line) < _MAX_PROCESSES:
            self._sections.setdefault(line.section, set()).add(line.process)
            self._section_line.setdefault(line.process, line)
        if line.ranks and len(self.places) < _MAX_PROCESSES:
            self.places.setdefault(line.ranks)
        if "rank=" in line.text and line.engine == "tgi" and (match := _TRAILING_RANK.search(line.text)):
            self.rank_names.setdefault("rank", set()).add(int(match[1]))
        if len(self.worlds) < 8 and (match := _WORLD.search(line.text)):
            self.worlds.add(int(match[1] or match[2]))
        for name, value in line.ranks:
            if len(values := self.rank_names.setdefault(name, set())) < _MAX_PROCESSES:
                values.add(value)
        if line.pid is not None and len(self._label_by_pid) < _MAX_PROCESSES:
            if line.ranks and self._ranks_by_pid.setdefault(line.pid, line.ranks) != line.ranks:
                self._ranks_by_pid[line.pid] = ()  # two containers with the same pid: it names no place
            elif line.ranks and line.process is not None:
                self._label_by_pid[line.pid] = line.process
            if line.process is not None:
                self._label_by_pid.setdefault(line.pid, line.process)
                if match := _INDEX.match(line.process):
                    self._index(int(match[1]), line.pid)
            if line.role is not None and line.role != "kernel":
                self._kind_by_pid.setdefault(line.pid, line.role)
            if "local_rank=" in line.text and (match := _LOCAL.search(line.text)):
                self._index(int(match[1]), line.pid)
        if line.moment.shown and (len(self._latest) < _MAX_PROCESSES or line.section in self._latest):
            self._latest[line.section] = line.moment

    def _index(self, local_rank: int, pid: int) -> None:
        if self._local.setdefault(local_rank, pid) != pid:
            self._local[local_rank] = None

    def latest(self, section: int) -> Moment:
        """The last time seen in a section: a lower bound for a line without one."""
        return self._latest.get(section, NO_MOMENT)

    def ranks_of(self, pid: int | None) -> Ranks:
        """The place of a process, learnt from any of its lines."""
        return self._ranks_by_pid.get(pid, ()) if pid is not None else ()

    def label_of(self, pid: int | None) -> str | None:
        """The most telling name that a process printed of itself."""
        return self._label_by_pid.get(pid) if pid is not None else None

    def kind_of(self, pid: int | None) -> str | None:
        """The kind of process, learnt from any of its lines."""
        return self._kind_by_pid.get(pid) if pid is not None else None

    @property
    def pids(self) -> frozenset[int]:
        """The processes that named themselves."""
        return frozenset(self._label_by_pid)

    def worker(self, local_rank: int) -> int | None:
        """The pid of a worker by its local rank, where the log ties the two."""
        return self._local.get(local_rank)

    def only_speaker(self, section: int) -> LogLine | None:
        """A line of the only process that speaks in a section of joined files; None if there are several."""
        speakers = self._sections.get(section, set())
        return self._section_line[next(iter(speakers))] if len(speakers) == 1 else None

    @property
    def several(self) -> bool:
        """Whether the log shows more than one rank, of whatever kind."""
        return len(self.places) > 1 or max(self.worlds, default=0) > 1

    @property
    def only_tensor_parallel(self) -> bool:
        """Whether tensor parallelism is the only kind of rank that the log names."""
        return set(self.rank_names) <= {"tp", "rank"} and "tp" in self.rank_names
