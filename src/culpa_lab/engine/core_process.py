"""The process of the engine core: its loop between the API server and the workers."""

import os
from multiprocessing.connection import Connection

from culpa_lab.engine.cache_groups import cache_groups, capacity_tokens
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.core import EngineCore
from culpa_lab.engine.describe import describe
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.logs import log
from culpa_lab.engine.messages import Abort, Add, Dead, Outputs, Ready, Refused
from culpa_lab.engine.multiproc_executor import MultiprocExecutor
from culpa_lab.engine.processes import settle
from culpa_lab.faults.registry import hooks_for
from culpa_lab.model import ModelConfig


def run_engine_core(config: EngineConfig, model: ModelConfig, api: Connection, parent: int) -> None:
    """Start the workers, tell the API server, and serve until it is gone or a worker fails."""
    settle("VLLM::EngineCore", parent)
    log.open("EngineCore")
    log.info(f"Initializing a V1 LLM engine (v{config.version}) with config: {describe(config)}")
    if config.async_scheduling:
        log.info("Asynchronous scheduling is enabled.")
    if config.enable_chunked_prefill:
        log.info(f"Chunked prefill is enabled with max_num_batched_tokens={config.max_num_batched_tokens}.")
    groups = cache_groups(model.layer_types)
    try:
        executor = MultiprocExecutor(config, model, groups)
    except BadLaunch as error:
        log.error(str(error))
        api.send(Refused(str(error)))
        os._exit(1)
    except Exception as error:
        log.exception("EngineCore failed to start.", error)
        api.send(Dead())
        os._exit(1)
    core = EngineCore(config, groups, executor.blocks, executor.first_block, executor, hooks_for(config))
    tokens = capacity_tokens(
        groups, executor.blocks, config.max_model_len, config.block_size, config.mamba_cache_mode
    )
    api.send(Ready(executor.blocks, tokens))
    try:
        run_busy_loop(core, executor, api)
    except Exception as error:
        _dump(config, core)
        log.exception("EngineCore encountered a fatal error.", error)
        api.send(Dead())
    finally:
        executor.shutdown()


def run_busy_loop(core: EngineCore, executor: MultiprocExecutor, api: Connection) -> None:
    """Take in requests, keep steps in flight, pass on what they bring. Returns when the API server is gone."""
    while True:
        while api.poll(0 if core.busy else None):
            try:
                message = api.recv()
            except (EOFError, ConnectionResetError):
                return
            if isinstance(message, Add):
                core.add(message.request)
            elif isinstance(message, Abort):
                core.abort(message.request)
        core.fill()
        if core.in_flight:
            result = executor.collect_or(api)
            if result is not None:
                outputs, stats = core.take(result)
                api.send(Outputs(tuple(outputs), stats))


def _dump(config: EngineConfig, core: EngineCore) -> None:
    """What was being done when the engine died, in vLLM's words."""
    log.error(f"Dumping input data for V1 LLM engine (v{config.version}) with config: {describe(config)}, ")
    for step in core.steps_in_flight[:1]:  # the one that was waited for
        ids = ", ".join(one.request for one in step.segments)
        counts = ", ".join(f"{one.request}: {one.count}" for one in step.segments)
        computed = ", ".join(str(one.start) for one in step.segments)
        log.error(
            f"Dumping scheduler output for model execution: SchedulerOutput(req_ids=[{ids}], "
            f"num_computed_tokens=[{computed}], num_scheduled_tokens={{{counts}}}, "
            f"total_num_scheduled_tokens={step.tokens})"
        )
    scheduler = core.scheduler
    log.error(
        f"Dumping scheduler stats: SchedulerStats(num_running_reqs={len(scheduler.running)}, "
        f"num_waiting_reqs={len(scheduler.waiting)}, kv_cache_usage={scheduler.cache.pool.usage:.4f})"
    )
