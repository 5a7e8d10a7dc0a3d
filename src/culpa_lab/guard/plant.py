"""Faults that a self-test plants in the running engine: each changes one thing that the guard should see, once.

`CULPA_GUARD_PLANT=NAME[:key=value...][,NAME...]`: `stage` (the second one, if there are several; of a hand-over the
first), `after` (tokens of a request that
have to be computed before it, 0), `step` (not before this one, 0).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from culpa_guard import Guard, kinds
from culpa_guard.settings import Planted
from culpa_lab.engine.arena import Arena
from culpa_lab.engine.decode import BatchInputs
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.prefill import PieceInputs, StateBinding
from culpa_lab.engine.steps import Segment, Step

FAULTS: dict[str, tuple[str, ...]] = {
    "swap_bindings": (kinds.BIND_MISMATCH,),
    "state_index": (kinds.STATE_INDEX_NOT_SCHEDULED,),
    "state_out_of_range": (kinds.STATE_INDEX_OUT_OF_RANGE,),
    "foreign_state": (kinds.STATE_INDEX_NOT_SCHEDULED, kinds.STATE_INDEX_NOT_UNIQUE),
    "foreign_block": (kinds.BLOCK_NOT_OWNED,),
    "block_out_of_range": (kinds.BLOCK_OUT_OF_RANGE,),
    "slot_offset": (kinds.SLOT_MAPPING_MISMATCH,),
    "shared_metadata": (kinds.METADATA_SHARED_ACROSS_GROUPS,),
    "shared_buffer": (kinds.METADATA_SHARED_ACROSS_GROUPS,),
    "stale_pointer": (kinds.CAPTURED_POINTER_STALE,),
    "handover": (kinds.HANDOVER_MISMATCH,),
    "scribble": (kinds.PAGE_CHANGED_WITHOUT_WRITE,),
    "red_zone": (kinds.RED_ZONE_CHANGED,),
    "nan_state": (kinds.STATE_NOT_FINITE,),
    "not_cleared": (kinds.FREED_STATE_READ,),
    "initial_state": (kinds.INITIAL_STATE_MISMATCH,),
    "stored_state": (kinds.PREFIX_STATE_MISMATCH,),
}
"""Fault to the kinds that name it rightly."""
_OPTIONS = ("stage", "after", "step")


def check_plant(planted: Planted) -> None:
    """Raise BadLaunch for a fault or an option that there is not."""
    if planted.fault not in FAULTS:
        raise BadLaunch(f"CULPA_GUARD_PLANT={planted.fault}: there are {', '.join(FAULTS)}")
    for name, value in planted.options.items():
        if name not in _OPTIONS or not value.isdigit():
            raise BadLaunch(
                f"CULPA_GUARD_PLANT: {name}={value}: there are {', '.join(_OPTIONS)}, whole numbers"
            )


class Plant:
    """One planted fault on one stage. Every method does nothing unless it is its turn; `done` is set once it was."""

    def __init__(self, planted: Planted, guard: Guard, blocks: int, stage: int, stages: int) -> None:
        self._fault = planted.fault
        self._after = int(planted.options.get("after", 0))
        self._first = int(planted.options.get("step", 0))
        usual = 0 if planted.fault == "handover" or stages == 1 else 1
        self._here = int(planted.options.get("stage", usual)) == stage
        self._gdn: list[int] = []  # groups that have layers on this stage
        self._guard = guard
        self._blocks = blocks
        self.done = False

    def allocated(self, arena: Arena) -> None:
        """Two layers of a group change places before anything is bound."""
        self._gdn = [i for i, layers in enumerate(arena.gdn) if layers]
        group = next((i for i in self._gdn if len(arena.gdn[i]) > 1), None)
        if group is not None and self._turn("swap_bindings"):
            first, second, *others = arena.gdn[group]
            arena.gdn[group] = (second, first, *others)
            self._planted(layers=[first, second])

    def piece(
        self, segment: Segment, inputs: PieceInputs, bindings: Sequence[StateBinding], captured: bool
    ) -> None:
        """What a piece of a prompt works on."""
        if segment.start + segment.count <= self._after:
            return
        begins = segment.start == 0
        if inputs.rows:
            self._rows([inputs.rows[0].table], segment)
            if self._turn("slot_offset"):
                inputs.rows[0].start += 1
                self._planted(request=segment.request)
        if not self._gdn:
            return
        first, last = self._gdn[0], self._gdn[-1]
        if self._turn("state_index"):
            inputs.run[last] += 1
        elif self._turn("state_out_of_range"):
            inputs.run[first] += self._blocks
        elif first != last and self._turn("shared_metadata"):
            for indices in (inputs.run, inputs.source, inputs.save):
                indices[last] = indices[first]
        elif begins and self._turn("not_cleared"):
            inputs.source[first] = inputs.run[first]
        elif not begins and self._turn("initial_state"):
            inputs.source[first] = 0
        elif captured and self._turn("stale_pointer"):
            held = bindings[first].run() % (self._blocks - 1) + 1
            bindings[first].run = lambda: held
        else:
            return
        self._planted(request=segment.request)

    def decoding(self, segments: Sequence[Segment], inputs: BatchInputs) -> None:
        """What a decode step works on."""
        if segments[0].start < self._after:
            return
        if inputs.rows:
            self._rows([row.table for row in inputs.rows[0]], segments[0])
        if len(segments) > 1 and self._gdn and self._turn("foreign_state"):
            indices = inputs.states[self._gdn[0]]
            indices[1] = indices[0]
            self._planted(request=segments[1].request)
        elif len(self._gdn) > 1 and self._turn("shared_buffer"):
            inputs.states[self._gdn[-1]] = inputs.states[self._gdn[0]]
            self._planted(request=segments[0].request)

    def sent(self, buffer: npt.NDArray[np.float32]) -> None:
        """Hidden states on their way."""
        if self._turn("handover"):
            buffer[-1, 0] += 1
            self._planted()

    def wrote(self, step: Step, arena: Arena, watched: Sequence[int]) -> None:
        """Memory after a step."""
        if watched and self._turn("scribble"):
            arena.memory[watched[0], 0, 0] = 7.25
            self._planted(block=watched[0])
        elif self._turn("red_zone"):
            arena.red_zone[0] = 7.25
            self._planted()
        elif self._gdn and self._turn("nan_state"):
            group = self._gdn[0]
            arena.states(group)[step.segments[0].states[group].run, 0, 0] = np.nan
            self._planted(request=step.segments[0].request)

    def kept(self, step: Step, arena: Arena) -> None:
        """States that a step has stored for the prefix cache, their checksums already taken."""
        if not self._gdn:
            return
        group = self._gdn[0]
        saves = [one.states[group].save for one in step.segments if one.states[group].save]
        if saves and self._turn("stored_state"):
            # All of them from now on: which one a later prompt restores is not known yet.
            self.done = False
            for block in saves:
                arena.states(group)[block, 0, 0] += 1
            self._planted(blocks=saves)

    def _rows(self, tables: Sequence[npt.NDArray[np.int64]], segment: Segment) -> None:
        if self._turn("foreign_block"):
            tables[0][0] = self._blocks - 1  # the block that the pool gives out last
            self._planted(request=segment.request)
        elif self._turn("block_out_of_range"):
            tables[0][0] = self._blocks
            self._planted(request=segment.request)

    def _turn(self, fault: str) -> bool:
        if self.done or not self._here or fault != self._fault or self._guard.steps < self._first:
            return False
        self.done = True
        return True

    def _planted(self, **fields: object) -> None:
        self._guard.planted(self._fault, expect=list(FAULTS[self._fault]), **fields)
