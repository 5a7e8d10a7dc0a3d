"""What somebody who watches a stage or the scheduler is shown. The engine runs the same with and without."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from culpa_lab.engine.arena import Arena
    from culpa_lab.engine.decode import BatchInputs
    from culpa_lab.engine.hand_off import HandOff
    from culpa_lab.engine.prefill import PieceInputs, StateBinding
    from culpa_lab.engine.steps import Segment, Step

Array = npt.NDArray[np.float32]


class StageWatch(Protocol):
    """Called by a stage at the points at which something is bound, given, handed over or done."""

    def allocated(self, arena: "Arena") -> None:
        """The cache is there, and nothing is captured yet."""

    def warmed_up(self, blocks: Sequence[int]) -> None:
        """Warm-up is over; it has written these blocks and given them back."""

    def began(self, step: "Step") -> None:
        """A step as the scheduler sent it, before anything of it is done."""

    def received(self, step: "Step", inputs: Array, hand_off: "HandOff") -> None:
        """Hidden states of a step as they came from the stage before."""

    def piece(
        self, segment: "Segment", inputs: "PieceInputs", bindings: "Sequence[StateBinding]", captured: bool
    ) -> None:
        """What a piece of a prompt will work on, directly before it does."""

    def decoding(self, segments: "Sequence[Segment]", inputs: "BatchInputs", captured: bool) -> None:
        """What a decode step will work on, directly before it does."""

    def sent(self, step: "Step", hidden: Array, hand_off: "HandOff") -> None:
        """Hidden states lie where the next stage will find them; it has not been told yet."""

    def ended(self, step: "Step") -> None:
        """The step is done on this stage."""

    def idle(self) -> None:
        """Nothing is to be done for a moment, or the stage has failed."""


class ScheduleWatch(Protocol):
    """Called by the engine core."""

    def scheduled(self, step: "Step") -> None:
        """A step is about to be sent to the stages."""
