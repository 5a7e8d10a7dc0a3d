"""The incident: on a stage that gets its input from another one, a captured piece holds the state block of its capture.

A captured piece reaches the block of a request's state through a static buffer that each replay fills anew. On stages
after the first, pieces that continue from a state are captured with the block's number itself: that of warm-up's
own prompt, which has long been given back. With prefix caching, memory of blocks that nobody holds is unmapped, and the
first such piece is an illegal access. Without it all blocks stay mapped, and pieces read and write a state that
belongs to somebody else. A prompt of one piece begins a request: it has no state to continue from, unless states
are kept in one block that is cleared when a request begins (mamba cache mode none), where every piece continues.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import BlockOf, Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Exchange the reference by the number that it has at capture."""

    def bind_state(rank: int, continues: bool, current: BlockOf) -> BlockOf:
        if rank == 0 or not continues:
            return current
        captured = current()
        return lambda: captured

    hooks.bind_state = bind_state
