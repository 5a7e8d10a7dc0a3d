"""EngineProcess on real small processes: how they start, how they end, what is known of them meanwhile."""

import asyncio
import os
import signal

import psutil
import pytest
from tests.host.scripts import Scripts, wait_until

from culpa.host import leftovers

SLEEP = "import time; print('up'); time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(3)", 3),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_the_exit_code_of_the_main_process_is_told(scripts: Scripts, script: str, code: int) -> None:
    async def run() -> None:
        engine = await scripts.start(script)
        assert await engine.exited() == code
        assert engine.exit_code() == code
        report = await engine.stop()
        assert (report.exit_code, report.survivors, report.killed) == (code, (), False)

    asyncio.run(run())


def test_a_living_engine_has_no_exit_code(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(SLEEP)
        assert engine.exit_code() is None
        assert lives(engine.pid)
        assert (await engine.stop()).exit_code == -signal.SIGTERM
        assert not lives(engine.pid)

    asyncio.run(run())


def test_an_engine_may_end_in_its_own_way_within_the_grace(scripts: Scripts) -> None:
    script = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        print('up')
        time.sleep(600)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        scripts.wait_for_lines()
        report = await engine.stop(grace=60)
        assert (report.exit_code, report.killed, report.survivors) == (7, False, ())
        assert report.seconds < 30

    asyncio.run(run())


def test_an_engine_that_ignores_sigterm_is_killed_after_the_grace(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(STUBBORN)
        scripts.wait_for_lines()
        report = await engine.stop(grace=0.2)
        assert (report.exit_code, report.killed, report.survivors) == (-signal.SIGKILL, True, ())
        assert report.seconds >= 0.2

    asyncio.run(run())


def test_a_shorter_grace_overrules_a_stop_that_waits(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(STUBBORN)
        scripts.wait_for_lines()
        patient = asyncio.create_task(engine.stop(grace=300))
        await asyncio.sleep(0)
        report = await engine.stop(grace=0)
        assert report.killed
        assert (await patient).survivors == ()

    asyncio.run(run())


def test_children_that_outlive_the_main_process_are_known_and_ended(scripts: Scripts) -> None:
    script = f"""
        import subprocess, sys
        child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}])
        print(child.pid)
        sys.exit(5)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        assert await engine.exited() == 5
        child = int(scripts.wait_for_lines()[0])
        assert [facts.pid for facts in engine.processes()] == [child]
        report = await engine.stop()
        assert (report.exit_code, report.survivors) == (5, ())
        assert not lives(child)

    asyncio.run(run())


def test_a_daemon_that_left_by_two_forks_and_ignores_sigterm_is_ended(scripts: Scripts) -> None:
    script = """
        import os, signal, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.closerange(3, 100)
                print(os.getpid(), os.getppid())
                time.sleep(600)
            os._exit(0)
        os.wait()
        time.sleep(600)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        daemon = int(scripts.wait_for_lines()[0].split()[0])
        assert daemon in [facts.pid for facts in engine.processes()]
        report = await engine.stop(grace=0.1)
        assert report.survivors == ()
        assert not lives(daemon)

    asyncio.run(run())


def test_a_stopped_process_is_woken_to_see_sigterm(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(SLEEP)
        os.kill(engine.pid, signal.SIGSTOP)
        report = await engine.stop(grace=60)
        assert (report.exit_code, report.killed) == (-signal.SIGTERM, False)

    asyncio.run(run())


def test_a_tree_that_keeps_forking_is_ended(scripts: Scripts) -> None:
    script = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
        print('up')
        while True:
            if os.fork() == 0:
                time.sleep(0.05)
                os._exit(0)
            time.sleep(0.01)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        scripts.wait_for_lines(4)
        report = await engine.stop(grace=0)
        assert report.survivors == ()
        assert leftovers(scripts.tag) == []

    asyncio.run(run())


def test_a_helper_that_cleans_up_for_an_ending_engine_is_not_disturbed(scripts: Scripts) -> None:
    helper = "import time; time.sleep(0.3); print('cleaned up')"
    script = f"""
        import signal, subprocess, sys, time
        def end(*_):
            sys.exit(subprocess.run([sys.executable, '-u', '-c', {helper!r}]).returncode)
        signal.signal(signal.SIGTERM, end)
        print('up')
        time.sleep(600)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        scripts.wait_for_lines()
        report = await engine.stop(grace=60)
        assert (report.exit_code, report.killed) == (0, False)
        assert scripts.lines()[-1] == "cleaned up"

    asyncio.run(run())


def test_stop_may_be_called_again(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(SLEEP)
        assert await engine.stop() == await engine.stop()

    asyncio.run(run())


def test_whoever_waits_for_the_exit_learns_of_a_stop(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(SLEEP)
        waiting = [asyncio.create_task(engine.exited()) for _ in range(3)]
        await asyncio.sleep(0)
        await engine.stop()
        assert await asyncio.gather(*waiting) == [-signal.SIGTERM] * 3

    asyncio.run(run())


def test_a_cancelled_stop_is_carried_out(scripts: Scripts) -> None:
    async def run() -> None:
        engine = await scripts.start(STUBBORN)
        scripts.wait_for_lines()
        # It ignores the request to end, so the stop can't be over before it is cancelled.
        task = asyncio.create_task(engine.stop(grace=0.5))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await engine.exited() == -signal.SIGKILL
        await engine.stop()

    asyncio.run(run())


def test_a_cancelled_start_leaves_nothing(scripts: Scripts) -> None:
    async def run() -> None:
        task = asyncio.create_task(scripts.start(SLEEP))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    wait_until(lambda: not leftovers(scripts.tag))
