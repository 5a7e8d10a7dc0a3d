"""What a stage was given for one step, as plain numbers. An engine's adapter fills this in; the checks read it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupView:
    """The metadata of the layers that share one metadata object, in one step.

    Every sequence may be a list, an array or a memoryview: they are indexed, sliced and compared, never changed.
    None means that the engine does not have it, or that it can't be read here.
    """

    group: int
    """The cache group that these layers belong to."""
    layers: tuple[str, ...]
    layer_type: str
    table: Sequence[Sequence[int]] | None = None
    """A row for each request in batch order, in kernel blocks: `Group.ratio` to a scheduler's block."""
    slots: Sequence[int] | None = None
    """For each token of the step the slot that its keys and values go to."""
    states: Sequence[int] | None = None
    """For each request in batch order the block that holds its recurrent state."""
    has_initial: Sequence[bool] | None = None
    """For each request in batch order whether the state is read before it is written."""
    identity: int = 0
    """The same number for the same object: two groups must not have it in common."""
    buffers: tuple[tuple[str, int], ...] = ()
    """Name and address of those index buffers that have to be the group's own."""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of one stage."""

    requests: tuple[str, ...]
    """Request ids in batch order."""
    lengths: tuple[int, ...]
    """Tokens of each request in this step, in batch order."""
    groups: tuple[GroupView, ...]
