"""The protocol by which a trial gets a running engine, and its implementation on this machine."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from culpa.host import EngineProcess, ProcessFacts, StopReport
from culpa.model import Launch


class RunningEngine(Protocol):
    """A started engine, wherever it runs. `culpa.host.EngineProcess` is the one on this machine."""

    log: Path  # the file on this machine to which the engine's output goes

    def supervisor_lost(self) -> bool:
        """Nobody watches the engine any more: what it does is no evidence."""

    def exit_code(self) -> int | None:
        """Exit code of the main process, negative for a signal; None while it lives."""

    async def exited(self) -> int | None:
        """Wait until the main process has ended."""

    def processes(self) -> Sequence[ProcessFacts]:
        """The living processes of the engine."""

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far, in seconds."""

    def owns_port(self, port: int) -> bool:
        """Whether whoever answers at `port` is this engine, and nobody else."""

    async def stop(self, grace: float = 5.0) -> StopReport:
        """End everything that the engine started, by force after `grace` seconds."""


class Executor(Protocol):
    """A place where engines can be started."""

    async def start(self, launch: Launch, log: Path, run_tag: str) -> RunningEngine:
        """Start the engine of a trial. Raises CannotStart, before anything runs, with one clear line."""


class LocalExecutor:
    """Engines on this machine, a process tree each.

    `surrounding` is the environment in which the launch's own assignments are made; by default culpa's own.
    """

    def __init__(self, surrounding: Mapping[str, str] | None = None) -> None:
        self._surrounding = dict(os.environ if surrounding is None else surrounding)

    async def start(self, launch: Launch, log: Path, run_tag: str) -> EngineProcess:
        """Start the engine of a trial. Raises CannotStart, before anything runs, with one clear line."""
        env = launch.environment(self._surrounding)
        return await EngineProcess.start(launch.argv, env, launch.cwd, log, run_tag)
