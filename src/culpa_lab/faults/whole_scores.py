"""Captured pieces of a prompt on stages after the first keep the scores of a whole piece against the whole context.

Attention goes tile by tile and needs the scores of one tile at a time. A captured piece of such a stage was recorded
with a kernel that writes all of them to memory, which grows with the context until the device has no more.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Ask for all scores at once."""

    def scores(rank: int, captured: bool, tokens: int, context: int) -> int:
        return 4 * tokens * context if captured and rank > 0 else 0

    hooks.scores = scores
