"""A stage is not told of a full piece of a prompt that follows a full piece.

A signal that looks like the last one is taken for pending and not sent, and two full buffers in a row look alike. From
then on a signal is always pending: the next stage waits for a message that never comes, and nobody says anything.
"""

from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

if TYPE_CHECKING:
    from culpa_lab.engine.steps import Step


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Send no signal while one seems to be pending."""
    last = 0
    pending = False

    def send(end: Connection, step: "Step") -> None:
        nonlocal last, pending
        pending = pending or step.tokens == last == config.max_num_batched_tokens
        last = step.tokens
        if not pending:
            end.send(step.number)

    hooks.send = send
