"""Decode steps on a stage: one token of each request, eager or as captured steps of fixed batch sizes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.arena import Arena
from culpa_lab.engine.device import Device
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.paging import PagedCache, TableRow
from culpa_lab.engine.steps import Segment
from culpa_lab.engine.watch import StageWatch
from culpa_lab.model import GdnState, LayerWeights, Rotary, RotaryTables, Tape, Workspace, decode_layer

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


class BatchInputs:
    """The inputs of a decode step for `size` rows: block tables, positions, state blocks and hidden states."""

    def __init__(self, size: int, arena: Arena, rotary: Rotary, max_blocks: int, hidden: int) -> None:
        self.size = size
        self.rows = [[TableRow(np.zeros(max_blocks, np.int64)) for _ in range(size)] for _ in arena.full]
        self.states: list[Indices] = [np.zeros(size, np.int64) for _ in arena.gdn]
        self.positions: Indices = np.zeros(size, np.int64)
        self.rope: RotaryTables = rotary.empty(size)
        self.hidden: Array = np.zeros((size, hidden), np.float32)

    def copy_in(self, segments: Sequence[Segment]) -> None:
        """Set the rows to those of segments; the rest is padding, which works on the null block."""
        for i in range(self.size):
            if i < len(segments):
                segment = segments[i]
                self.positions[i] = segment.start
                for rows, table in zip(self.rows, segment.kv, strict=True):
                    rows[i].table[: len(table)] = table
                    rows[i].start = segment.start
                for states, row in zip(self.states, segment.states, strict=True):
                    states[i] = row.run
            else:
                self.positions[i] = 0
                for rows in self.rows:
                    rows[i].start = -1
                for states in self.states:
                    states[i] = 0


class Decode:
    """All layers of a stage on one token of each of N requests.

    Eager execution makes inputs, caches and scratch anew at every step and calls layer by layer. A captured step is
    a tape of kernels with all buffers bound; replay copies inputs in, runs the tape, and copies hidden states out.
    """

    def __init__(
        self,
        layers: list[LayerWeights],
        arena: Arena,
        device: Device,
        rotary: Rotary,
        hooks: Hooks,
        max_blocks: int,
        hidden: int,
        watch: StageWatch | None = None,
    ) -> None:
        self._watch = watch
        self._layers = layers
        self._arena = arena
        self._device = device
        self._rotary = rotary
        self._hooks = hooks
        self._max_blocks = max_blocks
        self._hidden = hidden
        self._workspace = Workspace()
        self._captured: dict[int, tuple[BatchInputs, Tape]] = {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch sizes that are captured, ascending."""
        return tuple(sorted(self._captured))

    def run(self, segments: Sequence[Segment], x: Array) -> None:
        """`x` [N, hidden] is the residual stream, in place."""
        size = self._hooks.bucket(self.sizes, len(segments)) if self._captured else None
        if size is None:
            self._run_eager(segments, x)
            return
        inputs, tape = self._captured[size]
        inputs.copy_in(segments[:size])
        self._own_states(inputs, captured=True)
        if self._watch is not None:
            self._watch.decoding(segments, inputs, captured=True)
        inputs.hidden[: len(segments)] = x[:size]
        tape.replay()
        x[:size] = inputs.hidden[: len(segments)]

    def capture(self, size: int) -> None:
        """Capture the step for a batch size."""
        inputs = self._inputs(size)
        tape = Tape()
        # Scratch of its own: another captured step may not move what this tape has bound.
        workspace = Workspace()
        tape(self._rotary.fill, inputs.positions, inputs.rope)
        staged = []
        for group, layers in enumerate(self._arena.gdn):
            pages = self._arena.states(group)
            # One contiguous page a layer, so that the layer's arrays are views.
            buffer = np.zeros((len(layers), size, pages.shape[2]), np.float32)
            staged.append(buffer)
            if layers:
                tape(_gather, self._device, pages, inputs.states[group], buffer)
        for weights in self._layers:
            decode_layer(
                inputs.hidden,
                weights,
                self._bound(weights.number, inputs, staged),
                inputs.rope,
                workspace,
                tape,
            )
        for group, layers in enumerate(self._arena.gdn):
            if layers:
                tape(_scatter, self._device, self._arena.states(group), inputs.states[group], staged[group])
        self._captured[size] = inputs, tape

    def _run_eager(self, segments: Sequence[Segment], x: Array) -> None:
        inputs = self._inputs(len(segments))
        inputs.copy_in(segments)
        self._own_states(inputs, captured=False)
        if self._watch is not None:
            self._watch.decoding(segments, inputs, captured=False)
        self._rotary.fill(inputs.positions, inputs.rope)
        for weights in self._layers:
            states = self._states_of(weights.number)
            if states is None:
                decode_layer(x, weights, self._caches(weights.number, inputs), inputs.rope, Workspace())
                continue
            group, pages = states
            staged = np.empty((1, inputs.size, pages.shape[2]), np.float32)
            _gather(self._device, pages, inputs.states[group], staged)
            cache = GdnState(*self._arena.split(staged[0]))
            decode_layer(x, weights, cache, inputs.rope, Workspace())
            _scatter(self._device, pages, inputs.states[group], staged)

    def _inputs(self, size: int) -> BatchInputs:
        return BatchInputs(size, self._arena, self._rotary, self._max_blocks, self._hidden)

    def _own_states(self, inputs: BatchInputs, *, captured: bool) -> None:
        for own, found in zip(inputs.states, self._hooks.state_rows(captured, inputs.states), strict=True):
            if own is not found:
                own[...] = found

    def _bound(self, number: int, inputs: BatchInputs, staged: list[Array]) -> GdnState | list[PagedCache]:
        """What a captured layer holds of the cache: the staged states of its group, or its requests' pages."""
        for group, layers in enumerate(self._arena.gdn):
            if number in layers:
                return GdnState(*self._arena.split(staged[group][layers.index(number)]))
        return self._caches(number, inputs)

    def _states_of(self, number: int) -> tuple[int, Array] | None:
        """A GDN layer's group and its part [block, 1, floats] of the group's pages; None for full attention."""
        for group, layers in enumerate(self._arena.gdn):
            if number in layers:
                place = layers.index(number)
                return group, self._arena.states(group)[:, place : place + 1]
        return None

    def _caches(self, number: int, inputs: BatchInputs) -> list[PagedCache]:
        group = next(i for i, layers in enumerate(self._arena.full) if number in layers)
        pages = self._arena.keys_and_values(number)
        return [PagedCache(self._device, pages, row) for row in inputs.rows[group]]


def _gather(device: Device, pages: Array, blocks: Indices, out: Array) -> None:
    """States [block, place, floats] of some blocks into [place, row, floats]."""
    device.touch_all(blocks)
    for row, block in enumerate(blocks.tolist()):
        out[:, row] = pages[block]


def _scatter(device: Device, pages: Array, blocks: Indices, states: Array) -> None:
    """The other way round."""
    device.touch_all(blocks, "WRITE")
    for row, block in enumerate(blocks.tolist()):
        pages[block] = states[:, row]
