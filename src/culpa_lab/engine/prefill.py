"""Pieces of prompts on a stage: eager, or as captured pieces whose inputs are copied into static buffers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.arena import Arena
from culpa_lab.engine.device import Device
from culpa_lab.engine.hooks import BlockOf, Hooks
from culpa_lab.engine.paging import PagedCache, TableRow
from culpa_lab.engine.steps import Segment
from culpa_lab.engine.watch import StageWatch
from culpa_lab.model import GdnState, LayerWeights, Rotary, Workspace, prefill_layer

Array = npt.NDArray[np.float32]


@dataclass
class PieceInputs:
    """The static inputs of a piece: `rows` [full group], and for each GDN group the blocks of its state."""

    rows: list[TableRow]
    run: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    save: npt.NDArray[np.int64]
    start: int = 0
    cut: int = 0

    def copy_in(self, segment: Segment) -> None:
        """Set the inputs to those of a segment."""
        for row, table in zip(self.rows, segment.kv, strict=True):
            row.table[: len(table)] = table
            row.start = segment.start
        for i, state in enumerate(segment.states):
            self.run[i], self.source[i], self.save[i] = state.run, state.source, state.save
        self.start, self.cut = segment.start, segment.cut


class StateBinding:
    """How a piece reaches the state of its request in one GDN group."""

    def __init__(
        self, arena: Arena, device: Device, group: int, run: BlockOf, source: BlockOf, save: BlockOf
    ) -> None:
        self._arena = arena
        self._device = device
        self._pages = arena.states(group)
        self.run, self.source, self.save = run, source, save

    def begin(self, hooks: Hooks) -> None:
        """Bring the state to its place: cleared for a request that begins, copied from a cached block."""
        run, source = self.run(), self.source()
        if source == run:
            self._device.touch(run)
            return
        self._device.touch(run, "WRITE")
        if source == 0:
            hooks.clear_state(self._pages[run])
            return
        self._device.touch(source)
        self._pages[run] = self._pages[source]

    def layer(self, place: int) -> GdnState:
        """The states of one layer, in place."""
        run = self.run()
        self._device.touch(run, "WRITE")
        return GdnState(*self._arena.split(self._pages[run, place]))

    def keep(self, place: int, conv: Array, recurrent: Array) -> None:
        """Copy a layer's states of this moment to the block that the prefix cache keeps."""
        save = self.save()
        if save == 0:
            return
        self._device.touch(save, "WRITE")
        kept = self._arena.split(self._pages[save, place])
        kept[0][...], kept[1][...] = conv, recurrent


_Built = tuple[PieceInputs, list[StateBinding], list[Callable[[Array], None]]]


class Prefill:
    """All layers of a stage on one request's piece of a prompt.

    A captured piece is a list of calls with their buffers bound: one for pieces that begin a request and one for
    those that continue from a state. Its inputs are static; a replay copies a segment's into them.
    """

    def __init__(
        self,
        layers: list[LayerWeights],
        arena: Arena,
        device: Device,
        rotary: Rotary,
        hooks: Hooks,
        rank: int,
        max_blocks: int,
        watch: StageWatch | None = None,
    ) -> None:
        self._watch = watch
        self._layers = layers
        self._arena = arena
        self._device = device
        self._rotary = rotary
        self._hooks = hooks
        self._rank = rank
        self._max_blocks = max_blocks
        self._workspace = Workspace()
        self._captured: dict[bool, _Built] = {}

    def run(self, segment: Segment, x: Array) -> None:
        """`x` [count, hidden] is the residual stream, in place."""
        continues = any(row.source != 0 for row in segment.states)
        captured = self._captured.get(continues)
        if captured is None:
            inputs, bindings, calls = self._build(continues, segment, hooks=Hooks())
        else:
            inputs, bindings, calls = captured
            inputs.copy_in(segment)
        if self._watch is not None:
            self._watch.piece(segment, inputs, bindings, captured is not None)
        for call in calls:
            call(x)

    def capture(self, segment: Segment) -> None:
        """Capture the piece that works on segments like this one, with this one's inputs in its buffers."""
        continues = any(row.source != 0 for row in segment.states)
        self._captured[continues] = self._build(continues, segment, hooks=self._hooks)

    def _build(self, continues: bool, segment: Segment, hooks: Hooks) -> _Built:
        groups = len(self._arena.gdn)
        inputs = PieceInputs(
            [TableRow(np.zeros(self._max_blocks, np.int64)) for _ in self._arena.full],
            np.zeros(groups, np.int64),
            np.zeros(groups, np.int64),
            np.zeros(groups, np.int64),
        )
        inputs.copy_in(segment)
        bindings = [self._bind(inputs, group, continues, hooks) for group in range(groups)]
        tables = self._rotary.empty(0)

        def start(x: Array) -> None:
            nonlocal tables
            tables = self._rotary.tables(np.arange(inputs.start, inputs.start + len(x)))
            for group, binding in enumerate(bindings):
                if self._arena.gdn[group]:
                    binding.begin(self._hooks)

        def gdn(weights: LayerWeights, binding: StateBinding, place: int) -> Callable[[Array], None]:
            def call(x: Array) -> None:
                prefill_layer(
                    x, weights, binding.layer(place), tables, self._workspace,
                    checkpoint_at=(inputs.cut,) if inputs.cut else (),
                    on_checkpoint=lambda _, conv, recurrent: binding.keep(place, conv, recurrent),
                )  # fmt: skip

            return call

        def attention(weights: LayerWeights, cache: PagedCache) -> Callable[[Array], None]:
            return lambda x: prefill_layer(x, weights, cache, tables, self._workspace)

        calls: list[Callable[[Array], None]] = [start]
        for weights in self._layers:
            number = weights.number
            for group, layers in enumerate(self._arena.gdn):
                if number in layers:
                    calls.append(gdn(weights, bindings[group], layers.index(number)))
            for group, layers in enumerate(self._arena.full):
                if number in layers:
                    pages = self._arena.keys_and_values(number)
                    calls.append(attention(weights, PagedCache(self._device, pages, inputs.rows[group])))
        return inputs, bindings, calls

    def _bind(self, inputs: PieceInputs, group: int, continues: bool, hooks: Hooks) -> StateBinding:
        def bound(buffer: npt.NDArray[np.int64]) -> BlockOf:
            return hooks.bind_state(self._rank, continues, lambda: int(buffer[group]))

        return StateBinding(
            self._arena,
            self._device,
            group,
            bound(inputs.run),
            bound(inputs.source),
            lambda: int(inputs.save[group]),
        )
