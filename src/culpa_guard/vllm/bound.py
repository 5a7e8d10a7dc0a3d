"""The tensors that layers have bound now, and addresses that others have captured."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from culpa_guard.checks import Bound, Region, check_pointers
from culpa_guard.mirror import Group
from culpa_guard.violation import Violation


def tensors_of(layer: Any) -> tuple[Any, ...]:
    """A layer's cache tensors: several for recurrent state, one for attention, none before they are bound."""
    cache = getattr(layer, "kv_cache", None)
    if cache is None:
        return ()
    several = cache if isinstance(cache, (list, tuple)) else (cache,)
    # Before it is bound, a cache is an empty tensor.
    return tuple(tensor for tensor in several if tensor.data_ptr())


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


class Pointers:
    """Addresses as they were when the caches were bound, to be compared with those of now in each step."""

    def __init__(self, runner: Any, layers: Mapping[str, Any], regions: Mapping[str, Region]) -> None:
        self._layers = [layers[name] for name in regions]
        self._names = list(regions)
        self._regions = regions
        self._stale: set[tuple[str | None, str | None]] = set()
        caches = getattr(runner, "kv_caches", None)
        # The runner has a list of its own: one entry a layer, in the order of the layers.
        self._order = sorted(range(len(self._names)), key=lambda place: _number(self._names[place]))
        self._runner = caches if isinstance(caches, list) and len(caches) == len(self._names) else []
        self._captured = self._now()

    @property
    def count(self) -> int:
        """Addresses that are compared."""
        return sum(len(parts) for parts in self._captured) + len(self._runner)

    def check(self) -> Iterator[Violation]:
        """What differs from what was bound, and whose own pointer differs from what is bound. Each is told once."""
        now = self._now()
        held = [_first(cache) for cache in self._runner]
        if now == self._captured and held == [now[place][0] for place in self._order[: len(held)]]:
            return
        captured: dict[tuple[str, str], int] = {}
        current: dict[tuple[str, str], int | None] = {}
        for name, before, after in zip(self._names, self._captured, now, strict=True):
            for part, address in enumerate(before):
                captured[(name, f"part {part} of the bound cache")] = address
                current[(name, f"part {part} of the bound cache")] = (
                    after[part] if part < len(after) else None
                )
        for address, place in zip(held, self._order, strict=False):
            key = (self._names[place], "the runner's list of caches")
            captured[key], current[key] = address, next(iter(now[place]), None)
        for violation in check_pointers(self._regions, captured, current):
            said = (violation.layer, violation.detail)
            if said not in self._stale:
                self._stale.add(said)
                yield violation

    def _now(self) -> list[list[int]]:
        return [[tensor.data_ptr() for tensor in tensors_of(layer)] for layer in self._layers]


def kernel_addresses(
    runner: Any, layers: Mapping[str, Any], groups: Sequence[Group]
) -> tuple[Any, list[tuple[str, int]]]:
    """The addresses that the kernels which copy states captured once, and what should be in them, by layer.

    The first is a tensor on the device, None where there are no such kernels.
    """
    buffers = getattr(runner, "_mamba_bufs", None)
    for context in (
        getattr(getattr(runner, "model_state", None), "_mamba_ctx", None),
        getattr(buffers, "postprocess_align", None),
    ):
        captured = getattr(context, "state_base_addrs", None)
        if context is not None and captured is not None and getattr(context, "is_initialized", True):
            indices = [int(index) for index in context.mamba_group_ids]
            return captured, [
                (name, tensor.data_ptr())
                for index in indices
                for name in groups[index].layers
                if name in layers
                for tensor in tensors_of(layers[name])
            ]
    return None, []


def _first(cache: Any) -> int:
    tensor = cache[0] if isinstance(cache, (list, tuple)) else cache
    return int(tensor.data_ptr())


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
