"""Where trials run."""

from culpa.executors.local import Executor, LocalExecutor, RunningEngine

__all__ = ["Executor", "LocalExecutor", "RunningEngine"]
