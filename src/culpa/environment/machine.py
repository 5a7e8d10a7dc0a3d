"""Facts about the machine, its container and its GPUs, each read by itself."""

from collections.abc import Iterator

import psutil

from culpa.host import Machine, environment_facts
from culpa.host.gpu_health import GpuHealth, read_gpu_health
from culpa.host.limits import c_library, container, image, limits, numa_nodes, nvidia_module
from culpa.model.environment import Fact

_NVML = "NVML"
_GIB = 1 << 30


def machine_facts(machine: Machine) -> Iterator[Fact]:
    """System, container and limits."""
    told = environment_facts(machine)
    yield Fact("system.os", told["os"], "/etc/os-release")
    yield Fact("system.kernel", told["kernel"], "uname")
    yield Fact("system.libc", c_library())
    yield Fact("system.cpu", told["cpu"], "/proc/cpuinfo")
    yield Fact("system.cores", told["cores"])
    nodes = numa_nodes()
    yield Fact("system.numa", nodes, "/sys/devices/system/node", "" if nodes else "the kernel does not tell")
    yield Fact("system.memory", told["memory"])
    yield Fact("system.swap", f"{psutil.swap_memory().total / _GIB:.1f} GiB")
    yield Fact("container.kind", container())
    for name, value in limits().items():
        yield Fact(f"container.{name}", value, reason="" if value else "the control group does not tell")


def image_fact(given: str | None) -> Fact:
    """The tag of the container's image, the user's word first."""
    if given:
        return Fact("engine.image", given, "--image")
    tag, where = image()
    return Fact("engine.image", tag, where if tag else "", "" if tag else where)


def gpu_facts(machine: Machine, health: GpuHealth | None = None) -> Iterator[Fact]:
    """Driver, GPUs and the links between them; without NVML one fact that says why."""
    module = nvidia_module()
    if not machine.gpus:
        reason = machine.without_gpu_reason or "no GPU is visible"
        yield Fact("gpu.count", "0" if machine.driver else None, _NVML if machine.driver else "", reason)
        yield Fact("gpu.driver", machine.driver, _NVML if machine.driver else "", reason)
        if module:
            yield Fact("gpu.module", module, "/proc/driver/nvidia/version")
        return
    health = read_gpu_health() if health is None else health
    yield Fact("gpu.count", str(len(machine.gpus)), _NVML)
    yield Fact("gpu.driver", machine.driver, _NVML)
    for name, told in health.driver.items():
        yield Fact(f"gpu.{name}", told.value, "NVML, the newest CUDA that this driver runs", told.reason)
    why = "" if module else "/proc/driver/nvidia/version is not there"
    yield Fact("gpu.module", module, "/proc/driver/nvidia/version" if module else "", why)
    for gpu in machine.gpus:
        prefix = f"gpu.{gpu.index}"
        yield Fact(f"{prefix}.name", gpu.name, _NVML)
        yield Fact(f"{prefix}.sm", gpu.sm, _NVML)
        yield Fact(f"{prefix}.bus", gpu.pci_bus.lower().removeprefix("0000"), _NVML)
        memory = f"{gpu.memory_bytes / _GIB:.1f} GiB" if gpu.memory_bytes else "shared with the machine"
        yield Fact(f"{prefix}.memory", memory, _NVML)
        for name, told in health.gpus.get(gpu.index, {}).items():
            yield Fact(f"{prefix}.{name}", told.value, _NVML if told.value is not None else "", told.reason)
    for (left, right), told in health.pairs.items():
        source = _NVML if told.value is not None else ""
        yield Fact(f"link.{left}-{right}", told.value, source, told.reason)
