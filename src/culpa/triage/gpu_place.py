"""Which GPU a failure belongs to: by the kernel's messages, by process, by rank. None rather than a guess."""

from collections.abc import Sequence

from culpa.model import Gpu
from culpa.triage.context import Context
from culpa.triage.lines import Ranks
from culpa.triage.xid_judgement import JudgedXid
from culpa.triage.xids import Xid

_ON_A_GPU = frozenset(
    {
        "cuda_illegal_access", "cuda_misaligned_address", "cuda_launch_failure", "cublas_error", "cuda_error",
        "gpu_hw_ecc", "gpu_hw_lost", "gsp_timeout", "hang_timeout", "nccl_timeout", "device_side_assert",
    }
)  # fmt: skip


def place_gpu(
    context: Context,
    xids: Sequence[JudgedXid],
    *,
    symptom: str,
    root_line: int | None,
    pids: frozenset[int],
    ranks: Ranks,
    only_tensor_parallel: bool,
) -> Gpu | None:
    """The GPU, or None. `pids` are those of the process that failed first, `ranks` its place.

    Messages of the kernel go before tables, since they name the bus themselves; where both speak and disagree
    nothing is said, unless the kernel's message is the root event itself.
    """
    own = [judged.xid for judged in xids if not judged.stale]
    faults = [judged.xid for judged in xids if not judged.stale and not judged.teardown] or own
    root = next((xid for xid in own if xid.line == root_line), None)
    if root is not None:
        return _gpu(context, root.pci_bus, f"the message in line {root.line} names it")
    if symptom == "gpu_hw_lost" and context.lost_bus is not None:
        return _gpu(context, context.lost_bus, "the driver names it as lost")
    by_table, table_why = _by_tables(context, pids, ranks, only_tensor_parallel=only_tensor_parallel)
    by_kernel, kernel_why = _by_kernel(faults, pids) if symptom in _ON_A_GPU else (None, "")
    if by_kernel is None and symptom in _ON_A_GPU:
        by_kernel, kernel_why = _by_kernel([xid for xid in own if xid.pid in pids], pids)
    if by_kernel is not None and by_table is not None and by_kernel != by_table:
        return None
    if by_kernel is not None:
        return _gpu(context, by_kernel, kernel_why)
    return _gpu(context, by_table, table_why) if by_table is not None else None


def _by_kernel(faults: Sequence[Xid], pids: frozenset[int]) -> tuple[str | None, str]:
    named = [xid for xid in faults if xid.pid is not None and xid.pid in pids]
    buses = {xid.pci_bus for xid in named}
    if len(buses) == 1:
        return named[0].pci_bus, f"Xid {named[0].code} names process {named[0].pid}"
    every = {xid.pci_bus for xid in faults}
    if not named and len(every) == 1:
        return faults[0].pci_bus, "every Xid of that time is on it"
    return None, ""


def _by_tables(
    context: Context, pids: frozenset[int], ranks: Ranks, *, only_tensor_parallel: bool
) -> tuple[str | None, str]:
    found = {bus for pid in pids if (bus := context.gpus.bus_of_pid(pid)) is not None}
    if len(found) == 1:
        return found.pop(), "the table of GPU processes names it"
    if found:
        return None, ""
    pid = next(iter(pids)) if len(pids) == 1 else None
    bus = context.gpus.bus_of_place(ranks, pid, only_tensor_parallel=only_tensor_parallel)
    return bus, "by the place of the rank in the list of GPUs"


def _gpu(context: Context, bus: str, why: str) -> Gpu:
    index, uuid = context.gpus.describe(bus)
    return Gpu(pci_bus=bus, index=index, uuid=uuid, why=why)
