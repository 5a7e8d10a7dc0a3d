"""EngineProcess on real small processes: how they start, how they end, what is known of them meanwhile."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from tests.host.scripts import Scripts, wait_until

from culpa.host import CannotStart, EngineProcess, leftovers

SLEEP = "import time; print('up'); time.sleep(600)"


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
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
    )

    async def run() -> None:
        engine = await scripts.start(script)
        scripts.wait_for_lines()
        report = await engine.stop(grace=0.2)
        assert (report.exit_code, report.killed, report.survivors) == (-signal.SIGKILL, True, ())
        assert report.seconds >= 0.2

    asyncio.run(run())


def test_a_shorter_grace_overrules_a_stop_that_waits(scripts: Scripts) -> None:
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
    )

    async def run() -> None:
        engine = await scripts.start(script)
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
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
    )

    async def run() -> None:
        engine = await scripts.start(script)
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


def test_if_the_supervisor_is_killed_stop_still_ends_the_tree(scripts: Scripts) -> None:
    script = f"""
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, '-c', {SLEEP!r}], env={{}}, start_new_session=True)
        print(child.pid, os.getppid())
        time.sleep(600)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        assert not engine.supervisor_lost()
        child, supervisor = map(int, scripts.wait_for_lines()[0].split())
        os.kill(supervisor, signal.SIGKILL)
        assert await engine.exited() is None
        assert engine.supervisor_lost()
        report = await engine.stop()
        assert (report.exit_code, report.survivors) == (None, ())
        assert not lives(engine.pid)
        assert not lives(child)

    asyncio.run(run())


def test_the_environment_is_the_given_one_with_the_tag_of_the_run(scripts: Scripts) -> None:
    env = {"PATH": os.environ["PATH"], "EMPTY": "", "ODD": "a=b\nc 'd' \"e\"", "UNICODE": "切片"}

    async def run() -> None:
        engine = await scripts.start("import os, json; print(json.dumps(dict(os.environ)))", env)
        await engine.exited()
        seen = json.loads(scripts.lines()[0])
        tag = seen.pop("CULPA_RUN")
        assert tag.startswith(f"{scripts.tag}/")
        seen.pop("LC_CTYPE", None)  # a Python started in the C locale sets it for itself
        assert seen == env
        await engine.stop()

    asyncio.run(run())


def test_arguments_arrive_as_they_are(scripts: Scripts) -> None:
    words = ["", " ", "a'b", '"', "$HOME", "line\nbreak", "切片", "--x={}"]

    async def run() -> None:
        argv = [*scripts.argv("import sys, json; print(json.dumps(sys.argv[1:]))"), *words]
        engine = await EngineProcess.start(argv, dict(os.environ), None, scripts.log, scripts.tag)
        await engine.exited()
        assert json.loads(scripts.lines()[0]) == words
        await engine.stop()

    asyncio.run(run())


def test_the_engine_is_isolated_from_the_terminal_and_from_descriptors(scripts: Scripts) -> None:
    script = """
        import json, os, signal
        print(json.dumps({
            'session': os.getsid(0), 'pid': os.getpid(), 'stdin': os.read(0, 1).decode(),
            'descriptors': sorted(int(name) for name in os.listdir('/proc/self/fd'))[:-1],
            'blocked': [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
            'hang up': str(signal.getsignal(signal.SIGHUP)),
        }))
    """
    read, write = os.pipe()
    os.set_inheritable(write, True)

    async def run() -> None:
        engine = await scripts.start(script)
        await engine.exited()
        seen = json.loads(scripts.lines()[0])
        assert seen["session"] == seen["pid"] == engine.pid
        assert seen["stdin"] == ""
        assert seen["descriptors"] == [0, 1, 2]
        assert seen["blocked"] == []
        assert seen["hang up"] == str(signal.SIG_DFL)
        await engine.stop()

    try:
        asyncio.run(run())
    finally:
        os.close(read)
        os.close(write)


def test_stdout_and_stderr_keep_their_order_in_the_log(scripts: Scripts) -> None:
    script = """
        import sys
        for number in range(200):
            print(number, file=(sys.stdout, sys.stderr)[number % 2])
    """

    async def run() -> None:
        engine = await scripts.start(script)
        await engine.exited()
        assert scripts.lines() == [str(number) for number in range(200)]
        await engine.stop()

    asyncio.run(run())


