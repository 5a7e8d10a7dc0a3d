"""GPUs through NVML, which is loaded only when it is asked for and need not be there."""

import asyncio
import functools
from dataclasses import dataclass
from typing import Any

from culpa.host.tree import facts_of_pid

_BUSY_BYTES = 1 << 30  # memory that nobody owns up to, beyond which a GPU counts as busy all the same
_BUSY_PROCESS_BYTES = 64 << 20  # what a process must hold to count: display servers hold a little
_SETTLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVML sees it: `index` in PCI order, `sm` the compute capability such as `9.0`."""

    index: int
    name: str
    memory_bytes: int
    pci_bus: str
    sm: str
    uuid: str = ""

    def describe(self) -> str:
        """`GPU 0 (NVIDIA H200)`."""
        return f"GPU {self.index} ({self.name})"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU. `memory_bytes` is None where the driver does not say."""

    gpu: int
    pid: int
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What NVML said: the GPUs and the driver, or the reason why there are none."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    without_gpu_reason: str | None


def read_gpus() -> GpuReading:
    """Every GPU that NVML knows. Never an error: without NVML there are none, with a reason."""
    nvml, reason = _nvml()
    if nvml is None:
        return GpuReading((), None, reason)
    try:
        gpus = tuple(_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
        driver = _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError as error:
        return GpuReading((), None, f"NVML failed: {error}")
    return GpuReading(gpus, driver, None if gpus else "the NVIDIA driver knows no GPU")


def gpu_processes(gpus: tuple[Gpu, ...]) -> list[GpuProcess]:
    """Processes that compute on these GPUs. In a container the driver may show none, or pids of the host."""
    nvml, _ = _nvml()
    found: list[GpuProcess] = []
    for gpu in gpus if nvml is not None else ():
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
            found += [
                GpuProcess(gpu.index, entry.pid, entry.usedGpuMemory)
                for entry in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            ]
        except nvml.NVMLError:
            continue  # not supported on this GPU: its used memory still tells whether it is idle
    return found


def gpu_memory_used(gpus: tuple[Gpu, ...]) -> dict[int, int]:
    """Bytes in use by GPU index, without what the driver keeps for itself where it says so."""
    nvml, _ = _nvml()
    used: dict[int, int] = {}
    for gpu in gpus if nvml is not None else ():
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
            try:
                used[gpu.index] = int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)
            except (AttributeError, TypeError, nvml.NVMLError):
                used[gpu.index] = int(nvml.nvmlDeviceGetMemoryInfo(handle).used)  # older driver or package
        except nvml.NVMLError:
            continue  # a GPU with unified memory reports none of its own
    return used


def visible_gpus(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that a launch can use, given the value of its CUDA_VISIBLE_DEVICES (None: not set).

    Numbers count in NVML's order; that is also CUDA's where all GPUs are of one kind. Where they are not,
    CUDA counts the fastest first, and numbers select all GPUs rather than perhaps the wrong ones. An entry
    that names no GPU ends the list, as it does for CUDA.
    """
    if visible is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        if entry.isdigit():
            if len({gpu.name for gpu in gpus}) > 1:
                return gpus
            matching = [gpu for gpu in gpus if gpu.index == int(entry)]
        else:
            matching = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
        if len(matching) != 1:
            break
        chosen += matching
    return tuple(chosen)


def busy_gpus(gpus: tuple[Gpu, ...]) -> list[str]:
    """Which of these GPUs are in use and by whom, one sentence each; empty if all are idle."""
    processes = gpu_processes(gpus)
    used = gpu_memory_used(gpus)
    sentences = []
    for gpu in gpus:
        holders = [
            entry
            for entry in processes
            if entry.gpu == gpu.index
            and (entry.memory_bytes is None or entry.memory_bytes >= _BUSY_PROCESS_BYTES)
        ]
        for entry in holders:
            facts = facts_of_pid(entry.pid)
            who = facts.describe() if facts else f"pid {entry.pid}, which is not visible here"
            amount = "memory" if entry.memory_bytes is None else _gib(entry.memory_bytes)
            sentences.append(f"{gpu.describe()}: {who} holds {amount}")
        if not holders and used.get(gpu.index, 0) >= _BUSY_BYTES:
            sentences.append(
                f"{gpu.describe()}: {_gib(used[gpu.index])} in use by processes that are not visible"
            )
    return sentences


async def wait_until_idle(gpus: tuple[Gpu, ...], patience: float = 10.0) -> list[str]:
    """Wait until these GPUs are idle, at most `patience` seconds.

    The driver gives memory back a little after a process is gone. Returns what `busy_gpus` says at the end:
    empty if they are idle.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while (busy := busy_gpus(gpus)) and loop.time() < deadline:  # noqa: ASYNC110 (NVML has nothing to wait on)
        await asyncio.sleep(_SETTLE_SECONDS)
    return busy


@functools.cache
def _nvml() -> tuple[Any, str | None]:
    """The initialised NVML module, or None and the reason. Kept open: opening it can take a second."""
    try:
        import pynvml
    except ImportError:
        return None, "the package nvidia-ml-py is not installed, so no GPU can be seen"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if getattr(error, "value", None) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return None, "no NVIDIA driver on this machine"
        return None, f"NVML does not start: {error}"
    return pynvml, None


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    try:
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        memory = 0  # unified memory
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        index=index,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_bytes=memory,
        pci_bus=_text(nvml.nvmlDeviceGetPciInfo(handle).busId),
        sm=f"{major}.{minor}",
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
