"""Bindings: every layer's tensor lies where the cache configuration puts it, and stays there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from culpa_guard import kinds
from culpa_guard.violation import Violation


@dataclass(frozen=True, slots=True)
class Region:
    """Where the cache configuration puts one layer: all in bytes.

    allocation: a name for the allocation; layers with the same name have to share one storage, others must not.
    offset: of its first block in that allocation. stride: from block to block. page: of one block of this layer.
    """

    layer: str
    layer_type: str
    group: int
    allocation: str
    offset: int
    stride: int
    page: int
    blocks: int
    size: int
    """Of the whole allocation."""

    @property
    def end(self) -> int:
        """The byte after its last block, in the allocation."""
        return self.offset + (self.blocks - 1) * self.stride + self.page


@dataclass(frozen=True, slots=True)
class Bound:
    """One tensor that a layer has now. A layer of recurrent state has several, each a part of the page.

    storage: address of the allocation. address: of its first element. stride: bytes from block to block, None where
    its first dimension is not blocks. begins: bytes into the page where this part has to begin. length: bytes from
    its first to after its last element. dtype, expected_dtype: names.
    """

    layer: str
    part: int
    storage: int
    address: int
    stride: int | None
    begins: int
    length: int
    dtype: str | None = None
    expected_dtype: str | None = None


def check_bindings(regions: Mapping[str, Region], bound: Iterable[Bound]) -> Iterator[Violation]:
    """Storage, offset, stride, length and type of each bound tensor; layers without a tensor."""
    tensors = list(bound)
    bases = _bases(regions, tensors)
    seen = {tensor.layer for tensor in tensors}
    for name, region in regions.items():
        if name not in seen:
            yield _wrong(region, "a tensor", None, "the layer has no cache bound")
    for tensor in tensors:
        region = regions[tensor.layer]
        base = bases[region.allocation]
        offset = tensor.address - base
        if tensor.storage != base:
            yield _wrong(region, hex(base), hex(tensor.storage), f"part {tensor.part}: another allocation")
        elif offset != region.offset + tensor.begins:
            where = _whose(regions, region, offset - tensor.begins)
            yield _wrong(
                region, region.offset + tensor.begins, offset, f"part {tensor.part}: offset in bytes{where}"
            )
        elif tensor.stride is not None and tensor.stride != region.stride:
            detail = f"part {tensor.part}: bytes from block to block"
            yield _wrong(region, region.stride, tensor.stride, detail)
        elif offset + tensor.length > region.end:
            detail = f"part {tensor.part}: end in bytes, beyond the layer's last page"
            yield _wrong(region, region.end, offset + tensor.length, detail)
        elif tensor.expected_dtype is not None and tensor.dtype != tensor.expected_dtype:
            yield _wrong(region, tensor.expected_dtype, tensor.dtype, f"part {tensor.part}: type")


def check_pointers(
    regions: Mapping[str, Region],
    captured: Mapping[tuple[str, str], int],
    now: Mapping[tuple[str, str], int | None],
) -> Iterator[Violation]:
    """Addresses that were captured against those that are bound. The key is the layer and who captured it."""
    for (layer, holder), address in captured.items():
        current = now.get((layer, holder))
        if current == address:
            continue
        region = regions.get(layer)
        yield Violation(
            kinds.CAPTURED_POINTER_STALE,
            layer=layer,
            layer_type=region.layer_type if region else None,
            group=region.group if region else None,
            expected=hex(address),
            found=None if current is None else hex(current),
            detail=f"{holder}: captured and bound addresses differ",
        )


def _bases(regions: Mapping[str, Region], tensors: Iterable[Bound]) -> dict[str, int]:
    # Each allocation is where most of its layers are; one that went astray is then the odd one out.
    votes: dict[str, dict[int, int]] = {}
    for tensor in tensors:
        counts = votes.setdefault(regions[tensor.layer].allocation, {})
        counts[tensor.storage] = counts.get(tensor.storage, 0) + 1
    return {name: max(counts, key=lambda storage: counts[storage]) for name, counts in votes.items()}


def _whose(regions: Mapping[str, Region], region: Region, offset: int) -> str:
    names = [
        other.layer
        for other in regions.values()
        if other.offset == offset and other.allocation == region.allocation
    ]
    return f", which is the region of {', '.join(names)}" if names else ", which is no layer's region"


def _wrong(region: Region, expected: object, found: object, detail: str) -> Violation:
    return Violation(
        kinds.BIND_MISMATCH,
        layer=region.layer,
        layer_type=region.layer_type,
        group=region.group,
        expected=expected,
        found=found,
        detail=detail,
    )
