"""TCP ports of this machine: a free one, who listens on one, whether a tree of processes does."""

import contextlib
import os
import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from culpa.host.tree import facts_of_pid

_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp
# Addresses at which a connection to 127.0.0.1 arrives, as /proc/net/tcp and tcp6 print them.
_REACHABLE = {
    "0100007F",  # 127.0.0.1
    "00000000",  # 0.0.0.0
    "0" * 32,  # ::
    "0000000000000000FFFF00000100007F",  # ::ffff:127.0.0.1
    "0000000000000000FFFF000000000000",  # ::ffff:0.0.0.0
}
_LOWEST_PORT = 20_000
_recent: list[int] = []  # ports given out lately, so that two trials that start at once don't get the same


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that answers connections to 127.0.0.1. `pid` is known only where psutil says it."""

    inode: int
    pid: int | None = None


def listeners(port: int) -> list[Listener]:
    """Every listening socket at which a connection to 127.0.0.1:`port` may arrive."""
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    if not tables[0].exists():
        return _listeners_by_psutil(port)
    found = []
    for table in tables:
        with contextlib.suppress(FileNotFoundError):  # no IPv6 on this machine
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                address, _, number = words[1].partition(":")
                if words[3] == _LISTEN and int(number, 16) == port and address in _REACHABLE:
                    found.append(Listener(int(words[9])))
    return found


def owned_by(found: Iterable[Listener], pids: Iterable[int]) -> bool:
    """Whether every one of these listeners belongs to one of the processes; False if there is no listener.

    Every one, because with SO_REUSEPORT an engine of an earlier trial can share the port with the new one,
    and then either of them may answer.
    """
    found = list(found)
    if not found:
        return False
    members = set(pids)
    wanted = {listener.inode for listener in found if listener.pid is None}
    for pid in members:
        if not wanted:
            break
        wanted -= _socket_inodes(pid)
    return not wanted and all(listener.pid in members for listener in found if listener.pid is not None)


def port_owner(port: int) -> str | None:
    """Who listens on 127.0.0.1:`port`, such as `pid 123 (python -m server)`; None if the port is free."""
    found = listeners(port)
    if not found:
        return None if _can_bind(port, reuse=True) else "a process that holds the port without listening"
    wanted = {listener.inode for listener in found}
    for listener in found:
        pids = [listener.pid] if listener.pid is not None else psutil.pids()
        for pid in pids:
            if listener.pid is not None or wanted & _socket_inodes(pid):
                facts = facts_of_pid(pid)
                if facts is not None:
                    return facts.describe()
    return "a process that this user may not look into"


def free_port() -> int:
    """A port that nothing holds, on any address, at this moment.

    It is taken from below the range from which the kernel serves outgoing connections and port 0, so that
    the engine's own workers don't grab it between this call and the engine's bind. Raises OSError if there
    is none.
    """
    low, high = _LOWEST_PORT, _first_ephemeral_port()
    if high - low < 1000:
        low, high = 1024, 65536
    for _ in range(1000):
        port = random.randrange(low, high)
        if port not in _recent and not listeners(port) and _can_bind(port, reuse=False):
            _recent.append(port)
            del _recent[:-100]
            return port
    raise OSError("no free TCP port was found on this machine")


def _first_ephemeral_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768  # the default of Linux


def _can_bind(port: int, *, reuse: bool) -> bool:
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if reuse:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except PermissionError:
            continue  # a port for root only: whoever may bind it will see
        except OSError:
            if family == socket.AF_INET6 and not _has_ipv6():
                continue
            return False
    return True


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True


def _socket_inodes(pid: int) -> set[int]:
    """Inodes of the sockets that a process holds; none where it is gone or may not be looked into."""
    found = set()
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 (thousands of descriptors; names are all that is needed)
    except OSError:
        return set()
    for name in names:
        with contextlib.suppress(OSError):
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found


def _listeners_by_psutil(port: int) -> list[Listener]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            found += [
                Listener(0, process.pid)
                for connection in process.net_connections(kind="tcp")
                if connection.status == psutil.CONN_LISTEN
                and connection.laddr.port == port
                and connection.laddr.ip in ("127.0.0.1", "0.0.0.0", "::")
            ]
    return found
