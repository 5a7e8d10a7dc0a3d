"""GPUs through NVML, which is loaded only when it is asked for and need not be there."""

import functools
from dataclasses import dataclass
from typing import Any


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


def load_nvml() -> tuple[Any, str | None]:
    """The initialised NVML module, or None and the reason why there is none."""
    return _nvml()


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
