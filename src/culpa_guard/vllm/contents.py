"""What the cache holds: checksums of pages, states that are restored, numbers that are not finite, padding.

Only on the host, where reading a page needs no device. The budget is in blocks per step (`CULPA_GUARD_PAGES`).
"""

import ctypes
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from culpa_guard import kinds
from culpa_guard.checks import PageWatch, Region, StoredStates
from culpa_guard.checks.contents import Sums
from culpa_guard.mirror import NULL_BLOCK, STATE, Group, Live, Mirror
from culpa_guard.violation import Violation


class Contents:
    """The pages of one stage."""

    def __init__(
        self,
        mirror: Mirror,
        regions: Mapping[str, Region],
        bases: Mapping[str, int],
        used: Mapping[str, int],
        budget: int,
    ) -> None:
        """bases: address of each allocation. used: bytes of a layer's page that its own tensors cover."""
        self.watch = PageWatch(mirror.blocks, budget)
        self.stored = StoredStates()
        self._mirror = mirror
        self._regions = regions
        self._memory = {
            name: _memory(address, max(r.size for r in regions.values() if r.allocation == name))
            for name, address in bases.items()
        }
        self._used = used
        self._places: dict[tuple[str, int], str] = {}
        for name, region in regions.items():
            self._places.setdefault(_place(region), name)
        self._padding: dict[tuple[int, int], tuple[int, Sums]] = {}
        self._turn = 0

    def pages(self) -> Iterator[Violation]:
        """Before a step: pages that no step since has written."""
        written = self._mirror.written_blocks()
        self.watch.forget(written)
        mirror, used = self._mirror, list(self._mirror.granted)
        for found in self.watch.look(
            mirror.step, self.sums, mirror.describe, lambda block: block not in written, used
        ):
            yield self._owned(found)

    def _owned(self, found: Violation) -> Violation:
        """A page's violation with the layer that uses the place, where the block is someone's."""
        assert found.layer is not None
        assert found.block is not None
        region = self._regions[found.layer]
        place = [name for name, one in self._regions.items() if _place(one) == _place(region)]
        detail = f"{found.detail}; the place of {', '.join(place)}"
        for request, group in self._mirror.holders(found.block):
            for name in place:
                if self._regions[name].group == group:
                    kind = self._regions[name].layer_type
                    return replace(
                        found, layer=name, layer_type=kind, group=group, request=request, detail=detail
                    )
        return replace(found, layer_type=region.layer_type, detail=detail)

    def sums(self, block: int) -> Sums:
        """Checksums of one block in every place of the stage, named by the first layer there."""
        return {name: self._sum(self._regions[name], block, 0, None) for name in self._places.values()}

    def hits(self) -> list[tuple[Live, Group, int]]:
        """Before a step: requests that begin with a prefix hit, with the blocks of their restored states."""
        return [
            (live, group, live.rows[group.index][(live.computed - 1) // group.block_size])
            for live in self._mirror.live.values()
            if live.fresh and live.scheduled and live.computed
            for group in self._states()
            if group.mode == "align" and len(live.rows[group.index]) * group.block_size >= live.computed
        ]

    def restored(self, hits: Iterable[tuple[Live, Group, int]]) -> Iterator[Violation]:
        """Whether restored states are those that were stored."""
        for live, group, block in hits:
            if block != NULL_BLOCK:
                sums = self._state_sums(group, block)
                yield from self.stored.restore(group.index, block, live.computed, live.request, sums)

    def after(self) -> None:
        """After a step: remember states that are complete, and forget those that were overwritten."""
        for live, group, block in self._written_states():
            self.stored.forget(group.index, block)
            if group.mode == "align" and live.end % group.block_size == 0:
                self.stored.store(group.index, block, live.end, self._state_sums(group, block))

    def finite(self, layers: Mapping[str, tuple[Any, ...]]) -> Iterator[Violation]:
        """After a step: NaN and infinity in the states just written, of one layer a step in turn."""
        names = [name for group in self._states() for name in group.layers if name in self._regions]
        if not names:
            return
        self._turn = (self._turn + 1) % len(names)
        name = names[self._turn]
        region = self._regions[name]
        for live, group, block in self._written_states():
            if group.index != region.group:
                continue
            for part, tensor in enumerate(layers.get(name, ())):
                state = tensor[block]
                if state.is_floating_point() and not bool(state.isfinite().all()):
                    wrong = int((~state.isfinite()).sum())
                    yield Violation(
                        kinds.STATE_NOT_FINITE,
                        layer=name,
                        layer_type=region.layer_type,
                        group=group.index,
                        request=live.request,
                        block=block,
                        expected="finite numbers",
                        found=f"{wrong} of {state.numel()} are not",
                        detail=f"part {part}, after token {live.end}",
                    )

    def red_zones(self) -> Iterator[Violation]:
        """After a step: the bytes of a state's page that no tensor covers must stay as they were."""
        current: dict[tuple[int, int], tuple[int, Sums]] = {}
        for live, group, block in self._written_states():
            key = (group.index, block)
            sums = {
                name: self._sum(self._regions[name], block, self._used[name], None)
                for name in group.layers
                if name in self._regions and self._used.get(name, 0) < self._regions[name].page
            }
            since, before = self._padding.get(key, (self._mirror.step, sums))
            for name, checksum in before.items():
                if sums.get(name) != checksum:
                    yield Violation(
                        kinds.RED_ZONE_CHANGED,
                        layer=name,
                        layer_type=self._regions[name].layer_type,
                        group=group.index,
                        request=live.request,
                        block=block,
                        index=self._used[name],
                        expected=hex(checksum),
                        found=hex(sums.get(name, 0)),
                        detail=f"the page behind the state changed between steps {since} and {self._mirror.step}",
                    )
            current[key] = (self._mirror.step, sums)
        # A block that was not written in this step may change hands; then its padding is anyone's.
        self._padding = current

    def flip(self, layer: str, block: int) -> None:
        """A planted fault: change a byte of a block in a layer's place, whatever the layer is bound to now."""
        region = self._regions[layer]
        self._memory[region.allocation][region.offset + block * region.stride] ^= 0xFF

    def _states(self) -> Iterable[Group]:
        return (group for group in self._mirror.groups if group.kind == STATE)

    def _written_states(self) -> Iterator[tuple[Live, Group, int]]:
        for live in self._mirror.live.values():
            if live.scheduled:
                for group in self._states():
                    for block in self._mirror.expected_states(live.request, group)[:1]:
                        yield live, group, block

    def _state_sums(self, group: Group, block: int) -> Sums:
        return {
            name: self._sum(self._regions[name], block, 0, self._used.get(name))
            for name in group.layers
            if name in self._regions
        }

    def _sum(self, region: Region, block: int, begin: int, end: int | None) -> int:
        start = region.offset + block * region.stride
        stop = start + (region.page if end is None else end)
        return zlib.crc32(self._memory[region.allocation][start + begin : stop])


def _place(region: Region) -> tuple[str, int]:
    return region.allocation, region.offset


def _memory(address: int, size: int) -> memoryview:
    """An allocation's bytes, without a copy."""
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast("B")
