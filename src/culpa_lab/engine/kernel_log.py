"""Lines that a host's kernel would write: GPU faults (Xid) and kills for memory."""

import os
import time
from pathlib import Path


class KernelLog:
    """Appends lines like those of `journalctl -k -o short-iso` to a file; without a file they are lost."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, text: str) -> None:
        """Append one line with the wall clock, in one piece."""
        if self._path is None:
            return
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime())
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, f"{stamp} localhost kernel: {text}\n".encode())
        finally:
            os.close(descriptor)

    def xid_page_fault(self, bus: str, process: str, address: int, access: str) -> None:
        """Xid 31: an access to an address that no page is mapped at."""
        self.write(
            f"NVRM: Xid (PCI:{bus}): 31, pid={os.getpid()}, name={process[:15]}, Ch 0000003b, intr 00000000. "
            f"MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted @ 0x{address >> 32:x}_{address & 0xFFFFFFFF:08x}. "
            f"Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_{access}"
        )

    def xid_out_of_range(self, bus: str, process: str) -> None:
        """Xid 13: an access outside of everything that was ever allocated."""
        self.write(
            f"NVRM: Xid (PCI:{bus}): 13, pid={os.getpid()}, name={process[:15]}, Graphics SM Warp Exception on "
            "(GPC 1, TPC 3, SM 0): Out Of Range Address"
        )

    def out_of_memory_kill(self, process: str, kilobytes: int) -> None:
        """The memory cgroup's limit is reached and a process is killed for it."""
        name = process[:15]
        self.write(
            f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task={name},pid={os.getpid()},uid={os.getuid()}"
        )
        self.write(
            f"Memory cgroup out of memory: Killed process {os.getpid()} ({name}) total-vm:{kilobytes * 3}kB, "
            f"anon-rss:{kilobytes}kB, file-rss:0kB, shmem-rss:0kB, UID:{os.getuid()} oom_score_adj:0"
        )
