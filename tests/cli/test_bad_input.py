"""Bad input leaves as one line that says what is wrong and what to do, with exit code 2, and loses nothing."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loop.runs import FACTORS, FAKE_ENGINE

from culpa.cli.app import _run

ENGINE = ("--", sys.executable, str(FAKE_ENGINE), "--eager")
GENERIC = ("--factors", str(FACTORS))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


CASES = {
    "no command": (["isolate"], "no command given"),
    "engine that is not recognised": (["isolate", *ENGINE], "--factors FILE"),
    "binary that is not there": (["isolate", "--", "llama-server", "-m", "x.gguf"], "command not found"),
    "factors file that is missing": (["isolate", "--factors", "no.toml", *ENGINE], "no.toml does not exist"),
    "factor with a typo": (["isolate", *GENERIC, "--only", "eagre", *ENGINE], "did you mean eager?"),
    "arm with a typo": (["isolate", *GENERIC, "--arm", "prefx", *ENGINE], "did you mean prefix?"),
    "arm with an unknown level": (["isolate", *GENERIC, "--arm", "eager=maybe", *ENGINE], "no level 'maybe'"),
    "arm that can't be varied": (["isolate", *GENERIC, "--arm", "pp", *ENGINE], "already at its safe level"),
    "nothing left to vary": (
        ["isolate", *GENERIC, "--only", "eager", "--skip", "eager", *ENGINE],
        "no factor left to vary",
    ),
    "port that is none": (
        ["isolate", *GENERIC, *ENGINE, "--port", "99999"],
        "port 99999 of the launch is none",
    ),
    "folder name that is too long": (
        ["isolate", *GENERIC, "--out", "x" * 300, *ENGINE],
        "can't make the run folder",
    ),
    "prompt that nobody can make": (["isolate", *GENERIC, "--probe-tokens", "9" * 17, *ENGINE], "4000000"),
    "request file that is missing": (["isolate", *GENERIC, "--request", "no.json", *ENGINE], "no.json"),
    "question without an answer": (["isolate", *GENERIC, "--question", "what?", *ENGINE], "QUESTION=ANSWER"),
    "two records": (["isolate", *GENERIC, "--record", "a=1", "--record", "b=2", *ENGINE], "given once"),
    "time that is none": (["isolate", "--max-time", "soon", *ENGINE], "is no duration"),
    "confidence out of range": (["isolate", "--confidence", "2", *ENGINE], "0.999"),
    "option that does not exist": (["isolate", "--frobnicate", *ENGINE], "--frobnicate"),
    "verb that does not exist": (["frobnicate"], "frobnicate"),
    "run that is not there": (["isolate", "--resume", "nowhere"], "holds no run"),
    "resume with a command": (["isolate", "--resume", "nowhere", *ENGINE], "leave it out"),
    "runs of a folder that is missing": (["runs", "nowhere"], "does not exist"),
    "log whose name moves the cursor": (
        ["triage", "\x1b[31mno\u202e\n.log"],
        "culpa: no .log does not exist",
    ),
    "log whose name is too long": (["triage", "x" * 300], "File name too long"),
    "engine whose logs nobody knows": (["triage", "--engine", "x", "y"], "'--engine': 'x' is not one of"),
    "address whose port is none": (["verify", "--endpoint", "http://127.0.0.1:99999"], "begins with http://"),
    "address without a host": (["verify", "--endpoint", "http://"], "names a host"),
    "address that is not closed": (["verify", "--endpoint", "http://[::1"], "names a host"),
    "address with an escape": (["verify", "--endpoint", "http://host/\x1b[31m"], "names a host"),
    "key that no header can hold": (["verify", "--endpoint", "http://h", "--api-key", "a\nb"], "--api-key"),
    "question to nobody": (["verify", "--question", "what?", "--endpoint", "http://h"], "QUESTION=ANSWER"),
    "request to nobody": (["verify", "--request", "no.json", "--endpoint", "http://h"], "no.json"),
    "kernel log that is missing": (
        ["verify", "--kernel-log", "no", "--endpoint", "http://h"],
        "no such file",
    ),
    "kernel log that is a folder": (["isolate", *GENERIC, "--kernel-log", ".", *ENGINE], "it is no file"),
    "model of a launch": (["verify", "--model", "m", *GENERIC, *ENGINE], "goes with --endpoint"),
    "faults into a file": (["bench", "zoo", "--out", "/dev/null"], "is not a folder"),
    "report into a folder": (["verify", "--endpoint", "http://h", "--junit", "."], "--junit .: can't be"),
    "answers into a folder that is missing": (
        ["verify", "--endpoint", "http://h", "--record-golden", "no/g.json"],
        "--record-golden no/g.json: can't be written: no does not exist",
    ),
    "time that nobody lives to see": (
        ["isolate", "--max-time", "9" * 400 + "h", *ENGINE],
        "longer than a year",
    ),
    "two sizes where one is taken": (["layout", "x/y", "--overhead", "1,2"], "culpa: "),
    "layout of nothing": (["layout"], "culpa: give a MODEL"),
    "setting of thousands of digits": (["layout", "hub/name", "-pp", "9" * 5000], "give a whole number"),
}


@pytest.mark.parametrize(("arguments", "told"), CASES.values(), ids=CASES.keys())
def test_bad_input_is_one_line_and_exit_code_2(
    own_folder: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("culpa: ")
    assert captured.err.count("\n") == 1
    assert told in captured.err


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in CASES.values()], ids=CASES.keys())
def test_bad_input_leaves_no_folder_behind(own_folder: Path, arguments: list[str]) -> None:
    _run(arguments)
    assert list(own_folder.iterdir()) == []


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_port_that_is_taken_is_told_with_its_owner(
    own_folder: Path, taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["isolate", *GENERIC, *ENGINE, "--port", str(taken)]) == 2
    told = capsys.readouterr().err
    assert f"port {taken} of the launch is taken by pid" in told
    assert told.count("\n") == 1


def test_missing_model_folder_is_told(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    assert _run(["isolate", "--", *server, "--model", "/no/such/model"]) == 2
    assert "/no/such/model" in capsys.readouterr().err


def test_annotation_goes_to_no_folder(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "engine.log").write_text("INFO ready\n")
    for target in ("", ".", "nowhere/marked.log"):
        assert _run(["triage", "engine.log", "--annotate", target]) == 2
        assert "can't be written" in capsys.readouterr().err


def test_closed_standard_input_is_told(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert _run(["triage"]) == 2
    assert "name the log files" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1" * 6000, "[" * 100_000, "{", "\xff"])
def test_configuration_that_is_no_json_is_told(
    text: str, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_folder / "config.json").write_text(text, "latin-1")
    assert _run(["layout", "config.json"]) == 2
    assert "no JSON" in capsys.readouterr().err


def test_a_complaint_that_nobody_can_read_keeps_its_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "culpa", "runs", "nowhere"], stderr=full, timeout=60, check=False
        )
    assert done.returncode == 2


def test_a_log_is_annotated_where_the_terminal_knows_nothing_but_ascii(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("INFO \u2588 ready\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "culpa", "triage", "engine.log", "--annotate", "-"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert b"INFO ? ready" in done.stdout


def test_a_group_of_verbs_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["bench"]) == 0
    assert "zoo" in capsys.readouterr().out


def test_help_names_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run([]) == 0
    assert "isolate" in capsys.readouterr().out


def test_plan_is_printed_and_nothing_is_run(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["isolate", "--dry-run", *GENERIC, *ENGINE]) == 0
    assert "eager" in capsys.readouterr().out
    assert list(own_folder.iterdir()) == []
