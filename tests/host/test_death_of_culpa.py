"""What becomes of an engine when culpa itself is killed: nothing of it may stay."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.host.scripts import Scripts, wait_until

from culpa.host import end_leftovers, leftovers

# Plays culpa: starts an engine, says who the supervisor is, and waits to be killed.
PARENT = """
import asyncio, os, sys
from pathlib import Path
import psutil
from culpa.host import EngineProcess

async def main():
    tag, log, *argv = sys.argv[1:]
    engine = await EngineProcess.start(argv, dict(os.environ), None, Path(log), tag)
    print(psutil.Process(engine.pid).ppid(), flush=True)
    while Path(log).read_text().count("\\n") < 3:
        await asyncio.sleep(0.01)
    task = asyncio.create_task(engine.stop(grace=600) if os.environ.get("STOPPING") else asyncio.sleep(600))
    await asyncio.sleep(0)
    print("ready", flush=True)
    await task

asyncio.run(main())
"""

# An engine with a worker in a session of its own and a daemon, all deaf to SIGTERM.
ENGINE = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print('daemon')
        time.sleep(600)
    os._exit(0)
os.wait()
if os.fork() == 0:
    os.setsid()
print('up')
time.sleep(600)
"""


class Parent:
    """A process that plays culpa, with an engine below it."""

    def __init__(self, scripts: Scripts, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PARENT, scripts.tag, str(scripts.log), *scripts.argv(ENGINE)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
        )
        assert self.process.stdout is not None
        with self.process.stdout as said:
            self.supervisor = int(said.readline())
            assert said.readline() == b"ready\n"
        assert len(leftovers(scripts.tag)) == 3

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def parents(scripts: Scripts) -> Iterator[Callable[..., Parent]]:
    """Starts processes that play culpa; they are ended after the test."""
    started: list[Parent] = []

    def start(**env: str) -> Parent:
        started.append(Parent(scripts, **env))
        return started[-1]

    yield start
    for parent in started:
        parent.kill()


@pytest.mark.parametrize("env", [{}, {"STOPPING": "1"}], ids=["while it runs", "while it is being stopped"])
def test_kill_9_of_culpa_ends_the_engine_and_the_supervisor(
    scripts: Scripts, parents: Callable[..., Parent], env: dict[str, str]
) -> None:
    parent = parents(**env)
    parent.kill()
    wait_until(lambda: not leftovers(scripts.tag, scripts.folder))
    wait_until(lambda: not psutil.pid_exists(parent.supervisor))


def test_a_supervisor_that_is_asked_to_end_takes_the_engine_along(
    scripts: Scripts, parents: Callable[..., Parent]
) -> None:
    os.kill(parents().supervisor, signal.SIGTERM)
    wait_until(lambda: not leftovers(scripts.tag, scripts.folder))


def test_remains_of_a_killed_culpa_and_supervisor_are_found_and_ended(
    scripts: Scripts, parents: Callable[..., Parent]
) -> None:
    parent = parents()
    os.kill(parent.supervisor, signal.SIGKILL)
    parent.kill()
    remains = leftovers(scripts.tag)
    assert len(remains) == 3
    assert all("time.sleep(600)" in " ".join(facts.cmdline) for facts in remains)
    assert end_leftovers(scripts.tag) == ()
    assert leftovers(scripts.tag) == []


def test_remains_are_found_by_their_log_when_the_environment_does_not_tell(
    scripts: Scripts, tmp_path: Path
) -> None:
    async def run() -> None:
        engine = await scripts.start(
            "import os, time, sys; os.fork(); print('up');"
            "os.execve(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'], {})"
        )
        scripts.wait_for_lines(2)
        wait_until(lambda: not leftovers(scripts.tag))
        assert len(leftovers(scripts.tag, tmp_path)) == 2
        assert leftovers(scripts.tag, tmp_path / "another folder") == []
        await engine.stop()

    asyncio.run(run())


def test_another_run_is_left_alone(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start("import time; time.sleep(600)")
        assert end_leftovers(scripts.tag[:-1]) == ()
        assert engine.exit_code() is None
        await engine.stop()

    asyncio.run(run())
