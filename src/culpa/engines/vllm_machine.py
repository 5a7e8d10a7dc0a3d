"""What this machine leaves to a vLLM launch: visible GPUs, kinds of CPU instructions, memory of a CPU rank."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culpa.host import Gpu, Machine

_NODE = Path("/sys/devices/system/node/node0/meminfo")
_RECLAIMABLE = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
_SPARE = 0.8  # of what is free: ranks hold more than weights and cache, and other programs grow


def visible_gpus(gpus: tuple["Gpu", ...], variable: str | None) -> tuple["Gpu", ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves; of names that are no indices, as many as there are names."""
    if variable is None:
        return gpus
    names = [name.strip() for name in variable.split(",") if name.strip()]
    if not names or names[0] in ("-1", "NoDevFiles"):
        return ()
    if all(name.isdigit() for name in names):
        by_index = {gpu.index: gpu for gpu in gpus}
        return tuple(by_index[int(name)] for name in names if int(name) in by_index)
    return gpus[: len(names)]


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The processor's instruction sets as Linux names them; empty where that can't be read."""
    try:
        text = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(match[1].split()) if match else frozenset()


def memory_share(ranks: int, machine: "Machine", meminfo: Path = _NODE) -> float | None:
    """The share of a memory node that each of the CPU build's ranks can be given here, all on the first node.

    vLLM refuses to start when a rank's share (0.92 unless the launch says otherwise) is not free, and with a
    share it measures what its KV cache may take. None where less than a twentieth is left for each rank.
    """
    amounts = _amounts(meminfo)
    total = min(amounts.get("MemTotal", 0) or machine.memory_bytes, machine.memory_bytes)
    free = min(sum(amounts.get(name, 0) for name in _RECLAIMABLE) or total, total)
    # In steps of a twentieth, so that the same arm is the same command when it is run again later.
    share = int(20 * _SPARE * free / total / ranks) / 20
    return share or None


def _amounts(meminfo: Path) -> dict[str, int]:
    """Bytes by name, of `Node 0 MemTotal:  97421888 kB` or of the same without a node."""
    try:
        text = meminfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    return {name: int(kib) * 1024 for name, kib in re.findall(r"(\S+):\s+(\d+) kB", text)}
