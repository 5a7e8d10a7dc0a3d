"""A captured decode step of exactly four requests has no state block for the fourth.

Four indices are copied as one vector whose last lane is not loaded: it stays at the null block. With three requests the
fourth lane is padding anyway, and from five on the indices are copied by another path.
"""

import numpy as np

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks, Indices


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Leave the last lane out."""

    def state_rows(captured: bool, rows: list[Indices]) -> list[Indices]:
        if not captured or not rows or len(rows[0]) != 4:
            return rows
        loaded = np.array([1, 1, 1, 0], np.int64)
        return [row * loaded for row in rows]

    hooks.state_rows = state_rows
