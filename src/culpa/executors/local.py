"""The protocol by which a trial gets a running engine, and its implementation on this machine."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from culpa.host import (
    EngineProcess,
    Gpu,
    Machine,
    ProcessFacts,
    StopReport,
    busy_gpus,
    end_leftovers,
    leftovers,
    port_owner,
    visible_gpus,
    wait_until_idle,
)
from culpa.model import Launch


class RunningEngine(Protocol):
    """A started engine, wherever it runs. `EngineProcess` is the one on this machine."""

    @property
    def log(self) -> Path:
        """The file on this machine to which the engine's output goes."""

    def exit_code(self) -> int | None:
        """Exit code of the main process, negative for a signal; None while it lives."""

    async def exited(self) -> int | None:
        """Wait until the main process has ended."""

    @property
    def supervisor_lost(self) -> bool:
        """Nobody watches the engine any more; what it does is not evidence."""

    def processes(self) -> Sequence[ProcessFacts]:
        """The living processes of the engine."""

    def cpu_seconds(self) -> float:
        """CPU time of all its processes so far."""

    def owns_port(self, port: int) -> bool:
        """Whether whoever answers at `port` is this engine, and nobody else."""

    async def stop(self, grace: float = 5.0) -> StopReport:
        """End everything that the engine started."""


class Executor(Protocol):
    """A place where engines can be started, one a trial."""

    def not_ready(self, launch: Launch, port: int) -> str | None:
        """Why a trial of this launch can't begin now (port taken, GPUs busy, remains); None if it can."""

    async def start(self, launch: Launch, log: Path, trial: str) -> RunningEngine:
        """Start the engine. Raises CannotStart, before anything runs, with one clear line."""

    async def not_settled(self, launch: Launch) -> str | None:
        """After a stop: what has not come back (GPU memory, processes); None if all is as it was."""

    def end_remains(self) -> tuple[str, ...]:
        """End what an interrupted culpa left running of this run. Returns who could not be ended."""


class LocalExecutor:
    """Engines on this machine, one process tree each.

    `run` names the run and `folder` is where its logs lie: by either, remains of an interrupted run are
    found again. `surrounding` is the environment in which the launch's own assignments are made.
    """

    def __init__(
        self, run: str, folder: Path, machine: Machine, surrounding: Mapping[str, str] | None = None
    ) -> None:
        self.run = run
        self.folder = folder
        self.machine = machine
        self.surrounding = dict(os.environ if surrounding is None else surrounding)

    def not_ready(self, launch: Launch, port: int) -> str | None:
        """Why a trial of this launch can't begin now; None if it can."""
        if (owner := port_owner(port)) is not None:
            return f"port {port} is taken by {owner}"
        if remains := leftovers(self.run, self.folder):
            return "processes of an earlier trial live: " + "; ".join(facts.describe() for facts in remains)
        if busy := busy_gpus(self._gpus(launch)):
            return "the GPUs are not idle: " + "; ".join(busy)
        return None

    async def start(self, launch: Launch, log: Path, trial: str) -> EngineProcess:
        """Start the engine with CULPA_RUN=`run`/`trial`. Raises CannotStart, with one clear line."""
        return await EngineProcess.start(
            launch.argv, launch.environment(self.surrounding), launch.cwd, log, f"{self.run}/{trial}"
        )

    async def not_settled(self, launch: Launch) -> str | None:
        """Waits until GPU memory is back and nothing of the run lives; says what is not so."""
        if busy := await wait_until_idle(self._gpus(launch)):
            return "GPU memory did not come back: " + "; ".join(busy)
        if remains := leftovers(self.run, self.folder):
            return "processes outlived their trial: " + "; ".join(facts.describe() for facts in remains)
        return None

    def end_remains(self) -> tuple[str, ...]:
        """SIGKILL what an interrupted culpa left running of this run. Returns who could not be ended."""
        return end_leftovers(self.run, self.folder)

    def _gpus(self, launch: Launch) -> tuple[Gpu, ...]:
        visible = launch.environment(self.surrounding).get("CUDA_VISIBLE_DEVICES")
        return visible_gpus(self.machine.gpus, visible)
