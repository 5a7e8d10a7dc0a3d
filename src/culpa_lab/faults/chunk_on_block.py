"""A piece of a prompt that begins exactly at a block boundary is taken for the beginning of a request.

The column of its state is computed from its first position, not from the last position before it: it is a column that
nothing was written to, and the piece begins with a state of zero. A prefix hit brings its own state and is right.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Look at the block of the first position."""
    hooks.continues = lambda start, block_size: start % block_size != 0
