"""One worker under watch: its mirror, and what happens before, within and after each of its steps."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from culpa_guard.checks import STEP_CHECKS, Region, check_bindings, check_pointers
from culpa_guard.guard import Guard, GuardViolation
from culpa_guard.mirror import Mirror
from culpa_guard.views import StepView
from culpa_guard.violation import Violation
from culpa_guard.vllm import bound as bindings
from culpa_guard.vllm.contents import Contents
from culpa_guard.vllm.deferred import Fetcher
from culpa_guard.vllm.handover import Handover
from culpa_guard.vllm.layout import layer_spec, layer_type, left_out_groups, read_groups, read_regions
from culpa_guard.vllm.metadata import MetadataReader
from culpa_guard.vllm.plan import read_plan
from culpa_guard.vllm.plants import Plant, corruption

CHECKS = (
    "grants",
    "bindings",
    "pointers",
    *STEP_CHECKS,
    "handover",
    "pages",
    "prefix_states",
    "finite",
    "red_zones",
)

KERNEL_STEPS = 16
"""Every so many steps the addresses that kernels captured are compared."""


class Stage:
    """What the guard knows of one worker. `before` and `after` go around each step; `given` is called within it."""

    def __init__(self, guard: Guard, worker: Any, config: Any) -> None:
        runner = worker.model_runner
        self.guard = guard
        self._runner = runner
        self._layers: Mapping[str, Any] = worker.vllm_config.compilation_config.static_forward_context
        sizes = getattr(runner, "_kernel_block_sizes", None) or getattr(runner, "kernel_block_sizes", None)
        self.groups = read_groups(config, sizes)
        self.mirror = Mirror(self.groups, int(config.num_blocks))
        self._fetcher = Fetcher(getattr(worker, "device", None))
        self._output: Any = None
        self._plants = [Plant(one, guard, guard.place.stage or 0) for one in guard.settings.plants]
        self._of_layer = {layer: group for group in self.groups for layer in group.layers}
        specs = {
            layer: layer_spec(given, layer) for given in config.kv_cache_groups for layer in given.layer_names
        }
        self._reader = MetadataReader(
            self._of_layer,
            {layer: layer_type(spec) for layer, spec in specs.items()},
            self._fetcher,
            guard.leave_out,
        )
        self._regions: dict[str, Region] = {}
        self._pointers: bindings.Pointers | None = None
        self._contents: Contents | None = None
        self._handover: Handover | None = None
        self._specs = specs

    @classmethod
    def build(cls, guard: Guard, worker: Any, config: Any) -> "Stage":
        """Read the worker once its caches are bound, say what is watched, and check the bindings.

        Raises:
            GuardViolation: in `raise` mode, where a binding is wrong.
        """
        stage = cls(guard, worker, config)
        left_out = left_out_groups(config, stage.groups)
        left_out += stage._hook_model(worker)
        left_out += stage._hook_handover(worker)
        left_out += stage._read_regions(config)
        left_out += stage._prepare_contents(worker)
        guard.start(CHECKS, left_out)
        guard.run("bindings", stage._check_bindings, count=len(stage._regions))
        return stage

    def before(self, output: Any) -> None:
        """A step is about to run.

        Raises:
            GuardViolation: in `raise` mode.
        """
        self._contained("before", lambda: self._before(output))

    def after(self) -> None:
        """The step has run.

        Raises:
            GuardViolation: in `raise` mode.
        """
        self._contained("after", self._after)

    def given(self, metadata: Any, slots: Any, requests: Iterable[str], intermediate: Any = None) -> None:
        """The model is about to be called, or its graph to be replayed, with these.

        Raises:
            GuardViolation: in `raise` mode, before the model runs.
        """
        self._contained("given", lambda: self._given(metadata, slots, requests, intermediate))

    def _contained(self, name: str, work: Callable[[], None]) -> None:
        # Errors of the guard end here, whatever they are; only a violation may end the engine.
        if name in self.guard.off:
            return
        try:
            work()
        except GuardViolation:
            raise
        except Exception as error:
            self._output = None
            self.guard.failed(name, error)

    def _before(self, output: Any) -> None:
        guard, mirror = self.guard, self.mirror
        self._output = None
        tokens = int(output.total_num_scheduled_tokens)
        if tokens:
            guard.next_step(len(output.scheduled_new_reqs))
        guard.run("grants", lambda: mirror.apply(read_plan(output)), count=len(output.num_scheduled_tokens))
        if self._fetcher.deferred:
            self._fetcher.poll()
        if not tokens:
            # With several stages most calls only bring news of requests that have ended.
            return
        for plant in self._plants:
            plant.pointers(self._layers, self.groups)
        if self._handover is not None:
            self._handover.tokens = tokens
        if guard.looks and self._pointers is not None:
            guard.run("pointers", self._pointers.check, count=self._pointers.count)
            if guard.steps % KERNEL_STEPS == 1:
                guard.run("pointers", self._kernel_addresses)
        if "grants" in guard.off:
            # Without the mirror there is nothing to compare with.
            return
        contents = self._contents
        if contents is not None:
            hits = contents.hits()
            guard.run("prefix_states", lambda: contents.restored(hits), count=len(hits))
            guard.run("pages", contents.pages, count=contents.watch.budget)
        self._output = output

    def _after(self) -> None:
        contents, output, self._output = self._contents, self._output, None
        if contents is None or output is None:
            return
        guard = self.guard
        guard.run("prefix_states", contents.after, count=0)
        tensors = {name: bindings.tensors_of(self._layers[name]) for name in self._regions}
        for plant in self._plants:
            written = self.mirror.written_blocks()
            plant.contents(contents.watch.recorded, written, tensors, self.mirror, contents.flip)
        if guard.looks:
            guard.run("finite", lambda: contents.finite(tensors))
            guard.run("red_zones", contents.red_zones)

    def _kernel_addresses(self) -> None:
        captured, expected = bindings.kernel_addresses(self._runner, self._layers, self.groups)
        if captured is None:
            return
        holder, step = "addresses that the kernels which copy states captured", self.guard.steps

        def arrived(contents: list[Any]) -> None:
            keys = [(name, f"{holder}, entry {entry}") for entry, (name, _) in enumerate(expected)]
            held = dict(zip(keys, (int(address) for address in contents[0]), strict=False))
            now = {key: address for key, (_, address) in zip(keys, expected, strict=True)}
            self.guard.report(check_pointers(self._regions, held, now), step)

        self._fetcher.fetch([captured], arrived)

    def _given(self, metadata: Any, slots: Any, requests: Iterable[str], intermediate: Any) -> None:
        output, guard, step = self._output, self.guard, self.guard.steps
        if output is None:
            return
        if self._handover is not None and intermediate is not None:
            self._handover.given(dict(intermediate.tensors))
        if not isinstance(metadata, dict):
            guard.leave_out("micro-batches", "metadata come in several parts, which are not read")
            return
        scheduled = output.num_scheduled_tokens
        names = [name for name in requests if name in scheduled]
        slot = slots if isinstance(slots, dict) else {}
        for plant in self._plants:
            plant.metadata(metadata, slot, self._of_layer, self.mirror, names)
        if not guard.looks:
            return
        mirror = self.mirror.still() if self._fetcher.deferred else self.mirror
        longest = max((mirror.live[name].end for name in names if name in mirror.live), default=0)
        lengths = [scheduled[name] for name in names]
        views: list[StepView] = []

        def check(view: StepView) -> None:
            for name, work in STEP_CHECKS.items():
                guard.run(name, _bind(work, mirror, view), count=len(names), step=step)

        then = check if self._fetcher.deferred else views.append
        guard.run("metadata", lambda: self._reader.read(metadata, slot, names, lengths, longest, then))
        for view in views:
            check(view)

    def _hook_model(self, worker: Any) -> list[tuple[str, str]]:
        runner = self._runner
        state = getattr(runner, "model_state", None)
        if hasattr(runner, "_model_forward") and hasattr(runner, "input_batch"):
            self._hook_first_runner(runner)
        elif state is not None and hasattr(state, "prepare_attn"):
            self._hook_second_runner(runner, state)
        else:
            reason = f"the model runner is not one that is known: {type(runner).__name__}"
            return [(check, reason) for check in STEP_CHECKS]
        parallel = worker.vllm_config.parallel_config
        if getattr(parallel, "decode_context_parallel_size", 1) > 1 or (
            getattr(parallel, "prefill_context_parallel_size", 1) > 1
        ):
            return [
                (check, "context parallelism shares out the tokens")
                for check in ("block_tables", "slot_mappings")
            ]
        if getattr(worker.vllm_config, "speculative_config", None) is not None:
            reason = (
                "speculative decoding: the scheduler's count of tokens is a guess until they are accepted"
            )
            return [(check, reason) for check in ("slot_mappings", "state_indices")]
        return []

    def _hook_first_runner(self, runner: Any) -> None:
        forward = runner._model_forward

        def model_forward(*words: Any, **names: Any) -> Any:
            if self._output is not None:
                self._contained("given", lambda: self._from_context(names.get("intermediate_tensors")))
            return forward(*words, **names)

        runner._model_forward = model_forward

    def _from_context(self, intermediate: Any) -> None:
        from vllm.forward_context import get_forward_context

        context, batch = get_forward_context(), self._runner.input_batch
        requests = batch.req_ids[: batch.num_reqs]
        self._given(context.attn_metadata, getattr(context, "slot_mapping", None), requests, intermediate)

    def _hook_second_runner(self, runner: Any, state: Any) -> None:
        prepare = state.prepare_attn

        def prepare_attn(input_batch: Any, *words: Any, **names: Any) -> Any:
            metadata = prepare(input_batch, *words, **names)
            if self._output is not None:
                self.given(metadata, None, input_batch.req_ids)
            return metadata

        state.prepare_attn = prepare_attn

    def _hook_handover(self, worker: Any) -> list[tuple[str, str]]:
        from vllm.distributed.parallel_state import get_pp_group

        group = get_pp_group()
        if group.world_size <= 1:
            return [("handover", "there is one stage")]
        if int(getattr(worker.vllm_config.parallel_config, "nnodes", 1) or 1) > 1:
            return [("handover", "several hosts: the guard of the other ones can't be seen")]
        if not (hasattr(group, "isend_tensor_dict") and hasattr(group, "irecv_tensor_dict")):
            return [("handover", "stages hand over by other calls than are known")]

        self._handover = Handover(group, self._fetcher, self.guard)
        self._handover.corrupt = corruption(self._plants)
        if group.rank_in_group == 0:
            return [
                ("handover", "the first stage receives nothing; its checksums are compared by the next one")
            ]
        return []

    def _read_regions(self, config: Any) -> list[tuple[str, str]]:
        try:
            self._regions = {
                name: region for name, region in read_regions(config).items() if name in self._layers
            }
        except AttributeError as error:
            reason = f"the cache configuration is not of a known form: {error}"
            return [(check, reason) for check in ("bindings", "pointers", "pages")]
        return []

    def _check_bindings(self) -> Iterable[Violation]:
        for plant in self._plants:
            plant.bindings(self._layers, self.groups)
        self._pointers = bindings.Pointers(self._runner, self._layers, self._regions)
        return check_bindings(self._regions, bindings.read_bound(self._layers, self._regions, self._specs))

    def _prepare_contents(self, worker: Any) -> list[tuple[str, str]]:
        names = ("pages", "prefix_states", "finite", "red_zones")
        if not self.guard.settings.pages:
            return [(name, "CULPA_GUARD_PAGES=N switches checks of content on") for name in names]
        if self._fetcher.deferred:
            return [(name, "contents are read on the host only") for name in names]
        if not self._regions:
            return [(name, "it is not known where the layers are") for name in names]
        for setting, reason in (
            ("kv_transfer_config", "a connector may write pages"),
            (
                "speculative_config",
                "speculative decoding: pages beyond the accepted tokens are written again",
            ),
        ):
            if getattr(worker.vllm_config, setting, None) is not None:
                return [(name, reason) for name in names]
        found = bindings.read_bound(self._layers, self._regions, self._specs)
        bases = {self._regions[one.layer].allocation: one.storage for one in found}
        used: dict[str, int] = {}
        for one in found:
            if one.expected_dtype is not None:
                tensor = bindings.tensors_of(self._layers[one.layer])[one.part]
                used[one.layer] = one.begins + tensor[0].numel() * tensor.element_size()
        self._contents = Contents(self.mirror, self._regions, bases, used, self.guard.settings.pages)
        return []


def _bind(
    work: Callable[[Mirror, StepView], Iterable[Violation]], mirror: Mirror, view: StepView
) -> Callable[[], Iterable[Violation]]:
    return lambda: work(mirror, view)
