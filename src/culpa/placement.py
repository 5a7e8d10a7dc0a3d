"""On which GPU the rank that failed first was running, where that can be told at all."""

import re
from collections.abc import Mapping

from culpa.host import Machine, visible_gpus

_PART = re.compile(r"(DP|PP|TP)(\d+)")


def gpu_of_rank(
    rank: str, sizes: Mapping[str, str], machine: Machine, environment: Mapping[str, str]
) -> str | None:
    """A sentence that names the GPU of a rank such as `PP1` or `PP0_TP1`, or None where the evidence is too thin.

    Ranks of one machine take the visible GPUs in order, tensor-parallel ranks innermost. `sizes` are the levels
    of `pipeline_parallel_size` and `tensor_parallel_size`. CUDA may count GPUs of different models in another
    order than NVML: nothing is said then.
    """
    parts = {name: int(number) for name, number in _PART.findall(rank)}
    if not parts or "DP" in parts:
        return None
    tensor = _size(sizes, "tensor_parallel_size")
    pipeline = _size(sizes, "pipeline_parallel_size")
    if ("TP" not in parts and tensor > 1) or ("PP" not in parts and pipeline > 1):
        return None
    gpus = visible_gpus(machine.gpus, environment.get("CUDA_VISIBLE_DEVICES"))
    place = parts.get("PP", 0) * tensor + parts.get("TP", 0)
    if place >= len(gpus) or len({gpu.name for gpu in machine.gpus}) > 1:
        return None
    gpu = gpus[place]
    return (
        f"{rank} ran on {gpu.describe()} at {gpu.pci_bus}, by the order in which ranks take the visible GPUs"
    )


def _size(sizes: Mapping[str, str], name: str) -> int:
    text = sizes.get(name, "1")
    return int(text) if text.isdecimal() and int(text) > 0 else 1
