"""The guard of one stage: what it is shown, checked against the mirror of what the scheduler sent."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from culpa_guard import Guard, Settings
from culpa_guard import Place as ProcessPlace
from culpa_guard.checks.handover import Parcel, check_handover
from culpa_lab.engine.arena import Arena
from culpa_lab.engine.cache_groups import FULL, CacheGroup, cache_groups
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.decode import BatchInputs
from culpa_lab.engine.hand_off import HandOff
from culpa_lab.engine.prefill import PieceInputs, StateBinding
from culpa_lab.engine.steps import Segment, Step
from culpa_lab.guard.given import GivenChecks
from culpa_lab.guard.memory import MemoryChecks, checksum, layer_name
from culpa_lab.guard.mirror import BlockMirror, Place
from culpa_lab.guard.plant import Plant
from culpa_lab.model import ModelConfig

Array = npt.NDArray[np.float32]

CHECKS = (
    "grants", "lineage", "bindings", "pointers", "metadata_sharing", "block_tables", "slot_mappings",
    "state_indices", "handover", "pages", "prefix_states", "finite", "red_zones",
)  # fmt: skip


class StageGuard:
    """Checks of one stage. `guard` counts, writes, and raises in its mode `raise`."""

    def __init__(
        self,
        settings: Settings,
        config: EngineConfig,
        model: ModelConfig,
        rank: int,
        guard: Guard | None = None,
    ) -> None:
        self.guard = guard or Guard(settings, ProcessPlace("culpa-lab", config.version, "worker", rank, rank))
        self._config = config
        self._model = model
        self._rank = rank
        self._layers = config.layers(rank)
        self._groups = cache_groups(model.layer_types)
        self._step: Step | None = None
        self._looks = False
        self._told = 0
        self._known: set[str] = set()

    def allocated(self, arena: Arena) -> None:
        """Make the mirror, and check where every layer's pages lie."""
        settings, config, guard = self.guard.settings, self._config, self.guard
        self._arena = arena
        numbered = list(enumerate(self._groups))
        full = [self._place(number, group) for number, group in numbered if group.kind == FULL]
        gdn = [self._place(number, group) for number, group in numbered if group.kind != FULL]
        self._mirror = BlockMirror(
            full, gdn, arena.blocks, config.block_size, elastic=config.enable_prefix_caching
        )
        self._given = GivenChecks(self._mirror, config.block_size)
        self._memory = MemoryChecks(self._model, self._groups, self._layers, arena, self._mirror)
        self._pages = min(settings.pages, arena.blocks - 1)
        self._plants = [Plant(one, guard, arena.blocks, self._rank, config.stages) for one in settings.plants]
        guard.start(CHECKS, self._left_out())
        for plant in self._plants:
            plant.allocated(arena)
        guard.run("bindings", self._memory.bindings, len(range(*self._layers)))

    def warmed_up(self, blocks: Sequence[int]) -> None:
        """These hold what warm-up left there."""
        self._mirror.dirty(blocks)

    def began(self, step: Step) -> None:
        """Take the step into the mirror; check the schedule itself, and the contents that it relies on."""
        guard = self.guard
        self._step = step
        new = {one.request for one in step.segments} - self._known
        self._known |= new
        self._known.difference_update(step.finished)
        guard.next_step(len(new))
        self._looks = guard.looks
        with self._timed():
            self._mirror.take(step)
        if self._looks:
            count = len(step.segments)
            guard.run("grants", lambda: self._mirror.ownership(step), count)
            guard.run("lineage", lambda: self._mirror.lineage(step), count)
            if self._config.enable_prefix_caching:
                guard.run("prefix_states", lambda: self._memory.restored(step), count)
            if self._pages:
                self._memory.remember(self._mirror.written(step), self._pages)
        with self._timed():
            self._mirror.apply(step)

    def received(self, step: Step, inputs: Array, hand_off: HandOff) -> None:
        """What came from the stage before is what that stage sent."""
        if not self._looks:
            return
        rows, expected = hand_off.signed(step.number)
        place = self._first_layer()
        sent = {"hidden_states": Parcel((rows, inputs.shape[1]), expected)}
        found = {"hidden_states": Parcel(inputs.shape, checksum(inputs))}
        where = f"sent by PP{self._rank - 1}, received by PP{self._rank}"

        self.guard.run(
            "handover",
            lambda: [
                replace(one, layer=place.layer, layer_type=place.layer_type, request=step.segments[0].request)
                for one in check_handover(sent, found, where)
            ],
        )

    def piece(
        self, segment: Segment, inputs: PieceInputs, bindings: Sequence[StateBinding], captured: bool
    ) -> None:
        """A piece of a prompt is about to run."""
        if not self._looks:
            return
        for plant in self._plants:
            plant.piece(segment, inputs, bindings, captured)
        guard, rows = self.guard, [[row] for row in inputs.rows]
        guard.run("block_tables", lambda: self._given.tables([segment], rows))
        guard.run("slot_mappings", lambda: self._given.starts([segment], rows))
        guard.run("state_indices", lambda: self._given.piece(segment, inputs))
        if captured:
            guard.run("pointers", lambda: self._given.captured(segment, inputs, bindings))

    def decoding(self, segments: Sequence[Segment], inputs: BatchInputs, captured: bool) -> None:
        """A decode step is about to run."""
        if not self._looks:
            return
        for plant in self._plants:
            plant.decoding(segments, inputs)
        guard, count = self.guard, len(segments)
        guard.run("block_tables", lambda: self._given.tables(segments, inputs.rows), count)
        guard.run("slot_mappings", lambda: self._given.starts(segments, inputs.rows), count)
        guard.run("state_indices", lambda: self._given.batch(segments, inputs), count)
        guard.run("metadata_sharing", lambda: self._given.sharing(segments, inputs))

    def sent(self, step: Step, hidden: Array, hand_off: HandOff) -> None:
        """Sign what is handed on, so that the next stage can tell whether it got that."""
        if not self._looks:
            return
        hand_off.sign(step.number, len(hidden), checksum(hidden))
        for plant in self._plants:
            plant.sent(hand_off.buffer(step.number, len(hidden)))

    def ended(self, step: Step) -> None:
        """What the step left in memory."""
        guard = self.guard
        if not self._looks:
            self._memory.forget(step)
            return
        for plant in self._plants:
            plant.wrote(step, self._arena, self._memory.watched)
        guard.run("finite", lambda: self._memory.finite(step), len(step.segments))
        guard.run("red_zones", self._memory.red_zone)
        if self._pages:
            guard.run("pages", self._memory.unchanged, self._pages)
        if self._config.enable_prefix_caching:
            self._memory.stored(step)
            for plant in self._plants:
                plant.kept(step, self._arena)

    def idle(self) -> None:
        """Write the counts, if there is anything new: whoever ends the engine does not ask before."""
        if self.guard.steps != self._told:
            self._told = self.guard.steps
            self.guard.summary()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """The time that keeping the mirror takes: every step pays it, looked at or not."""
        began = time.perf_counter()
        yield
        spent = self.guard.seconds
        spent["mirror"] = spent.get("mirror", 0.0) + time.perf_counter() - began

    def _left_out(self) -> list[tuple[str, str]]:
        config = self._config
        left = []
        if not config.prefill_graphs:
            left.append(("pointers", "nothing is captured in this launch"))
        if config.stages == 1:
            left.append(("handover", "there is one stage only"))
        elif self._rank == 0:
            left.append(("handover", "the first stage receives nothing"))
        if not config.enable_prefix_caching:
            left.append(("prefix_states", "prefix caching is off"))
        if not self.guard.settings.pages:
            left.append(("pages", "CULPA_GUARD_PAGES is not set: no checksums of pages"))
        return left

    def _place(self, number: int, group: CacheGroup) -> Place:
        here = group.on(*self._layers)
        if not here:
            return Place(number, None, group.kind)
        return Place(number, layer_name(here[0], group.kind), group.kind, here[0])

    def _first_layer(self) -> Place:
        first = self._layers[0]
        number = next(i for i, group in enumerate(self._groups) if first in group.layers)
        kind = self._groups[number].kind
        return Place(number, layer_name(first, kind), kind, first)
