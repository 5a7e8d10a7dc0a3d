"""One worker process a stage, and the executor in the engine core that drives them."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from culpa_lab.engine.cache_groups import CacheGroup
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hand_off import HandOff
from culpa_lab.engine.logs import log
from culpa_lab.engine.planning import plan_blocks
from culpa_lab.engine.processes import settle
from culpa_lab.engine.stage import Stage
from culpa_lab.engine.steps import Step, StepResult
from culpa_lab.faults.registry import hooks_for
from culpa_lab.model import ModelConfig

_IDLE_SECONDS = 0.02
_SILENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Links:
    """The ends of pipes that a worker holds: to the core, to its neighbours, and for sampled tokens."""

    core: Connection
    previous: Connection | None
    next: Connection | None
    tokens_in: Connection | None
    tokens_out: Connection | None

    def all(self) -> list[Connection]:
        """All ends."""
        ends = (self.core, self.previous, self.next, self.tokens_in, self.tokens_out)
        return [end for end in ends if end is not None]


class WorkerProc:
    """A worker: takes steps from the core, hidden states from the stage before, and hands them on."""

    def __init__(self, stage: Stage, links: Links, hand_offs: Sequence[HandOff]) -> None:
        self._stage = stage
        self._links = links
        self._from = hand_offs[stage.rank - 1] if stage.rank else None
        self._to = hand_offs[stage.rank] if links.next else None
        self._fed: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        """Load weights, take as many blocks as the core says, warm up."""
        weights = self._stage.load()
        self._links.core.send(("loaded", weights))
        blocks = self._links.core.recv()
        self._stage.allocate(blocks)
        self._stage.warm_up()
        self._links.core.send(("ready", self._stage.first_free_block))

    def worker_busy_loop(self) -> None:
        """Run steps until the core is gone; a failure is told to the core, and the process stays for its end."""
        while True:
            try:
                step = self._next_step()
                if step is None:
                    return
                self.execute_model(step)
            except Exception as error:
                log.exception("WorkerProc hit an exception.", error)
                if self._stage.watch is not None:
                    self._stage.watch.idle()
                self._links.core.send(("failure", str(error)))
                with suppress(EOFError, ConnectionResetError):
                    while True:
                        self._links.core.recv()
                return

    def execute_model(self, step: Step) -> None:
        """One step on this stage. Raises what the device reports, which may be about an earlier step."""
        # Receiving is a kernel too and raises on a poisoned context: the stage before may be waiting for what this one
        # can't give any more.
        self._stage.device.launch()
        if self._from is not None:
            self._receive_hidden(step)
        sampled = self._stage.execute(step, self._from, self._to, self._fed_tokens(step))
        if self._links.next is not None:
            # Nothing leaves a poisoned device: the stage after this one waits in vain.
            if sampled is not None:
                self._stage.hooks.send(self._links.next, step)
            return
        self._stage.device.synchronize()
        assert sampled is not None
        if self._links.tokens_out is not None and sampled:
            self._links.tokens_out.send((step.number, {one.request: one.token for one in sampled}))
        self._links.core.send(("result", StepResult(step.number, sampled)))

    def _next_step(self) -> Step | None:
        message = self._next_message()
        assert message is None or isinstance(message, Step)
        return message

    def _next_message(self) -> Any:
        """The core's next message, None if it is gone. While there is none, the device is asked how it is."""
        try:
            if self._stage.watch is not None and not self._links.core.poll(_IDLE_SECONDS):
                self._stage.watch.idle()
            while not self._links.core.poll(_IDLE_SECONDS if self._stage.device.poisoned else None):
                self._stage.device.synchronize()
            return self._links.core.recv()
        except (EOFError, ConnectionResetError):
            return None

    def _receive_hidden(self, step: Step) -> None:
        assert self._links.previous is not None
        try:
            number = self._links.previous.recv()
        except (EOFError, ConnectionResetError):
            raise RuntimeError(f"Connection closed by peer [PP{self._stage.rank - 1}]") from None
        assert number == step.number, f"hidden states of step {number} came for step {step.number}"

    def _fed_tokens(self, step: Step) -> dict[str, int]:
        """Tokens of this step that an earlier one sampled and that the scheduler did not know yet."""
        found: dict[str, int] = {}
        if self._stage.rank:
            return found
        waiting = self._links.tokens_in
        for segment in step.segments:
            if segment.feedback < 0:
                continue
            key = (segment.request, segment.feedback)
            while key not in self._fed and waiting is not None:
                number, tokens = waiting.recv()
                self._fed.update({(request, number): token for request, token in tokens.items()})
            found[segment.request] = self._fed[key]
        if waiting is not None:
            while waiting.poll():
                number, tokens = waiting.recv()
                self._fed.update({(request, number): token for request, token in tokens.items()})
        # A token is wanted by the next steps only: what is older will not be asked for.
        for key in [key for key in self._fed if key[1] < step.number - 64]:
            del self._fed[key]
        return found


