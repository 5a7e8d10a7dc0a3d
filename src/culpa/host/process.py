"""An engine as a tree of processes that is started once and ended completely."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from culpa.host import tree
from culpa.host.executable import CannotStart, find_executable, why_refused, working_folder
from culpa.host.leftovers import RUN_VARIABLE, end_leftovers
from culpa.host.ports import listeners, owned_by
from culpa.host.tree import ProcessFacts

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_START_SECONDS = 30.0  # a machine that can't start a small Python in this time can't run a trial
_KILL_SECONDS = 8.0  # beyond the grace: the supervisor names survivors after 5 s of SIGKILL


@dataclass(frozen=True, slots=True)
class StopReport:
    """How an engine's tree ended.

    `exit_code` is that of the main process (negative for a signal; None if nobody could learn it),
    `survivors` name processes that even SIGKILL did not end, `seconds` is what the stop took, and `killed`
    says whether SIGKILL was needed.
    """

    exit_code: int | None
    survivors: tuple[str, ...]
    seconds: float
    killed: bool


class EngineProcess:
    """A started engine with all its descendants, daemons included.

    A supervisor process stands between culpa and the engine (see `culpa.host.supervisor`). It ends the tree
    on `stop`, and also when culpa itself dies, however it dies. The engine has its own session: Ctrl-C in
    the terminal reaches culpa only. Its stdin is /dev/null, its stdout and stderr go to `log`.
    """

    def __init__(self, supervisor: subprocess.Popen[bytes], control: int, status: int, log: Path, tag: str):
        """For `start`; `control` and `status` are culpa's ends of the supervisor's pipes."""
        self.pid = 0
        self.log = log
        self.tag = tag
        self._supervisor = supervisor
        self._control: int | None = control
        self._status: int | None = status
        self._received = b""
        self._exit_code: int | None = None
        self._failure: str | None = None
        self._survivors: tuple[str, ...] = ()
        self._ended = False  # end of file on the status pipe: the supervisor has ended
        self._gone = False  # ... after it had seen that nothing of the tree lives
        self._killed = False
        self._changes: set[asyncio.Future[None]] = set()
        self._report: StopReport | None = None

    @classmethod
    async def start(
        cls, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, log: Path, run_tag: str
    ) -> "EngineProcess":
        """Start `argv` with exactly the environment `env` and a variable CULPA_RUN; the log is emptied first.

        CULPA_RUN is `run_tag` and after a slash a word of this engine's own. Raises CannotStart, before
        anything runs, if the program or the folder is not there or the kernel refuses it.
        """
        if not argv:
            raise CannotStart("the command is empty")
        folder = working_folder(cwd)
        executable = find_executable(argv[0], env, folder)
        tag = f"{run_tag}/{uuid.uuid4().hex[:12]}"
        spec = _specification(executable, folder, argv, {**env, RUN_VARIABLE: tag})
        engine, errors = _start_supervisor(spec, log, tag)
        try:
            with errors:
                await engine._until(
                    lambda: bool(engine.pid or engine._failure or engine._lost), _START_SECONDS
                )
                if engine._failure is not None:
                    number, _, text = engine._failure.partition(" ")
                    raise CannotStart(why_refused(executable, int(number), text))
                if not engine.pid:
                    errors.seek(0)
                    last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                    raise CannotStart(
                        f"the supervisor process did not start: {' '.join(last) or 'no answer'}"
                    )
        except BaseException:
            engine._abandon()
            raise
        return engine

    def exit_code(self) -> int | None:
        """Exit code of the engine's main process, negative for a signal; None while it lives.

        Other processes of the tree may live on: only `stop` ends them all.
        """
        self._drain()
        return self._exit_code

    def supervisor_lost(self) -> bool:
        """Somebody killed the supervisor: what becomes of the engine can't be known any more."""
        self._drain()
        return self._lost and not self._gone

    def processes(self) -> list[ProcessFacts]:
        """The living processes of the tree."""
        found = (tree.facts_of(process) for process in tree.descendants(self._supervisor.pid))
        return [facts for facts in found if facts is not None]

    def cpu_seconds(self) -> float:
        """CPU time of the whole tree so far, in seconds: a sign of progress."""
        return tree.tree_cpu_seconds(self._supervisor.pid)

    def owns_port(self, port: int) -> bool:
        """Whether whoever answers at 127.0.0.1:`port` belongs to this tree, and nobody else does."""
        found = listeners(port)
        return bool(found) and owned_by(found, [p.pid for p in tree.descendants(self._supervisor.pid)])

    async def exited(self) -> int | None:
        """Wait until the main process has ended. Returns its exit code (None if the supervisor was lost)."""
        await self._until(lambda: self._exit_code is not None or self._lost, None)
        return self._exit_code

    async def stop(self, grace: float = 5.0) -> StopReport:
        """End the whole tree: SIGTERM, after `grace` seconds SIGKILL, until nothing lives.

        Returns when the tree is verified gone, or names the survivors. May be called again, also with a
        shorter grace while an earlier call waits. A cancelled call leaves the supervisor at its work.
        """
        if self._report is not None:
            return self._report
        begun = time.monotonic()
        self._drain()
        if self._control is not None and not (self._gone or self._lost):
            with contextlib.suppress(BrokenPipeError):
                os.write(self._control, f"stop {max(0.0, grace):.3f}\n".encode())
        ended = await self._until(
            lambda: self._gone or self._lost or bool(self._survivors), grace + _KILL_SECONDS
        )
        if self._lost and not self._gone:
            survivors = await asyncio.to_thread(end_leftovers, self.tag, self.log)
            self._killed = True
        elif not ended:
            survivors = tuple(facts.describe() for facts in self.processes())
        else:
            survivors = () if self._gone else self._survivors
        report = StopReport(self._exit_code, survivors, time.monotonic() - begun, self._killed)
        if not survivors:
            self._abandon()
            self._report = report
        return report

    def _abandon(self) -> None:
        """Be done with the supervisor: it ends whatever is left at once and exits."""
        if self._control is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._control, b"stop 0\n")
            os.close(self._control)
            self._control = None
        if self._status is not None:
            if self._changes:
                asyncio.get_running_loop().remove_reader(self._status)
            os.close(self._status)
            self._status = None
            self._wake()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(_KILL_SECONDS)

    @property
    def _lost(self) -> bool:
        return self._status is None or self._ended

    def _drain(self) -> None:
        """Take in what the supervisor has reported."""
        while self._status is not None and not self._ended:
            try:
                chunk = os.read(self._status, 65536)
            except BlockingIOError:
                return
            self._ended = not chunk
            *lines, self._received = (self._received + chunk).split(b"\n")
            for line in lines:
                self._heed(line.decode(errors="replace"))

    def _heed(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        match word:
            case "started":
                self.pid = int(rest)
            case "failed":
                self._failure = rest
            case "exit":
                self._exit_code = int(rest)
            case "survivors":
                self._survivors = tuple(f"pid {pid} ({name})" for pid, _, name in _pairs(rest))
            case "gone":
                self._gone, self._killed = True, rest == "1"

    async def _until(self, condition: Callable[[], bool], patience: float | None) -> bool:
        """Wait for a report that makes `condition` true. False: `patience` seconds have passed without."""
        loop = asyncio.get_running_loop()
        deadline = None if patience is None else loop.time() + patience
        while True:
            self._drain()
            if condition():
                return True
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return False
            await self._change(loop, left)

    async def _change(self, loop: asyncio.AbstractEventLoop, patience: float | None) -> None:
        """Wait until the status pipe can be read. Several may wait at once; one reader serves them all."""
        if self._status is None:
            return
        future = loop.create_future()
        if not self._changes:
            loop.add_reader(self._status, self._notify)
        self._changes.add(future)
        try:
            await asyncio.wait([future], timeout=patience)
        finally:
            self._changes.discard(future)
            if not self._changes and self._status is not None:
                loop.remove_reader(self._status)

    def _notify(self) -> None:
        self._drain()
        self._wake()

    def _wake(self) -> None:
        for future in self._changes:
            if not future.done():
                future.set_result(None)


def _specification(executable: Path, folder: Path, argv: Sequence[str], env: Mapping[str, str]) -> bytes:
    """What the supervisor reads: NUL-separated fields (see its docstring)."""
    pairs = [f"{name}={value}" for name, value in env.items()]
    fields = [str(executable), str(folder), str(len(argv)), *argv, *pairs]
    if any("\0" in field for field in fields):
        raise CannotStart("an argument or environment variable of the launch holds a NUL character")
    if any("=" in name or not name for name in env):
        raise CannotStart("the name of an environment variable of the launch is empty or holds a '='")
    return b"".join(os.fsencode(field) + b"\0" for field in fields)


def _start_supervisor(spec: bytes, log: Path, tag: str) -> tuple[EngineProcess, IO[bytes]]:
    """Start the supervisor on a specification. Returns the engine to be, and the supervisor's own stderr.

    The specification holds the environment and so perhaps secrets: it goes through a file without a name.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise CannotStart(f"the log {log} cannot be written: {error.strerror}") from error
    errors = tempfile.TemporaryFile()  # noqa: SIM115 (handed to the caller)
    control_read, control_write = os.pipe()
    status_read, status_write = os.pipe()
    try:
        with tempfile.TemporaryFile() as specification:
            specification.write(spec)
            specification.seek(0)
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(control_read), str(status_write)],
                stdin=specification,
                stdout=output,
                stderr=errors,
                pass_fds=(control_read, status_write),
                start_new_session=True,
                cwd="/",
                env={},
            )
    except BaseException:
        errors.close()
        os.close(control_write)
        os.close(status_read)
        raise
    finally:
        for descriptor in (output, control_read, status_write):
            os.close(descriptor)
    os.set_blocking(status_read, False)
    return EngineProcess(supervisor, control_write, status_read, log, tag), errors


def _pairs(text: str) -> list[tuple[str, str, str]]:
    return [word.partition(":") for word in text.split("\t")]
