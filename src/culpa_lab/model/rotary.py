"""Rotary position embedding of the leading dimensions of a head.

Formula: transformers, modeling_qwen3_next.py (compute_default_rope_parameters, rotate_half, apply_rotary_pos_emb).
Text positions are the same on all three axes of Qwen3.5's interleaved variant, which then is the plain one.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from culpa_lab.model.arrays import Array
from culpa_lab.model.config import ModelConfig
from culpa_lab.model.launch import Launch, Workspace, eager

RotaryTables: TypeAlias = tuple[Array, Array]
"""Cosines and sines, each [tokens, 1, rotary dim / 2]: one pair serves all layers of a step."""


class Rotary:
    """Cosines and sines for positions."""

    def __init__(self, config: ModelConfig) -> None:
        steps = np.arange(0, config.rotary_dim, 2, dtype=np.float32) / np.float32(config.rotary_dim)
        # In float32 from here on, as transformers does it: at position 8,192 the rounding of the angle shows.
        self._frequencies = (1 / np.float32(config.rope_theta) ** steps).astype(np.float32)

    def empty(self, tokens: int) -> RotaryTables:
        """Tables for that many tokens, to be filled."""
        shape = (tokens, 1, len(self._frequencies))
        return np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    def tables(self, positions: npt.ArrayLike) -> RotaryTables:
        """New tables for positions counted from 0."""
        where = np.asarray(positions, np.int64)
        made = self.empty(len(where))
        self.fill(where, made)
        return made

    def fill(self, positions: npt.NDArray[np.integer], tables: RotaryTables) -> None:
        """Write the tables of these positions; a kernel for captured steps."""
        angles = positions.astype(np.float32)[:, None, None] * self._frequencies
        np.cos(angles, tables[0])
        np.sin(angles, tables[1])


def rotate(
    heads: Array, rope: RotaryTables, rotary_dim: int, workspace: Workspace, launch: Launch = eager
) -> None:
    """Rotate the first `rotary_dim` dimensions of [tokens, heads, head dim], in place."""
    if rotary_dim == 0:
        return
    cos, sin = rope
    half = rotary_dim // 2
    first, second = heads[..., :half], heads[..., half:rotary_dim]
    swapped = workspace.array("rotary.swapped", 2, *first.shape)
    launch(np.multiply, second, sin, swapped[0])
    launch(np.multiply, first, sin, swapped[1])
    launch(np.multiply, first, cos, first)
    launch(np.multiply, second, cos, second)
    launch(np.subtract, first, swapped[0], first)
    launch(np.add, second, swapped[1], second)