def _worker_main(
    config: EngineConfig, model: ModelConfig, rank: int, links: Links, close: Sequence[Connection],
    hand_offs: Sequence[HandOff], parent: int,
) -> None:  # fmt: skip
    name = f"Worker_PP{rank}" if config.stages > 1 else "Worker"
    settle(f"VLLM::{name}", parent)
    for end in close:
        end.close()
    log.open(name)
    stage = Stage(config, model, rank, hooks_for(config))
    log.info(
        f"rank {rank} in world size {config.stages} is assigned as DP rank 0, PP rank {rank}, PCP rank 0, "
        f"TP rank 0, device cuda:{rank} pci {stage.device.bus}"
    )
    worker = WorkerProc(stage, links, hand_offs)
    try:
        worker.start()
    except (EOFError, ConnectionResetError):
        return  # the core does not start after all, and says why
    except Exception as error:
        log.exception("WorkerProc failed to start.", error)
        links.core.send(("failure", str(error)))
        return
    worker.worker_busy_loop()


class MultiprocExecutor:
    """Starts the workers and sends them steps; results come from the last stage."""

    def __init__(self, config: EngineConfig, model: ModelConfig, groups: Sequence[CacheGroup]) -> None:
        context = get_context("fork")
        stages = config.stages
        self._timeout = float(os.environ.get("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "300"))
        self._in_flight = 0
        self._news = time.monotonic()  # when the last result came, or the first step went out after a pause
        hand_offs = [
            HandOff(config.depth, config.max_num_batched_tokens, model.hidden_size) for _ in range(stages - 1)
        ]
        core = [context.Pipe() for _ in range(stages)]
        forward = [context.Pipe(duplex=False) for _ in range(stages - 1)]
        tokens = [context.Pipe(duplex=False)]
        ends = [end for pair in core + forward + tokens for end in pair]
        self._processes = []
        for rank in range(stages):
            links = Links(
                core[rank][1],
                forward[rank - 1][0] if rank else None,
                forward[rank][1] if rank < stages - 1 else None,
                tokens[0][0] if rank == 0 and config.async_scheduling else None,
                tokens[0][1] if rank == stages - 1 and config.async_scheduling else None,
            )
            kept = {id(end) for end in links.all()}
            close = [end for end in ends if id(end) not in kept]
            process = context.Process(
                target=_worker_main,
                args=(config, model, rank, links, close, hand_offs, os.getpid()),
                name=f"VllmWorker-{rank}",
            )
            process.start()
            self._processes.append(process)
        self._workers = [mine for mine, _ in core]
        for end in ends:
            if not any(end is mine for mine in self._workers):
                end.close()
        try:
            loaded = [self._expect(rank, "loaded") for rank in range(stages)]
            self.blocks = plan_blocks(config, model, groups, loaded)
            for worker in self._workers:
                worker.send(self.blocks)
            self.first_block = max(self._expect(rank, "ready") for rank in range(stages))
        except Exception:
            self.shutdown()
            raise

    def submit(self, step: Step) -> None:
        """Send a step to all stages."""
        if not self._in_flight:
            self._news = time.monotonic()
        self._in_flight += 1
        for worker in self._workers:
            with suppress(BrokenPipeError):  # the worker is dead, and `collect` says so
                worker.send(step)

    def sources(self) -> list[Any]:
        """What to wait on for news of the workers."""
        return [*self._workers, *(process.sentinel for process in self._processes)]

    def collect(self) -> StepResult:
        """Wait for the oldest step in flight. Raises like `collect_or`."""
        while True:
            result = self.collect_or(None)
            if result is not None:
                return result

    def collect_or(self, also: Connection | None) -> StepResult | None:
        """Wait for the oldest step in flight; None if a message came on `also` before.

        Raises RuntimeError if a worker failed or died, TimeoutError if nothing comes for too long.
        """
        silence = min(_SILENCE_SECONDS, self._timeout)
        while True:
            sources = self.sources() + ([also] if also is not None else [])
            ready = wait(sources, timeout=silence)
            for rank, worker in enumerate(self._workers):
                if worker in ready:
                    kind, value = self._receive(rank)
                    if kind == "failure":
                        raise RuntimeError(
                            f"Worker failed with error '{value}', please check the stack trace above for the root cause"
                        )
                    assert isinstance(value, StepResult)
                    self._news = time.monotonic()
                    self._in_flight -= 1
                    return value
            for rank, process in enumerate(self._processes):
                if process.sentinel in ready:
                    self._died(rank)
            if also is not None and also in ready:
                return None
            if not ready:
                log.info(
                    f"No available shared memory broadcast block found in {silence:.0f} seconds. This "
                    "typically happens when some processes are hanging or doing some time-consuming work (e.g. "
                    "compilation, weight/kv cache quantization)."
                )
                if time.monotonic() - self._news >= self._timeout:
                    raise TimeoutError("RPC call to sample_tokens timed out.")

    def shutdown(self) -> None:
        """End all workers."""
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        for process in self._processes:
            process.join(2)
            if process.is_alive():
                process.kill()
                process.join()

    def _expect(self, rank: int, kind: str) -> Any:
        found, value = self._receive(rank)
        if found == "failure":
            raise RuntimeError(
                "WorkerProc initialization failed due to an exception in a background process. "
                f"See stack trace for root cause. ({value})"
            )
        assert found == kind
        return value

    def _receive(self, rank: int) -> tuple[str, Any]:
        try:
            kind, value = self._workers[rank].recv()
        except (EOFError, ConnectionResetError):
            self._died(rank)
        return kind, value

    def _died(self, rank: int) -> None:
        log.error(f"Worker proc VllmWorker-{rank} died unexpectedly, shutting down executor.")
        raise RuntimeError("cancelled")
