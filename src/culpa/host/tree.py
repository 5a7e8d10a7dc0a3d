"""What is known of living processes, and of the tree that hangs below one of them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from culpa.model.redact import printable, redact


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A living process. `cpu_seconds` is user plus system time, `rss` resident memory in bytes."""

    pid: int
    name: str
    cmdline: tuple[str, ...]
    cpu_seconds: float
    rss: int

    def describe(self) -> str:
        """`pid 123 (python -m server)`, short, printable, secrets taken out."""
        command = redact(printable(" ".join(self.cmdline))).replace("\n", " ") or self.name
        return f"pid {self.pid} ({command if len(command) <= 80 else command[:77] + '...'})"


def facts_of(process: psutil.Process) -> ProcessFacts | None:
    """What a process is; None if it is gone or a zombie. What may not be read of it is left empty."""
    try:
        with process.oneshot():
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return None
            name, cpu, rss = process.name(), 0.0, 0
            cmdline: tuple[str, ...] = ()
            with contextlib.suppress(psutil.AccessDenied):
                cmdline = tuple(process.cmdline())
            with contextlib.suppress(psutil.AccessDenied):
                times = process.cpu_times()
                cpu, rss = times.user + times.system, process.memory_info().rss
            return ProcessFacts(process.pid, name, cmdline, cpu, rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def facts_of_pid(pid: int) -> ProcessFacts | None:
    """What the process with this id is; None if there is none."""
    try:
        return facts_of(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return None


def descendants(pid: int) -> list[psutil.Process]:
    """Every descendant of a process, zombies included; none if it is gone."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def tree_cpu_seconds(pid: int) -> float:
    """CPU time of everything below a process, in seconds: the living, and the dead that were waited for.

    The time of a process that died goes to the one that waits for it, so that the sum does not fall when
    workers end. Between the two a little may be missing for an instant.
    """
    total = 0.0
    for process in [*_self(pid), *descendants(pid)]:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            own = times.user + times.system if process.pid != pid else 0.0
            total += own + times.children_user + times.children_system
    return total


def _self(pid: int) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        yield psutil.Process(pid)
