"""The machine on which trials run, and the facts about it that a report states."""

import os
import platform
import resource
from dataclasses import dataclass

import psutil

from culpa.host.gpus import Gpu, read_gpus
from culpa.host.limits import container, read_text, shared_memory

_GIB = 1 << 30
_UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63


@dataclass(frozen=True, slots=True)
class Machine:
    """What an engine may use here: GPUs, processors, bytes of memory, limits of a container included.

    `cpus` is the number of processors that this process may run on, `without_gpu_reason` says why `gpus` is
    empty.
    """

    gpus: tuple[Gpu, ...]
    cpus: int
    memory_bytes: int
    cpu_model: str = ""
    driver: str | None = None
    without_gpu_reason: str | None = None


def read_machine() -> Machine:
    """Look at this machine. GPUs come from NVML; without it there are none, with the reason."""
    reading = read_gpus()
    limit = _memory_limit()
    total = psutil.virtual_memory().total
    return Machine(
        gpus=reading.gpus,
        cpus=_usable_cpus(),
        memory_bytes=min(total, limit) if limit is not None else total,
        cpu_model=_cpu_model(),
        driver=reading.driver,
        without_gpu_reason=reading.without_gpu_reason,
    )


def environment_facts(machine: Machine | None = None) -> dict[str, str]:
    """Facts for a report: system, processor, memory, limits, GPUs, driver. No names of hosts or users, no
    environment variables, nothing secret.
    """
    machine = machine or read_machine()
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    total = psutil.virtual_memory().total
    facts = {
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cpu": machine.cpu_model or "unknown",
        "cores": f"{machine.cpus} usable of {os.cpu_count() or '?'}",
        "memory": f"{machine.memory_bytes / _GIB:.1f} GiB usable of {total / _GIB:.1f} GiB",
        "shared_memory": shared_memory(),
        "locked_memory_limit": "unlimited" if memlock == resource.RLIM_INFINITY else f"{memlock // 1024} KiB",
        "container": "no" if container() == "no" else "yes",
        "gpus": "; ".join(
            f"{gpu.describe()} {gpu.memory_bytes / _GIB:.0f} GiB, sm {gpu.sm}, {gpu.pci_bus}"
            for gpu in machine.gpus
        )
        or f"none ({machine.without_gpu_reason})",
    }
    if machine.driver is not None:
        facts["gpu_driver"] = machine.driver
    return facts


def _usable_cpus() -> int:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = read_text("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        return max(1, min(affinity, int(quota[0]) // int(quota[1])))
    return affinity


def _memory_limit() -> int | None:
    """The container's memory limit in bytes (cgroup v2, then v1); None if there is none."""
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = read_text(name)
        if text.isdigit() and int(text) < _UNLIMITED:
            return int(text)
    return None


def _cpu_model() -> str:
    for line in read_text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return f"{platform.system()} {platform.release()}"
