"""The engine core: the scheduler with what executes its steps, several of them in flight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from culpa_lab.engine.block_pool import BlockPool
from culpa_lab.engine.cache_groups import CacheGroup
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.kv_cache_manager import KVCacheManager
from culpa_lab.engine.request import NewRequest
from culpa_lab.engine.scheduler import Limits, Output, Scheduler
from culpa_lab.engine.steps import Step, StepResult
from culpa_lab.guard import schedule_watch


class Executor(Protocol):
    """Runs steps, in order."""

    def submit(self, step: Step) -> None:
        """Begin a step; does not wait for it."""

    def collect(self) -> StepResult:
        """Wait for the oldest step in flight. Raises what went wrong in a stage."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How the engine stands after a step; counters count from the start."""

    running: int
    waiting: int
    usage: float
    preemptions: int
    queries: int
    hits: int
    step_tokens: int
    prompt_tokens: int
    generated: int


class EngineCore:
    """Schedules steps until as many are in flight as may be, then takes in the oldest one's result."""

    def __init__(
        self,
        config: EngineConfig,
        groups: Sequence[CacheGroup],
        blocks: int,
        first_block: int,
        executor: Executor,
        hooks: Hooks,
    ) -> None:
        pool = BlockPool(blocks, elastic=config.enable_prefix_caching, first=first_block)
        cache = KVCacheManager(
            groups,
            pool,
            config.block_size,
            prefix_caching=config.enable_prefix_caching,
            align=config.mamba_cache_mode == "align",
            hooks=hooks,
        )
        limits = Limits(
            config.max_num_batched_tokens,
            config.max_num_seqs,
            config.max_model_len,
            config.enable_chunked_prefill,
            config.async_scheduling,
        )
        self.scheduler = Scheduler(limits, cache, hooks)
        self._watch = schedule_watch(config, groups)
        self._executor = executor
        self._depth = config.depth
        self._in_flight: list[Step] = []
        self._prompt_tokens = 0
        self._generated = 0

    @property
    def busy(self) -> bool:
        """Whether there is anything to do or to wait for."""
        return self.scheduler.busy or bool(self._in_flight)

    @property
    def in_flight(self) -> int:
        """Steps whose results have not come yet."""
        return len(self._in_flight)

    @property
    def steps_in_flight(self) -> tuple[Step, ...]:
        """Steps whose results have not come yet, oldest first."""
        return tuple(self._in_flight)

    def add(self, request: NewRequest) -> None:
        """Take a request in."""
        self.scheduler.add(request)

    def abort(self, request_id: str) -> None:
        """Drop a request."""
        self.scheduler.abort(request_id)

    def fill(self) -> None:
        """Schedule steps until the queue of steps in flight is full or nothing can be scheduled."""
        while len(self._in_flight) < self._depth:
            step = self.scheduler.schedule()
            if step is None:
                return
            self._in_flight.append(step)
            if self._watch is not None:
                self._watch.scheduled(step)
            self._executor.submit(step)

    def take(self, result: StepResult) -> tuple[list[Output], Stats]:
        """Take in the result of the oldest step in flight."""
        step = self._in_flight.pop(0)
        assert step.number == result.number, f"step {result.number} ended before step {step.number}"
        outputs = self.scheduler.update(result)
        generated = len(outputs)
        self._generated += generated
        prompt = sum(one.count for one in step.segments if not one.decode)
        self._prompt_tokens += prompt
        cache = self.scheduler.cache
        return outputs, Stats(
            len(self.scheduler.running),
            len(self.scheduler.waiting),
            cache.pool.usage,
            self.scheduler.preemptions,
            cache.queries,
            cache.hits,
            step.tokens,
            self._prompt_tokens,
            self._generated,
        )

    def step(self) -> list[Output]:
        """Fill the queue and take in one result: the engine without processes or messages."""
        self.fill()
        if not self._in_flight:
            return []
        return self.take(self._executor.collect())[0]
