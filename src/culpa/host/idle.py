"""Whether the GPUs are idle, which they must be before a trial and again after it."""

import asyncio

from culpa.host.gpus import Gpu, gpu_memory_used, gpu_processes
from culpa.host.machine import Machine
from culpa.host.tree import facts_of_pid

_BUSY_BYTES = 1 << 30  # memory that nobody owns up to, beyond which a GPU counts as busy all the same
_BUSY_PROCESS_BYTES = 64 << 20  # what a process must hold to count: display servers hold a little
_SETTLE_SECONDS = 0.1


def visible_gpus(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    """The GPUs that a launch can use, given the value of its CUDA_VISIBLE_DEVICES (None: not set).

    Numbers count in NVML's order; that is also CUDA's where all GPUs are of one kind. Where they are not,
    CUDA counts the fastest first, and numbers select all GPUs rather than perhaps the wrong ones. An entry
    that names no GPU ends the list, as it does for CUDA; a MIG slice counts as none.
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


def busy_gpus(machine: Machine, visible: str | None = None) -> list[str]:
    """Which GPUs are in use and by whom, one sentence each; empty if all are idle.

    `visible` is the CUDA_VISIBLE_DEVICES of the launch: other GPUs may be as busy as they like.
    """
    gpus = visible_gpus(machine.gpus, visible)
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


async def wait_until_idle(machine: Machine, visible: str | None = None, patience: float = 10.0) -> list[str]:
    """Wait until the GPUs of a launch are idle, at most `patience` seconds.

    The driver gives memory back a little after a process is gone. Returns what `busy_gpus` says at the end:
    empty if they are idle.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience
    while (busy := busy_gpus(machine, visible)) and loop.time() < deadline:  # noqa: ASYNC110 (NVML has nothing to wait on)
        await asyncio.sleep(_SETTLE_SECONDS)
    return busy


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
