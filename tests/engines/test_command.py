"""Commands as people paste them, and programs behind wrappers."""

import stat
from pathlib import Path

import pytest

from culpa.engines import BadLaunch, parse_command
from culpa.engines.command import check_programs, find_program, first_program
from culpa.model import Launch

READ = [
    (["llama-server", "-c", "1"], ("llama-server", "-c", "1"), ()),
    (["A=1", "B=x=y", "llama-server"], ("llama-server",), (("A", "1"), ("B", "x=y"))),
    (["env", "A=1", "llama-server"], ("llama-server",), (("A", "1"),)),
    (["A=1", "env", "-u", "B", "C=", "x"], ("x",), (("A", "1"), ("B", None), ("C", ""))),
    (["env", "-uB", "--unset=C", "--", "x"], ("x",), (("B", None), ("C", None))),
    (["A=1 llama-server --prompt 'two words'"], ("llama-server", "--prompt", "two words"), (("A", "1"),)),
    (["vllm serve M \\\n  -pp 2"], ("vllm", "serve", "M", "-pp", "2"), ()),
    (["A=1", "A=2", "x"], ("x",), (("A", "2"),)),
    (["numactl", "-N", "0", "x", "-c", "3"], ("numactl", "-N", "0", "x", "-c", "3"), ()),
    (["x", "B=2"], ("x", "B=2"), ()),
    (["./my engine"], ("./my", "engine"), ()),
]


@pytest.mark.parametrize(("words", "argv", "env"), READ)
def test_a_command_becomes_a_launch(
    words: list[str], argv: tuple[str, ...], env: tuple[tuple[str, str | None], ...]
) -> None:
    assert parse_command(words) == Launch(argv=argv, env=env)


REFUSED = [
    ([], "no command given: put the engine's launch after --"),
    (["A=1"], "no command after the assignments"),
    (["  "], "no command given"),
    (["cd x && vllm serve M"], "uses the shell (&&)"),
    (["vllm serve M | tee log"], "uses the shell (|)"),
    (["vllm serve 'M"], "can't be read: No closing quotation"),
    (["env", "-i", "x"], "env -i is not understood"),
    (["bash", "-c", "vllm serve M"], "bash -c hides the engine's flags"),
    (["docker", "run", "vllm/vllm-openai"], "docker starts the engine out of reach"),
    (["nohup", "ssh", "host", "vllm"], "ssh starts the engine out of reach"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_a_command_that_is_none_is_refused_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(BadLaunch) as raised:
        parse_command(words)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


PROGRAMS = [
    ("llama-server -c 1", "llama-server", 1),
    ("/opt/bin/llama-server -c 1", "llama-server", 1),
    ("taskset -c 0-3 llama-server -c 1", "llama-server", 4),
    ("taskset 0x3 llama-server", "llama-server", 3),
    ("numactl --cpunodebind=0 -m 0 llama-server", "llama-server", 5),
    ("nohup nice -n 5 llama-server", "llama-server", 5),
    ("uv run --with x python -u -m my.engine --port 1", "my.engine", 8),
    ("python3.11 -X dev serve.py --port 1", "serve.py", 4),
    ("timeout -k 5 100 stdbuf -oL llama-server", "llama-server", 7),
    ("env A=1 llama-server", "llama-server", 3),
    ("conda run -n base llama-server", "llama-server", 5),
    ("python", "python", 1),
]


@pytest.mark.parametrize(("line", "name", "arguments"), PROGRAMS)
def test_the_program_is_found_behind_wrappers(line: str, name: str, arguments: int) -> None:
    program = first_program(line.split())
    assert (program.name, program.arguments) == (name, arguments)


def test_a_module_is_a_program_only_behind_python() -> None:
    found = find_program(["taskset", "-c", "0", "/usr/bin/python3", "-m", "eng"], {"x"}, {"eng"})
    assert found is not None
    assert (found.name, found.arguments, found.module) == ("eng", 6, True)
    assert find_program(["grep", "-m", "eng"], {"x"}, {"eng"}) is None


def test_a_script_is_found_by_the_end_of_its_path() -> None:
    found = find_program(["python", "/a/vllm/api_server.py", "--x"], set(), (), {"vllm/api_server.py"})
    assert found is not None
    assert found.arguments == 2


def test_a_command_that_is_on_no_folder_of_path_is_named() -> None:
    launch = Launch(("no-such-engine", "--x"))
    with pytest.raises(BadLaunch, match="no-such-engine: command not found"):
        check_programs(launch, None, {"PATH": "/usr/bin"})


def test_the_path_of_the_launch_decides(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n")
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    check_programs(Launch(("engine",), (("PATH", str(tmp_path)),)), None, {"PATH": "/usr/bin"})


def test_a_program_behind_a_wrapper_is_looked_for_too() -> None:
    argv = ("env", "no-such-engine")
    with pytest.raises(BadLaunch, match="no-such-engine: command not found"):
        check_programs(Launch(argv), first_program(argv), {"PATH": "/usr/bin:/bin"})


def test_a_path_must_be_an_executable_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for word, message in (
        ("./gone", "no such file"),
        (".", None),
        ("./text", "is not executable"),
        ("./", "is a folder"),
    ):
        if message is not None:
            with pytest.raises(BadLaunch, match=message):
                check_programs(Launch((word,), cwd=str(tmp_path)), None, {})
