"""Captured decode steps fill the block indices of all GDN groups from those of the first group.

The metadata of further groups is cloned and its indices are to be gathered anew; for a single request they are, for a
batch the clone keeps the first group's. All groups then work on the same block, over each other.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks, Indices


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Use one group's indices for all."""

    def state_rows(captured: bool, rows: list[Indices]) -> list[Indices]:
        if not captured or not rows or len(rows[0]) == 1:
            return rows
        return [rows[0] for _ in rows]

    hooks.state_rows = state_rows
