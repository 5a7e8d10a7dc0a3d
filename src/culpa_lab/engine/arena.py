"""The cache memory of one stage: one allocation in which all groups' layers lie over each other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.cache_groups import FULL, GDN, CacheGroup, stage_width
from culpa_lab.engine.device import Device
from culpa_lab.engine.planning import page_floats, state_page_floats
from culpa_lab.model import ModelConfig

Array = npt.NDArray[np.float32]

RED_ZONE = 256
"""Floats behind the cache that belong to nobody."""


class Arena:
    """Pages [block, place, floats]: a block has one page for each layer that its group has on this stage.

    The block with the same number means other layers to another group, but the same bytes: which group owns a
    block is the scheduler's knowledge alone, as in vLLM. Memory is mapped by the block. What is freshly mapped
    holds NaN, so that nothing comes to rely on it.
    """

    def __init__(
        self,
        model: ModelConfig,
        groups: Sequence[CacheGroup],
        layers: tuple[int, int],
        block_size: int,
        blocks: int,
        device: Device,
    ) -> None:
        self.block_size = block_size
        self.blocks = blocks
        self._model = model
        self._device = device
        width = stage_width(groups, *layers)
        floats = page_floats(model, block_size)
        # Zeros are not touched yet: the machine gives memory page by page when it is written.
        allocation: Array = np.zeros(blocks * width * floats + RED_ZONE, np.float32)
        self._memory: Array = allocation[:-RED_ZONE].reshape(blocks, width, floats)
        self.red_zone: Array = allocation[-RED_ZONE:]
        self.gdn = [group.on(*layers) for group in groups if group.kind == GDN]
        self.full = [group.on(*layers) for group in groups if group.kind == FULL]
        self._state_floats = state_page_floats(model) if self.gdn else 0
        device.reserve(blocks, width * floats * 4)
        device.map([0])

    @property
    def memory(self) -> Array:
        """[block, place, floats]: all pages."""
        return self._memory

    def map_all(self) -> None:
        """Map every block, once and for all."""
        self._device.map(range(self.blocks))

    def map(self, blocks: Sequence[int]) -> None:
        """Put fresh memory behind blocks."""
        self._device.map(blocks)
        for block in blocks:
            self._memory[block] = np.nan

    def unmap(self, blocks: Sequence[int]) -> None:
        """Take the memory behind blocks away."""
        self._device.unmap(blocks)

    def keys_and_values(self, layer: int) -> Array:
        """[block, 2, block size, kv heads, head dim] of a full-attention layer: a view."""
        place = next(layers.index(layer) for layers in self.full if layer in layers)
        heads, width = self._model.kv_shape_per_token
        floats = 2 * self.block_size * heads * width
        shape = (self.blocks, 2, self.block_size, heads, width)
        return self._memory[:, place, :floats].reshape(shape)

    def states(self, group: int) -> Array:
        """[block, place, floats] of a GDN group's states: a view; see `split`."""
        return self._memory[:, : len(self.gdn[group]), : self._state_floats]

    def split(self, pages: Array) -> tuple[Array, Array]:
        """The two states in pages [..., floats]: convolution [..., channels, kernel - 1] and recurrent
        [..., value heads, key dim, value dim], views."""
        channels, kernel = self._model.conv_state_shape
        lead = pages.shape[:-1]
        conv = pages[..., : channels * kernel].reshape(*lead, channels, kernel)
        return conv, pages[..., channels * kernel :].reshape(*lead, *self._model.recurrent_state_shape)
