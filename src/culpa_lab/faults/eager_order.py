"""Eager decode of several requests gives each the state block of the one before it.

Batches are gathered with a row for the null block in front, as captured steps have padding behind; eager execution
forgets to skip it. A single request is not gathered.
"""

import numpy as np

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks, Indices


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Shift the rows by one."""

    def state_rows(captured: bool, rows: list[Indices]) -> list[Indices]:
        if captured or not rows or len(rows[0]) == 1:
            return rows
        return [np.concatenate([[0], row[:-1]]) for row in rows]

    hooks.state_rows = state_rows
