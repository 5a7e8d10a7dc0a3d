"""Hybrid cache groups as vLLM plans them: grouped over the whole model, projected on each stage.

Layers of one kind are cut into groups of equal size, and a cache block serves one group: so all kinds of layer
share one pool of blocks of one size. Follows vLLM's `v1/core/kv_cache_utils.py` (0.30 and later).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

GDN = "linear_attention"
FULL = "full_attention"


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers (global indices) that share a block table. `kind` is their layer type."""

    kind: str
    layers: tuple[int, ...]

    def on(self, first: int, last: int) -> tuple[int, ...]:
        """The group's layers within [first, last); may be empty."""
        return tuple(layer for layer in self.layers if first <= layer < last)


def cache_groups(layer_types: Sequence[str]) -> tuple[CacheGroup, ...]:
    """The groups of a model, in the order in which its kinds of layer first appear."""
    kinds = list(dict.fromkeys(layer_types))
    by_kind = {kind: [i for i, one in enumerate(layer_types) if one == kind] for kind in kinds}
    counts = [len(layers) for layers in by_kind.values()]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    groups = []
    for kind, layers in by_kind.items():
        number = ceil(len(layers) / size)
        groups += [CacheGroup(kind, tuple(layers[i::number])) for i in range(number)]
    return tuple(groups)


def stage_width(groups: Sequence[CacheGroup], first: int, last: int) -> int:
    """Layer pages that one block takes on a stage: those of its widest group, since groups share the bytes."""
    return max(len(group.on(first, last)) for group in groups)


def blocks_per_request(groups: Sequence[CacheGroup], tokens: int, block_size: int, mamba_mode: str) -> int:
    """Blocks that one request of so many tokens holds at most."""
    full = sum(group.kind == FULL for group in groups)
    gdn = sum(group.kind == GDN for group in groups)
    return ceil(tokens / block_size) * full + (2 if mamba_mode == "align" else 1) * gdn


def capacity_tokens(
    groups: Sequence[CacheGroup], blocks: int, max_model_len: int, block_size: int, mamba_mode: str
) -> int:
    """Tokens that the cache holds if every request is as long as can be."""
    return blocks * max_model_len // blocks_per_request(groups, max_model_len, block_size, mamba_mode)


def default_partition(layers: int, stages: int) -> tuple[int, ...]:
    """Layers per stage: even, the remainder on the stages before the last, as vLLM's `get_pp_indices`."""
    counts = [layers // stages] * stages
    for i in range(2, layers % stages + 2):
        counts[-i] += 1
    return tuple(counts)
