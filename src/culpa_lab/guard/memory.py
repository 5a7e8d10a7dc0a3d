"""The cache memory of a stage: where each layer's pages lie, and what is in them."""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from culpa_guard import kinds
from culpa_guard.checks.bindings import Bound, Region, check_bindings
from culpa_guard.violation import Violation
from culpa_lab.engine.arena import Arena
from culpa_lab.engine.cache_groups import FULL, CacheGroup, stage_width
from culpa_lab.engine.planning import page_floats, state_page_floats
from culpa_lab.engine.steps import Step
from culpa_lab.guard.mirror import BlockMirror
from culpa_lab.model import ModelConfig

ALLOCATION = "cache"
_ZONE_PATTERN = np.float32(-1.5e30)


def layer_name(number: int, kind: str) -> str:
    """A layer as vLLM names it."""
    return f"model.layers.{number}.{'self_attn' if kind == FULL else 'linear_attn'}"


def regions(
    model: ModelConfig, groups: Sequence[CacheGroup], layers: tuple[int, int], block_size: int, blocks: int
) -> dict[str, Region]:
    """Where the plan puts each layer of a stage, worked out from the model alone."""
    width = stage_width(groups, *layers)
    page = 4 * page_floats(model, block_size)
    state = 4 * state_page_floats(model)
    found = {}
    for number, group in enumerate(groups):
        for place, layer in enumerate(group.on(*layers)):
            name = layer_name(layer, group.kind)
            found[name] = Region(
                name, group.kind, number, ALLOCATION, place * page, width * page,
                page if group.kind == FULL else state, blocks, blocks * width * page,
            )  # fmt: skip
    return found


class MemoryChecks:
    """Checks of one stage's memory. `mirror` tells whose pages are whose."""

    def __init__(
        self,
        model: ModelConfig,
        groups: Sequence[CacheGroup],
        layers: tuple[int, int],
        arena: Arena,
        mirror: BlockMirror,
    ) -> None:
        self._regions = regions(model, groups, layers, arena.block_size, arena.blocks)
        self._groups = groups
        self._layers = layers
        self._arena = arena
        self._mirror = mirror
        self._next = 0
        self._sums: dict[int, int] = {}
        self._kept: dict[int, int] = {}
        arena.red_zone[...] = _ZONE_PATTERN

    def bindings(self) -> Iterator[Violation]:
        """Every layer's pages against the plan."""
        return check_bindings(self._regions, self._bound())

    def red_zone(self) -> Iterator[Violation]:
        """What lies behind the cache's last page."""
        changed = self._arena.red_zone != _ZONE_PATTERN
        if changed.any():
            at = int(np.argmax(changed))
            yield Violation(
                kinds.RED_ZONE_CHANGED, index=4 * at, expected=str(_ZONE_PATTERN),
                found=str(self._arena.red_zone[at]), detail="bytes behind the end of the cache",
            )  # fmt: skip
            self._arena.red_zone[...] = _ZONE_PATTERN

    def finite(self, step: Step) -> Iterator[Violation]:
        """The states that a step has left in their blocks."""
        for segment in step.segments:
            for number, place in self._mirror.gdn_here:
                run = segment.states[number].run
                pages = self._arena.states(number)[run]
                with np.errstate(all="ignore"):
                    if np.isfinite(pages.sum()):
                        continue
                bad = ~np.isfinite(pages).all(axis=1)
                if not bad.any():
                    continue  # the sum of finite numbers was too large
                at = int(np.argmax(bad))
                value = pages[at][~np.isfinite(pages[at])][0]
                yield Violation(
                    kinds.STATE_NOT_FINITE,
                    layer=layer_name(self._arena.gdn[number][at], place.layer_type),
                    layer_type=place.layer_type, group=place.group, request=segment.request, block=run,
                    index=int(np.argmin(np.isfinite(pages[at]))), expected="finite numbers", found=str(value),
                    detail=f"in {int(bad.sum())} of {len(bad)} layers of the group, after "
                    f"{segment.start + segment.count} tokens",
                )  # fmt: skip

    # -- contents of pages --------------------------------------------------------------------------------------

    def sum_of(self, block: int) -> int:
        """A checksum of a block's bytes."""
        return checksum(self._arena.memory[block])

    def remember(self, written: set[int], count: int) -> None:
        """Before a step: checksums of the next blocks in turn that the step is not to write."""
        self._sums = {}
        for _ in range(self._arena.blocks):
            if len(self._sums) >= count:
                return
            self._next = self._next % (self._arena.blocks - 1) + 1
            if self._next not in written:
                self._sums[self._next] = self.sum_of(self._next)

    @property
    def watched(self) -> tuple[int, ...]:
        """The blocks whose checksums are held during this step."""
        return tuple(self._sums)

    def unchanged(self) -> Iterator[Violation]:
        """After it: whether they are what they were."""
        for block, before in self._sums.items():
            after = self.sum_of(block)
            if after != before:
                yield Violation(
                    kinds.PAGE_CHANGED_WITHOUT_WRITE, block=block, expected=hex(before), found=hex(after),
                    detail="no request of this step was to write the block",
                )  # fmt: skip

    def forget(self, step: Step) -> None:
        """After a step: what it wrote over is not what was stored there."""
        self._sums = {}
        for block in self._mirror.written(step):
            self._kept.pop(block, None)

    def stored(self, step: Step) -> None:
        """After a step: checksums of the states that it has kept for the prefix cache, none of what it wrote over."""
        self.forget(step)
        for segment in step.segments:
            for number, row in enumerate(segment.states):
                if row.save and self._arena.gdn[number]:
                    self._kept[row.save] = checksum(self._arena.states(number)[row.save])

    def restored(self, step: Step) -> Iterator[Violation]:
        """Before a step: whether the states that it restores are still those that were stored."""
        for segment in step.segments:
            for number, place in self._mirror.gdn_here:
                row = segment.states[number]
                before = self._kept.get(row.source)
                if before is None or row.source == row.run:
                    continue
                after = checksum(self._arena.states(number)[row.source])
                if after != before:
                    yield self._mirror.wrong(
                        kinds.PREFIX_STATE_MISMATCH, place, segment, block=row.source, index=segment.slot,
                        expected=hex(before), found=hex(after), detail="the state changed since it was stored",
                    )  # fmt: skip

    # -- helpers ------------------------------------------------------------------------------------------------

    def _bound(self) -> Iterator[Bound]:
        base = self._arena.memory.ctypes.data
        for number, layers in enumerate(self._arena.gdn):
            for place, layer in enumerate(layers):
                view = self._arena.states(number)[:, place]
                yield self._tensor(layer_name(layer, "linear_attention"), base, view)
        for layers in self._arena.full:
            for layer in layers:
                view = self._arena.keys_and_values(layer)
                yield self._tensor(layer_name(layer, FULL), base, view)

    def _tensor(self, name: str, base: int, view: npt.NDArray[np.float32]) -> Bound:
        last = sum((size - 1) * step for size, step in zip(view.shape, view.strides, strict=True))
        return Bound(
            name,
            0,
            base,
            view.ctypes.data,
            view.strides[0],
            0,
            last + view.itemsize,
            str(view.dtype),
            "float32",
        )


def checksum(array: npt.NDArray[np.float32]) -> int:
    """CRC-32 of an array's bytes."""
    return zlib.crc32(np.ascontiguousarray(array).data)
