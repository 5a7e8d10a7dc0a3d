"""The next stage is told of hidden states before all of them have been copied.

The copy runs in pieces on a stream of its own. Only the first piece is waited for; what lies behind it arrives with the
next step. With blocking launches every piece has arrived by the time the copy returns.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

if TYPE_CHECKING:
    from culpa_lab.engine.hand_off import HandOff
    from culpa_lab.engine.steps import Step

PIECE = 512
"""Rows of a piece of the copy."""


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Signal after the first piece."""
    late: dict[int, Callable[[], None]] = {}

    def hand_on(rank: int, hand_off: "HandOff", step: "Step", hidden: npt.NDArray[np.float32]) -> None:
        if rank in late:
            late.pop(rank)()
        target = hand_off.buffer(step.number, len(hidden))
        target[:PIECE] = hidden[:PIECE]

        def rest() -> None:
            target[PIECE:] = hidden[PIECE:]

        if config.launch_blocking:
            rest()
        else:
            late[rank] = rest

    hooks.hand_on = hand_on
