"""What the rest of a log says about its processes: which pid is which rank, and which clock ran where."""

import re

from culpa.triage.clock import NO_MOMENT, Moment
from culpa.triage.lines import LogLine, Ranks

_LOCAL = re.compile(r"world_size=\d{1,6} rank=\d{1,6} local_rank=(\d{1,6})")
_INDEX = re.compile(r"^VllmWorker-(\d{1,5}) pid=")
_MAX_PROCESSES = 8192


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

    def note(self, line: LogLine) -> None:
        """Learn from any line."""
        if line.process is not None and len(self._section_line) < _MAX_PROCESSES:
            self._sections.setdefault(line.section, set()).add(line.process)
            self._section_line.setdefault(line.process, line)
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
    def only_tensor_parallel(self) -> bool:
        """Whether tensor parallelism is the only kind of rank that the log names."""
        return set(self.rank_names) <= {"tp", "rank"} and "tp" in self.rank_names
