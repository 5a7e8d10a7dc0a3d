"""A decode batch that is larger than every captured size runs in the largest one.

The right choice is none: such a batch runs eagerly. In the largest size the rows beyond it take no part in the replay:
their hidden states stay what they were, and neither their states nor their caches move on.
"""

from collections.abc import Sequence

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Fall back on the largest size."""

    def bucket(sizes: Sequence[int], batch: int) -> int | None:
        return next((size for size in sizes if size >= batch), sizes[-1])

    hooks.bucket = bucket
