"""A worker's cache configuration: its groups, and where in the allocation each layer has to be."""

from collections.abc import Sequence
from typing import Any

from culpa_guard.checks import Region
from culpa_guard.mirror import ATTENTION, OTHER, STATE, WINDOW, Group

_KINDS = {
    "FullAttentionSpec": ATTENTION,
    "MLAAttentionSpec": ATTENTION,
    "SlidingWindowSpec": WINDOW,
    "MambaSpec": STATE,
}


def read_groups(config: Any, kernel_sizes: Sequence[int] | None) -> tuple[Group, ...]:
    """The cache groups. A kind that is not known is `other`, of which nothing is checked.

    kernel_sizes: tokens per kernel block for each group, None where the runner doesn't say; then attention groups
    are `other`, too.
    """
    groups = []
    for index, given in enumerate(config.kv_cache_groups):
        spec = layer_spec(given)
        kind = _KINDS.get(type(spec).__name__, OTHER)
        size = int(spec.block_size)
        if kind in (ATTENTION, WINDOW) and (
            kernel_sizes is None or index >= len(kernel_sizes) or not _is_plain(spec)
        ):
            kind = OTHER
        attention = kind in (ATTENTION, WINDOW)
        ratio = size // int(kernel_sizes[index]) if attention and kernel_sizes is not None else 1
        mode = str(getattr(spec, "mamba_cache_mode", "none"))
        if kind == STATE and mode not in ("none", "align"):
            kind = OTHER
        groups.append(
            Group(
                index,
                kind,
                tuple(given.layer_names),
                size,
                ratio,
                mode,
                int(getattr(spec, "sliding_window", 0) or 0) if kind == WINDOW else 0,
                int(getattr(spec, "num_speculative_blocks", 0) or 0),
            )
        )
    return tuple(groups)


def left_out_groups(config: Any, groups: Sequence[Group]) -> list[tuple[str, str]]:
    """The groups of which nothing is checked, as checks that are left out."""
    return [
        (f"group_{group.index}", f"its cache is not one that is known: {type(layer_spec(given)).__name__}")
        for group, given in zip(groups, config.kv_cache_groups, strict=True)
        if group.kind == OTHER
    ]


def layer_spec(group: Any, layer: str | None = None) -> Any:
    """The specification of one layer of a group; of its first one without a name."""
    spec = group.kv_cache_spec
    each = getattr(spec, "kv_cache_specs", None)
    if isinstance(each, dict) and each:
        return each.get(layer) or next(iter(each.values()))
    return spec


def layer_type(spec: Any) -> str:
    """What a layer keeps: the name of its recurrence, or the kind of attention."""
    recurrence = getattr(spec, "mamba_type", None)
    if recurrence is not None:
        return str(getattr(recurrence, "name", recurrence)).lower()
    return "sliding_attention" if "Sliding" in type(spec).__name__ else "full_attention"


def read_regions(config: Any) -> dict[str, Region]:
    """Where the configuration puts each layer.

    Since 0.30 one allocation holds all layers, at an offset and with a stride each; before, layers with the same
    index in their groups shared an allocation of their own (`shared_by`).

    Raises:
        AttributeError: the configuration is of neither form.
    """
    groups = {
        name: (index, group)
        for index, group in enumerate(config.kv_cache_groups)
        for name in group.layer_names
    }
    regions: dict[str, Region] = {}
    for number, tensor in enumerate(config.kv_cache_tensors):
        shared = getattr(tensor, "shared_by", None)
        for place, name in enumerate(tensor.layers if shared is None else shared):
            if name not in groups:
                continue
            index, group = groups[name]
            spec = layer_spec(group, name)
            if not getattr(spec, "has_layer_views", True):
                continue
            page = int(spec.page_size_bytes)
            packed = int(tensor.block_stride or 0)
            if shared is None:
                offset = int(tensor.offset) + place * int(tensor.layer_stride)
                stride, allocation = packed, "kv"
            else:
                offset = int(tensor.offset) if packed else 0
                stride, allocation = packed or page, "kv" if packed else f"kv{number}"
            blocks = int(config.num_blocks)
            regions[name] = Region(
                name, layer_type(spec), index, allocation, offset, stride, page, blocks, int(tensor.size)
            )
    return regions


def _is_plain(spec: Any) -> bool:
    # Compressed caches hold fewer entries per block than tokens; their slots are not a token's.
    return int(getattr(spec, "storage_block_size", spec.block_size)) == int(spec.block_size)
