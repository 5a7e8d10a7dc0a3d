"""The tensors that layers have bound now, and addresses that others have captured."""

from collections.abc import Iterator, Mapping
from typing import Any

from culpa_guard.checks import Bound, Region


def tensors_of(layer: Any) -> tuple[Any, ...]:
    """A layer's cache tensors: several for recurrent state, one for attention, none before they are bound."""
    cache = getattr(layer, "kv_cache", None)
    if cache is None:
        return ()
    several = cache if isinstance(cache, (list, tuple)) else (cache,)
    return tuple(tensor for tensor in several if hasattr(tensor, "data_ptr") and tensor.numel())


def read_bound(
    layers: Mapping[str, Any], regions: Mapping[str, Region], specs: Mapping[str, Any]
) -> list[Bound]:
    """Every bound tensor of the layers that have a region."""
    return [
        bound
        for name in regions
        if name in layers
        for bound in _layer(name, layers[name], regions[name], specs[name])
    ]


def addresses(layers: Mapping[str, Any], regions: Mapping[str, Region]) -> dict[tuple[str, str], int]:
    """The address of each part of each layer's cache, to be compared with what it was."""
    return {
        (name, f"part {part} of the bound cache"): tensor.data_ptr()
        for name in regions
        if name in layers
        for part, tensor in enumerate(tensors_of(layers[name]))
    }


def runner_addresses(
    runner: Any, layers: Mapping[str, Any], regions: Mapping[str, Region]
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """What the runner's own list of caches points to, and what is bound now.

    Both are empty where the list isn't one tensor a layer in the order of the layers.
    """
    caches = getattr(runner, "kv_caches", None)
    if not isinstance(caches, list) or len(caches) != len(regions):
        return {}, {}
    held, now = {}, {}
    for name, cache in zip(sorted(regions, key=_number), caches, strict=True):
        bound = tensors_of(layers.get(name))
        first = cache[0] if isinstance(cache, (list, tuple)) else cache
        if not bound or not hasattr(first, "data_ptr"):
            return {}, {}
        held[(name, "the runner's list of caches")] = first.data_ptr()
        now[(name, "the runner's list of caches")] = bound[0].data_ptr()
    return held, now


def _number(layer: str) -> tuple[int, str]:
    numbers = [int(word) for word in layer.split(".") if word.isascii() and word.isdigit()]
    return (numbers[0] if numbers else 0), layer


def _layer(name: str, layer: Any, region: Region, spec: Any) -> Iterator[Bound]:
    expected = _expected_types(spec)
    begins = 0
    for part, tensor in enumerate(tensors_of(layer)):
        size = tensor.element_size()
        dense = 1
        for length in tensor.shape[1:]:
            dense *= length
        # A kernel's view has several blocks to a page; the first one is where the page is.
        per_page = tensor.shape[0] // region.blocks if tensor.shape[0] % region.blocks == 0 else 0
        state = expected is not None
        yield Bound(
            name,
            part,
            tensor.untyped_storage().data_ptr(),
            tensor.data_ptr(),
            tensor.stride(0) * size * per_page if per_page else None,
            begins if state else 0,
            _extent(tensor) * size,
            str(tensor.dtype) if state else None,
            expected[part] if expected is not None and part < len(expected) else None,
        )
        begins += dense * size


def _extent(tensor: Any) -> int:
    """Elements from the first to after the last."""
    reach = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        reach += (int(length) - 1) * int(stride)
    return reach


def _expected_types(spec: Any) -> list[str] | None:
    types = getattr(spec, "dtypes", None)
    return None if types is None else [str(dtype) for dtype in types]
