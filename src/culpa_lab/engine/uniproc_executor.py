"""All stages in one process, one after the other: the engine without workers, for tests and small uses."""

from collections import deque

from culpa_lab.engine.cache_groups import cache_groups
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.core import EngineCore
from culpa_lab.engine.hand_off import HandOff
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.planning import plan_blocks
from culpa_lab.engine.stage import Stage
from culpa_lab.engine.steps import Step, StepResult
from culpa_lab.faults.registry import hooks_for
from culpa_lab.model import ModelConfig


class UniprocExecutor:
    """Runs a step on all stages as soon as it is submitted; what a device reports comes with `collect`."""

    def __init__(self, config: EngineConfig, model: ModelConfig, hooks: Hooks) -> None:
        self._hooks = hooks
        self._hand_offs = [
            HandOff(config.depth, config.max_num_batched_tokens, model.hidden_size)
            for _ in range(config.stages - 1)
        ]
        self.stages = [Stage(config, model, rank, hooks) for rank in range(config.stages)]
        weights = [stage.load() for stage in self.stages]
        self.groups = cache_groups(model.layer_types)
        self.blocks = plan_blocks(config, model, self.groups, weights)
        for stage in self.stages:
            stage.allocate(self.blocks)
            stage.warm_up()
        self.first_block = max(stage.first_free_block for stage in self.stages)
        self._done: deque[StepResult | RuntimeError] = deque()
        self._failed: RuntimeError | None = None
        self._fed: dict[tuple[int, str], int] = {}

    def submit(self, step: Step) -> None:
        """Run a step, unless one before it has failed."""
        if self._failed is None:
            try:
                self._done.append(self._run(step))
                return
            except RuntimeError as error:
                self._failed = error
        self._done.append(self._failed)

    def collect(self) -> StepResult:
        """The oldest step's result. Raises what its devices report."""
        found = self._done.popleft()
        if isinstance(found, RuntimeError):
            raise found
        return found

    def _run(self, step: Step) -> StepResult:
        fed = {
            one.request: self._fed[one.feedback, one.request] for one in step.segments if one.feedback >= 0
        }
        source = None
        sampled = None
        for stage in self.stages:
            hand_off = None if stage.last else self._hand_offs[stage.rank]
            sampled = stage.execute(step, source, hand_off, fed)
            if sampled is None:
                # Nothing comes out of a poisoned device, and nobody waits in vain here: say so now.
                stage.device.synchronize()
            source = hand_off
        assert sampled is not None
        self._fed.update({(step.number, one.request): one.token for one in sampled})
        return StepResult(step.number, sampled)


def uniproc_engine(config: EngineConfig) -> EngineCore:
    """An engine core with all stages in this process."""
    model = ModelConfig.load(config.model)
    hooks = hooks_for(config)
    executor = UniprocExecutor(config, model, hooks)
    return EngineCore(config, executor.groups, executor.blocks, executor.first_block, executor, hooks)
