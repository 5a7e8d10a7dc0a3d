"""How a stage's cache lies in memory: one allocation with strides, or, before 0.30, tensors that layers share.

Follows `get_kv_cache_config_from_groups` (https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/core/kv_cache_utils.py)
for layouts in which a layer's blocks lie together.
"""

from dataclasses import dataclass

from culpa.layout.pages import Entry
from culpa.layout.plan import Plan, Stage


@dataclass(frozen=True, slots=True)
class Placement:
    """Layers of one group in the allocation: layer l's block b begins at offset + l*layer_stride + b*block_stride."""

    entries: tuple[Entry, ...]
    layer_stride: int
    block_stride: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class SharedTensor:
    """One tensor, before 0.30: each of the layers uses blocks of its own in it."""

    shared_by: tuple[Entry, ...]
    size: int


def placements(plan: Plan, stage: Stage) -> tuple[Placement, ...]:
    """Where every group lies on a stage; groups begin at byte 0 and overlay each other. Needs a number of blocks."""
    blocks = plan.num_blocks or 0
    made = []
    for group in plan.groups:
        offset = 0
        for entries in _alike(group.on(stage.layers, stage.index == len(plan.stages) - 1)):
            page = entries[0].page_bytes
            made.append(Placement(entries, page * blocks, page, offset, stage.bytes_per_block * blocks))
            offset += len(entries) * page * blocks
    return tuple(made)


def shared_tensors(plan: Plan, stage: Stage) -> tuple[SharedTensor, ...]:
    """The tensors of a stage as vLLM before 0.30 makes them: one for each place in the widest group."""
    blocks = plan.num_blocks or 0
    here = [group.on(stage.layers, stage.index == len(plan.stages) - 1) for group in plan.groups]
    if len(here) == 1:
        return tuple(SharedTensor((entry,), entry.page_bytes * blocks) for entry in here[0])
    return tuple(
        SharedTensor(
            tuple(entries[place] for entries in here if place < len(entries)), plan.page_bytes * blocks
        )
        for place in range(max((len(entries) for entries in here), default=0))
    )


def _alike(entries: tuple[Entry, ...]) -> list[tuple[Entry, ...]]:
    """Entries with one page each, in the order in which those first appear."""
    found: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        # A window that was promoted to full attention makes no difference to where a layer lies.
        window = None if entry.kind == "full" else entry.window
        key = (entry.kind, entry.block_size, entry.page_bytes, entry.heads, entry.head_dim, window)
        found.setdefault(key, []).append(entry)
    return [tuple(alike) for alike in found.values()]
