"""Starts an engine where a trial or a verification wants one, or says in one line why that can't be."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from culpa.engines.base import EngineAdapter
from culpa.engines.errors import BadLaunch
from culpa.executors import Executor
from culpa.host import CannotStart, KernelLog, Machine, free_port, port_owner, wait_until_idle
from culpa.model import Configuration, Launch
from culpa.model.redact import redact
from culpa.session import EngineSession, Patience, Unanswerable

# Puts a measuring device into a launch whose evidence goes to a folder.
Instrument = Callable[[Launch, Path], Launch]

SCRATCH = "scratch"  # the folder of a run that its engines may use


class Starter:
    """Knows where engines of one run are started: place, port, patience, the run's folder and tag."""

    def __init__(
        self,
        adapter: EngineAdapter,
        executor: Executor,
        machine: Machine,
        patience: Patience,
        *,
        folder: Path,
        run_tag: str,
        port: int | None,
        kernel_log: Path | None = None,
    ) -> None:
        self._adapter = adapter
        self._executor = executor
        self._machine = machine
        self._patience = patience
        self._folder = folder
        self._run_tag = run_tag
        self._port = port
        self._kernel_log = kernel_log

    async def start(
        self, launch: Launch, levels: Configuration, folder: Path, instrument: Instrument | None = None
    ) -> EngineSession | Unanswerable:
        """The launch at these levels as a living engine that is not ready yet; its evidence goes into `folder`.

        `instrument` adds what measures in the engine's processes, and may write to that folder too.
        """
        try:
            await self._adapter.make_ready(levels)
            launch = self._adapter.apply(launch, levels)
        except BadLaunch as error:
            return Unanswerable(str(error))
        visible = launch.environment(os.environ).get("CUDA_VISIBLE_DEVICES")
        blocked = await wait_until_idle(self._machine, visible)
        if blocked:
            return Unanswerable(f"the machine is not free for a trial: {'; '.join(blocked)}")
        port = self._port or free_port()
        owner = port_owner(port)
        if owner is not None:
            return Unanswerable(f"port {port} is taken by {owner}")
        scratch = self._folder / SCRATCH
        scratch.mkdir(exist_ok=True)
        prepared = self._adapter.prepare(launch, port, scratch)
        if instrument is not None:
            prepared = replace(prepared, launch=instrument(prepared.launch, folder))
        (folder / "launch.sh").write_text(redact(prepared.launch.command_line()) + "\n", encoding="utf-8")
        kernel = KernelLog(file=self._kernel_log)
        try:
            process = await self._executor.start(prepared.launch, folder / "engine.log", self._run_tag)
        except CannotStart as error:
            kernel.close()
            return Unanswerable(str(error))
        return EngineSession(self._adapter, prepared, port, process, self._patience, levels, folder, kernel)
