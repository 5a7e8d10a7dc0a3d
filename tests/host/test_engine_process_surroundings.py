"""What an engine process is given: environment, arguments, folder, log; and what cannot start at all."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from tests.host.scripts import Scripts

from culpa.host import CannotStart, EngineProcess

SLEEP = "import time; print('up'); time.sleep(600)"


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


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
