"""The kernel's messages about GPUs while an engine is verified: those of its own GPUs, and those of others."""

import re
import socket
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import psutil

from culpa.host import Gpu, KernelLog
from culpa.model.redact import printable, redact
from culpa.triage.xids import bus_address, parse_xid

_LOST = re.compile(r"GPU (?:at )?(?:PCI:)?((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)")
_OFF_THE_BUS = "fallen off the bus"


class GpuMessages:
    """Reads a kernel log piece by piece. `gpus` are those that the engine may use; where none are known, every message
    counts as its own: a GPU of its own kind, as the reference engine has, or a log of another host."""

    def __init__(self, kernel: KernelLog, gpus: Sequence[Gpu] = ()) -> None:
        self._kernel = kernel
        self._buses = {bus for gpu in gpus if (bus := bus_address(gpu.pci_bus)) is not None}
        self.own: list[str] = []
        self.others: list[str] = []

    def look(self) -> None:
        """Take in what the kernel has said since the last look."""
        try:
            lines = self._kernel.read()
        except OSError as error:
            lines = []
            self._kernel.unreadable = f"it can't be read any more ({error.strerror or error})"
        self._take(lines)

    def _take(self, lines: Iterable[str]) -> None:
        for line in lines:
            if "NVRM: Xid" not in line and _OFF_THE_BUS not in line:
                continue
            bus = _bus_of(line)
            # A message that names no GPU may be about any of them.
            own = not self._buses or bus is None or bus in self._buses
            (self.own if own else self.others).append(redact(printable(line)))

    @property
    def source(self) -> str:
        """Where the messages were read, and of which GPUs, or why they could not be."""
        if self._kernel.unreadable:
            return self._kernel.unreadable
        of = f", for {', '.join(sorted(self._buses))}" if self._buses else ""
        return f"read from {self._kernel.source} all the time{of}"


def _bus_of(line: str) -> str | None:
    xid = parse_xid(line, 1)
    if xid is not None:
        return xid.pci_bus
    match = _LOST.search(line)
    return bus_address(match[1]) if match else None


def why_elsewhere(endpoint: str) -> str:
    """Why this machine's kernel log says nothing of an endpoint: it is another machine's. Empty if it is this one's."""
    host = urlsplit(endpoint).hostname or ""
    if host == "localhost":
        return ""
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        addresses = {host}
    own = {entry.address.partition("%")[0] for found in psutil.net_if_addrs().values() for entry in found}
    if any(address in own or address.startswith("127.") or address == "::1" for address in addresses):
        return ""
    return "the engine runs on another machine, whose kernel log is out of reach here (--kernel-log FILE reads a copy)"
