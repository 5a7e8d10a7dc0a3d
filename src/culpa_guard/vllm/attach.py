"""Hooks into a vLLM process: every worker that is made from now on is watched.

`WorkerBase.__init__` is the one place through which workers of all devices and executors go, in all processes; the
plugin is loaded before it. From there on only methods of that worker's instance are wrapped.
"""

import multiprocessing
from typing import Any

from culpa_guard.guard import Guard, GuardViolation, Place
from culpa_guard.settings import Settings

_MARK = "_culpa_guard"


def attach(settings: Settings) -> None:
    """Say that this process is watched, and wrap the workers to come. A second call changes nothing."""
    guard = Guard(settings, Place("vllm", _version(), _role()))
    guard.start()
    try:
        from vllm.v1.worker.worker_base import WorkerBase
    except Exception as error:
        # An engine that is laid out otherwise is no reason to end it.
        guard.leave_out("workers", f"no vllm.v1.worker.worker_base.WorkerBase: {error!r}")
        return
    if getattr(WorkerBase, _MARK, False):
        return
    original = WorkerBase.__init__

    def constructed(self: Any, *words: Any, **names: Any) -> None:
        original(self, *words, **names)
        wrap_worker(self, settings)

    WorkerBase.__init__ = constructed
    setattr(WorkerBase, _MARK, True)


def wrap_worker(worker: Any, settings: Settings) -> None:
    """Watch one worker: build its stage when its caches are bound, and go with each of its steps."""
    from culpa_guard.vllm.stage import Stage

    initialize, execute, leave = worker.initialize_from_config, worker.execute_model, worker.shutdown
    stages: list[Stage] = []

    def initialize_from_config(kv_cache_config: Any, *words: Any, **names: Any) -> Any:
        result = initialize(kv_cache_config, *words, **names)
        place = Place("vllm", _version(), "worker", _stage_of(), int(getattr(worker, "rank", 0) or 0))
        guard = Guard(settings, place)
        stages.clear()
        try:
            stages.append(Stage.build(guard, worker, kv_cache_config))
        except GuardViolation:
            raise
        except Exception as error:
            guard.start((), [("all", f"the stage could not be read: {error!r}")])
            guard.failed("stage", error)
        return result

    def execute_model(scheduler_output: Any, *words: Any, **names: Any) -> Any:
        if not stages:
            return execute(scheduler_output, *words, **names)
        stages[0].before(scheduler_output)
        result = execute(scheduler_output, *words, **names)
        stages[0].after()
        return result

    def shutdown(*words: Any, **names: Any) -> Any:
        for stage in stages:
            # Workers are often ended in a way that runs nothing at exit.
            stage.guard.summary()
        return leave(*words, **names)

    worker.initialize_from_config = initialize_from_config
    worker.execute_model = execute_model
    worker.shutdown = shutdown


def _version() -> str:
    import vllm

    return str(getattr(vllm, "__version__", "unknown"))


def _role() -> str:
    """What this process is when the plugin is loaded in it, by the names that vLLM gives its processes."""
    name = multiprocessing.current_process().name
    if "EngineCore" in name:
        return "engine_core"
    return "worker" if "Worker" in name else "server"


def _stage_of() -> int:
    try:
        from vllm.distributed.parallel_state import get_pp_group

        return int(get_pp_group().rank_in_group)
    except Exception:
        # Outside a distributed run there is one stage, the first.
        return 0
