"""One pipeline stage: its layers, its part of the cache, and what it does in a step."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.arena import Arena
from culpa_lab.engine.cache_groups import FULL, cache_groups
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.decode import Decode
from culpa_lab.engine.device import Device
from culpa_lab.engine.errors import KernelFault, OutOfMemoryError
from culpa_lab.engine.hand_off import HandOff
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.kernel_log import KernelLog
from culpa_lab.engine.logs import log
from culpa_lab.engine.planning import DEVICE_BYTES
from culpa_lab.engine.prefill import Prefill
from culpa_lab.engine.regroup import regrouped
from culpa_lab.engine.sampler import choose, report
from culpa_lab.engine.steps import Sampled, Segment, StateRow, Step
from culpa_lab.guard import stage_watch
from culpa_lab.model import (
    HeadWeights,
    ModelConfig,
    Rotary,
    Workspace,
    load_embedding,
    load_head,
    load_layers,
    logits,
)

Array = npt.NDArray[np.float32]


class Stage:
    """The layers of one pipeline rank on their device."""

    def __init__(self, config: EngineConfig, model: ModelConfig, rank: int, hooks: Hooks) -> None:
        self.rank = rank
        self.hooks = hooks
        self._config = config
        self._model = model
        self._first, self._last = config.layers(rank)
        self._groups = cache_groups(model.layer_types)
        name = f"VLLM::Worker_PP{rank}" if config.stages > 1 else "VLLM::Worker"
        self.device = Device(rank, KernelLog(config.kernel_log), name, blocking=config.launch_blocking)
        self.first_free_block = 1
        self.watch = stage_watch(config, model, rank)
        self._workspace = Workspace()
        self._embedding: Array | None = None
        self._head: HeadWeights | None = None

    @property
    def last(self) -> bool:
        """Whether tokens are sampled here."""
        return self.rank == self._config.stages - 1

    def load(self) -> int:
        """Load this stage's weights. Returns their size in bytes as float32."""
        log.info(f"Starting to load model {self._config.model}...")
        folder, dtype = self._config.model, self._config.dtype
        self._layers = load_layers(folder, self._model, self._first, self._last, dtype)
        parameters = self._last - self._first
        if self.rank == 0:
            self._embedding = load_embedding(folder, self._model, dtype)
        if self.last:
            self._head = load_head(folder, self._model, dtype)
        each = 8 * self._model.hidden_size * (self._model.hidden_size + self._model.intermediate_size)
        ends = (self.rank == 0) + self.last
        size = 4 * (parameters * each + ends * self._model.vocab_size * self._model.hidden_size)
        log.info(f"Model loading took {size / (1 << 30):.4f} GiB memory")
        return size

    def allocate(self, blocks: int) -> None:
        """Make the cache of so many blocks."""
        config, model = self._config, self._model
        self._arena = Arena(
            model, self._groups, (self._first, self._last), config.block_size, blocks, self.device
        )
        if self.watch is not None:
            self.watch.allocated(self._arena)
        # What gpu_memory_utilization leaves, as planned; an override of the number of blocks does not change it.
        self._spare_bytes = int((1 - config.gpu_memory_utilization) * DEVICE_BYTES)
        if not config.enable_prefix_caching:
            self._arena.map_all()
        max_blocks = -(-config.max_model_len // config.block_size)
        rotary = Rotary(model)
        self._prefill = Prefill(
            self._layers, self._arena, self.device, rotary, self.hooks, self.rank, max_blocks, self.watch
        )
        self._decode = Decode(
            self._layers,
            self._arena,
            self.device,
            rotary,
            self.hooks,
            max_blocks,
            model.hidden_size,
            self.watch,
        )
        first_is_full = model.layer_types[self._first] == FULL
        count = len(self._groups)
        self._order = [self.hooks.group_index(first_is_full, group, count) for group in range(count)]

    def warm_up(self) -> None:
        """Run a prompt of two pieces on blocks of its own, capture what is to be captured, give the blocks back."""
        kinds = [group.kind for group in self._groups]
        blocks = range(1, len(kinds) + 1)
        self.first_free_block = blocks.stop if blocks.stop < self._arena.blocks else 1
        if self._config.enable_prefix_caching:
            self._arena.map(blocks)
        states = tuple(b for b, kind in zip(blocks, kinds, strict=True) if kind != FULL)
        tables = tuple((b,) for b, kind in zip(blocks, kinds, strict=True) if kind == FULL)
        pieces = []
        for start in (0, 2):
            rows = tuple(StateRow(run, run if start else 0) for run in states)
            pieces.append(Segment("warm-up", 0, (0, 0), start, 2, tables, rows, False, False))
        with np.errstate(all="ignore"):
            for segment in pieces:
                self._prefill.run(segment, np.zeros((2, self._model.hidden_size), np.float32))
        if self._config.prefill_graphs:
            for segment in pieces:
                self._prefill.capture(segment)
        if self._config.decode_graphs:
            for size in self._config.capture_sizes:
                self._decode.capture(size)
        if self._config.graphs:
            sizes = len(self._config.capture_sizes) if self._config.decode_graphs else 0
            log.info(f"Graph capturing finished, {sizes} batch sizes")
        if self._config.enable_prefix_caching:
            self._arena.unmap(blocks)
        if self.watch is not None:
            self.watch.warmed_up(blocks)

    def execute(
        self, step: Step, source: HandOff | None, outputs: HandOff | None, fed: Mapping[str, int]
    ) -> tuple[Sampled, ...] | None:
        """One step. Hidden states come from the stage before by `source`, `outputs` takes them to the one after.

        Returns sampled tokens (none but on the last stage), or None if a kernel failed: nothing comes out of a
        device whose context is poisoned. Raises what the device reports of earlier steps.
        """
        self.device.launch()
        inputs = source.buffer(step.number, step.tokens) if source is not None else None
        if self.watch is not None:
            self.watch.began(step)
            if source is not None and inputs is not None:
                self.watch.received(step, inputs, source)
        self._arena.unmap(step.unmap)
        self._arena.map(step.map)
        try:
            with np.errstate(all="ignore"):  # a GPU raises no alarm over infinities either
                sampled = self._execute(step, inputs, outputs, fed)
        except KernelFault:
            return None
        if self.watch is not None:
            self.watch.ended(step)
        return sampled

    def _execute(
        self, step: Step, inputs: Array | None, outputs: HandOff | None, fed: Mapping[str, int]
    ) -> tuple[Sampled, ...]:
        self._zero(step)
        segments = [regrouped(one, self._groups, self._order) for one in step.segments]
        x = self._embed(segments, step.tokens, fed) if inputs is None else inputs.copy()
        decodes = step.decodes
        if decodes:
            self._decode.run(segments[:decodes], x[:decodes])
            self._save_decoded(segments[:decodes])
        at = decodes
        for segment in segments[decodes:]:
            self._reserve(segment)
            self._prefill.run(segment, x[at : at + segment.count])
            at += segment.count
        if outputs is not None:
            self.hooks.hand_on(self.rank, outputs, step, x)
            if self.watch is not None:
                self.watch.sent(step, x, outputs)
            return ()
        return self._sample(step, x)

    def _reserve(self, segment: Segment) -> None:
        """Take the memory that attention over a piece needs. Raises OutOfMemoryError if there is not as much."""
        captured = self._config.prefill_graphs
        needed = self.hooks.scores(self.rank, captured, segment.count, segment.start + segment.count)
        if needed <= self._spare_bytes:
            return
        raise OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {needed / (1 << 20):.2f} MiB. GPU {self.rank} has a total capacity "
            f"of {DEVICE_BYTES / (1 << 20):.2f} MiB of which {self._spare_bytes / (1 << 20):.2f} MiB is free."
        )

    def _zero(self, step: Step) -> None:
        for block in step.zero:
            self.device.touch(block, "WRITE")
            for group in range(len(self._arena.gdn)):
                # Which group the block serves is known to the scheduler; clearing a page twice does no harm.
                self._arena.states(group)[block] = 0

    def _embed(self, segments: Sequence[Segment], count: int, fed: Mapping[str, int]) -> Array:
        assert self._embedding is not None
        tokens = np.empty(count, np.int64)
        at = 0
        for segment in segments:
            tokens[at : at + segment.count] = segment.tokens or fed[segment.request]
            at += segment.count
        return self._embedding[tokens]

    def _save_decoded(self, segments: Sequence[Segment]) -> None:
        """Copies of states that have just come to a block boundary."""
        for segment in segments:
            for group, row in enumerate(segment.states):
                if row.save and self._arena.gdn[group]:
                    self.device.touch(row.save, "WRITE")
                    pages = self._arena.states(group)
                    pages[row.save] = pages[row.run]

    def _sample(self, step: Step, x: Array) -> tuple[Sampled, ...]:
        assert self._head is not None
        chosen = []
        at = 0
        for segment in step.segments:
            at += segment.count
            if segment.sample:
                chosen.append((segment, at - 1))
        if not chosen:
            return ()
        scores = np.empty((len(chosen), self._model.vocab_size), np.float32)
        logits(x[[row for _, row in chosen]], self._head, scores, self._workspace)
        found = []
        for (segment, _), row in zip(chosen, scores, strict=True):
            sampling = segment.sampling
            token = choose(row, sampling, segment.output)
            details = None if sampling.logprobs is None else report(row, token, sampling.logprobs)
            found.append(Sampled(segment.request, segment.generation, token, details))
        return tuple(found)