def test_an_old_log_is_emptied(scripts: Scripts) -> None:
    scripts.log.write_text("of an earlier trial\n")

    async def run() -> None:
        engine = await scripts.start("print('new')")
        await engine.exited()
        assert scripts.lines() == ["new"]
        await engine.stop()

    asyncio.run(run())


def test_the_working_folder_is_the_given_one(scripts: Scripts, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "engine").write_text("#!/bin/sh\npwd\n")
    (folder / "engine").chmod(0o755)

    async def run() -> None:
        engine = await EngineProcess.start(["./engine"], {}, str(folder), scripts.log, scripts.tag)
        await engine.exited()
        assert scripts.lines() == [str(folder)]
        await engine.stop()

    asyncio.run(run())


def test_processor_time_of_workers_counts_also_after_they_end(scripts: Scripts) -> None:
    script = """
        import os, time
        if os.fork() == 0:
            while time.process_time() < 0.3:
                pass
            os._exit(0)
        os.wait()
        print('done')
        time.sleep(600)
    """

    async def run() -> None:
        engine = await scripts.start(script)
        scripts.wait_for_lines()
        assert engine.cpu_seconds() >= 0.25
        await engine.stop()

    asyncio.run(run())


def test_two_engines_run_side_by_side_and_end_apart(scripts: Scripts, tmp_path: Path) -> None:
    async def run() -> None:
        argv, env = scripts.argv(SLEEP), dict(os.environ)
        first = await EngineProcess.start(argv, env, None, tmp_path / "first.log", scripts.tag)
        second = await EngineProcess.start(argv, env, None, tmp_path / "second.log", scripts.tag)
        await first.stop()
        assert second.exit_code() is None
        assert lives(second.pid)
        await second.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "the command is empty"),
        (("",), "the command is empty: its first word is ''"),
        (("no-such-engine", "--x"), "command not found: no-such-engine (searched the PATH of the launch)"),
        (("./missing",), "./missing does not exist in {cwd}"),
        (("./folder",), "./folder is a folder, not a program"),
        (("./plain",), "./plain is not executable (chmod +x ./plain, if it is a program)"),
        (("plain",), "command not found: plain (a file of this name is in the working folder: ./plain)"),
        (("in-path",), "in-path is not executable: {cwd}/bin/in-path"),
        (
            ("./noformat",),
            "{cwd}/noformat is no program for this machine: no #! line, or another architecture",
        ),
        (
            ("./nointerpreter",),
            "{cwd}/nointerpreter asks for an interpreter that does not exist: /no/such/python",
        ),
        (
            ("./nointerpreter", "a\0b"),
            "an argument or environment variable of the launch holds a NUL character",
        ),
    ],
)
def test_what_cannot_start_is_said_in_one_line(tmp_path: Path, argv: tuple[str, ...], message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bin").mkdir()
    for name, text, mode in (
        ("plain", "x", 0o644),
        ("bin/in-path", "x", 0o644),
        ("noformat", "x", 0o755),
        ("nointerpreter", "#!/no/such/python -u\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    env = {"PATH": f"{tmp_path / 'bin'}"}
    start = EngineProcess.start(argv, env, str(tmp_path), tmp_path / "logs" / "engine.log", "tag")
    with pytest.raises(CannotStart) as caught:
        asyncio.run(start)
    assert str(caught.value) == message.format(cwd=tmp_path)


@pytest.mark.parametrize("cwd", ["missing", "file"])
def test_a_working_folder_that_is_none_cannot_start(tmp_path: Path, cwd: str) -> None:
    (tmp_path / "file").touch()
    start = EngineProcess.start([sys.executable], {}, str(tmp_path / cwd), tmp_path / "engine.log", "tag")
    with pytest.raises(CannotStart, match="working folder"):
        asyncio.run(start)


def test_a_log_that_cannot_be_written_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    start = EngineProcess.start([sys.executable], {}, None, tmp_path / "file" / "engine.log", "tag")
    with pytest.raises(CannotStart, match="cannot be written"):
        asyncio.run(start)
