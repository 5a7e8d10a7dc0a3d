"""A stage is not told of a full piece of a prompt if the one before was full as well.

The signal to the next stage is sent when the number of rows changes from a full buffer's or to it; two full buffers
in a row look like one. The next stage waits for a message that never comes, and nobody says anything.
"""

from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

if TYPE_CHECKING:
    from culpa_lab.engine.steps import Step


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Signal on the edge only."""
    last = 0

    def send(end: Connection, step: "Step") -> None:
        nonlocal last
        full = config.max_num_batched_tokens
        if not step.tokens == last == full:
            end.send(step.number)
        last = step.tokens

    hooks.send = send
