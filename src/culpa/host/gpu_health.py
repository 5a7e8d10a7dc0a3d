"""The state of every GPU and of the links between them through NVML: memory errors, limits, peer access.

Each question is asked by itself, for a driver answers some and refuses others; a refusal is an answer with its reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from culpa.host.gpus import load_nvml

#: nvmlDeviceGetCurrentClocksEventReasons, from nvml.h; the first three slow nothing down that is at fault.
_HARMLESS = {0x1: "idle", 0x2: "application clocks", 0x100: "display clocks"}
_SLOWS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
#: nvmlGpuTopologyLevel_t, in the words of `nvidia-smi topo -m`.
_TOPOLOGY = {
    0: "same board",
    10: "PIX, one PCIe switch",
    20: "PXB, several PCIe switches",
    30: "PHB, through the CPU's host bridge",
    40: "NODE, within one NUMA node",
    50: "SYS, across NUMA nodes",
}
#: nvmlGpuP2PStatus_t.
_PEER = {
    0: "ok",
    1: "chipset does not support it",
    2: "GPU does not support it",
    3: "topology does not support it",
    4: "switched off by a registry key",
    5: "not supported",
    6: "unknown",
}
_MOST_LINKS = 18
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, or why there is none."""

    value: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """What NVML says of the GPUs by index, and of pairs of them. `driver` holds what is said of all at once."""

    gpus: dict[int, dict[str, Told]] = field(default_factory=dict)
    pairs: dict[tuple[int, int], Told] = field(default_factory=dict)
    driver: dict[str, Told] = field(default_factory=dict)


def read_gpu_health() -> GpuHealth:
    """Ask NVML everything that a report of a failure needs. Empty where there is no NVML."""
    nvml, _ = load_nvml()
    if nvml is None:
        return GpuHealth()
    ask = _Asker(nvml)
    count = ask.plain(nvml.nvmlDeviceGetCount)
    handles = {index: nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count or 0)}
    return GpuHealth(
        gpus={index: _one(ask, handle) for index, handle in handles.items()},
        pairs={
            (left, right): _pair(ask, handles[left], handles[right])
            for left in handles
            for right in handles
            if left < right
        },
        driver={"cuda": ask("nvmlSystemGetCudaDriverVersion_v2", text=_cuda)},
    )


class _Asker:
    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml

    def plain(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer as it is, None where there is none."""
        try:
            return call(*arguments)
        except self.nvml.NVMLError:
            return None

    def __call__(self, name: str, *arguments: Any, text: Callable[[Any], str] = str) -> Told:
        call = getattr(self.nvml, name, None)
        if call is None:
            return Told(None, f"nvidia-ml-py has no {name}")
        try:
            return Told(text(call(*arguments)))
        except self.nvml.NVMLError as error:
            return Told(None, f"NVML: {error}")


def _one(ask: _Asker, handle: Any) -> dict[str, Told]:
    clocks = "nvmlDeviceGetCurrentClocksEventReasons"
    if not hasattr(ask.nvml, clocks):
        clocks = "nvmlDeviceGetCurrentClocksThrottleReasons"
    return {
        "ecc": ask("nvmlDeviceGetEccMode", handle, text=_mode),
        "ecc_errors": _ecc_errors(ask, handle),
        "remapped_rows": ask("nvmlDeviceGetRemappedRows", handle, text=_rows),
        "throttling": ask(clocks, handle, text=_throttling),
        "mig": ask("nvmlDeviceGetMigMode", handle, text=_mode),
        "persistence": ask("nvmlDeviceGetPersistenceMode", handle, text=_on),
        "temperature": ask("nvmlDeviceGetTemperature", handle, 0, text=lambda value: f"{value} °C"),
        "power_limit": ask(
            "nvmlDeviceGetPowerManagementLimit", handle, text=lambda value: f"{value / 1000:.0f} W"
        ),
        "pcie": _pcie(ask, handle),
        "nvlink": _nvlink(ask, handle),
    }


def _ecc_errors(ask: _Asker, handle: Any) -> Told:
    counts: list[str] = []
    for kind, which in (("corrected", _CORRECTED), ("uncorrected", _UNCORRECTED)):
        for when, span in (("since boot", _VOLATILE), ("ever", _AGGREGATE)):
            told = ask("nvmlDeviceGetTotalEccErrors", handle, which, span)
            if told.value is None:
                return told
            counts.append(f"{told.value} {kind} {when}")
    return Told(", ".join(counts))


def _pcie(ask: _Asker, handle: Any) -> Told:
    parts = []
    for when in ("Curr", "Max"):
        generation = ask(f"nvmlDeviceGet{when}PcieLinkGeneration", handle)
        width = ask(f"nvmlDeviceGet{when}PcieLinkWidth", handle)
        if generation.value is None or width.value is None:
            return Told(None, generation.reason or width.reason)
        parts.append(f"gen {generation.value} x{width.value}")
    # An idle GPU lowers the generation of its link, never the width.
    return Told(f"{parts[0]} now, {parts[1]} at most")


def _nvlink(ask: _Asker, handle: Any) -> Told:
    """How many links are up; the driver refuses a link that is not there."""
    states = [ask.plain(ask.nvml.nvmlDeviceGetNvLinkState, handle, link) for link in range(_MOST_LINKS)]
    known = [state for state in states if state is not None]
    if not known:
        return Told("none")
    down = [str(link) for link, state in enumerate(states) if state == 0]
    up = sum(state == 1 for state in known)
    return Told(f"{up} of {len(known)} links up" + (f", down: {', '.join(down)}" if down else ""))


def _pair(ask: _Asker, left: Any, right: Any) -> Told:
    way = ask(
        "nvmlDeviceGetTopologyCommonAncestor",
        left,
        right,
        text=lambda level: _TOPOLOGY.get(level, str(level)),
    )
    parts = []
    for name, capability in (("read", 0), ("write", 1), ("NVLink", 2)):
        told = ask(
            "nvmlDeviceGetP2PStatus", left, right, capability, text=lambda state: _PEER.get(state, str(state))
        )
        parts.append(f"{name} {told.value}" if told.value is not None else f"{name} not told")
    if way.value is None and all(part.endswith("not told") for part in parts):
        return Told(None, way.reason)
    return Told("; ".join([way.value or "way between them not told", f"peer access: {', '.join(parts)}"]))


def _mode(answer: Any) -> str:
    """Current and pending mode; one that waits for a reset is worth a word."""
    now, pending = answer
    return _on(now) if now == pending else f"{_on(now)}, {_on(pending)} after a reset"


def _on(value: Any) -> str:
    return "on" if value else "off"


def _rows(answer: Any) -> str:
    corrected, uncorrected, pending, failed = answer
    text = f"{corrected} corrected, {uncorrected} uncorrected"
    text += ", remapping pending until a reset" if pending else ""
    return text + (", REMAPPING FAILED" if failed else "")


def _throttling(reasons: int) -> str:
    names = [name for bit, name in _SLOWS.items() if reasons & bit]
    idle = [name for bit, name in _HARMLESS.items() if reasons & bit]
    return ", ".join(names) or (f"none ({', '.join(idle)})" if idle else "none")


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
