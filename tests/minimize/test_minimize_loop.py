"""`culpa minimize` on the fake engine, as a user would: from a run to files that run by themselves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.loop.runs import Finished, environment, isolate

from culpa.host import free_port

pytestmark = pytest.mark.slow


def minimize(run: Path, *options: str, **fake: str) -> Finished:
    done = subprocess.run(
        [sys.executable, "-m", "culpa", "minimize", str(run), *options],
        env=environment(**fake),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    path = run / "minimize" / "minimization.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return Finished(done.returncode, done.stdout, done.stderr, result)


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minimize") / "run"
    found = isolate(folder, "--no-thresholds", "--only", "eager", "--only", "kv", FAKE_FAULT=FAULT).found
    assert found == [["eager", "kv"]]
    return folder


@pytest.fixture
def copied(isolated: Path, tmp_path: Path) -> Path:
    return Path(
        shutil.copytree(isolated, tmp_path / "run", ignore=shutil.ignore_patterns("minimize", ".lock"))
    )


FAULT = "eager==on && kv==fp8"


def test_only_what_matters_is_left_and_the_files_run(isolated: Path) -> None:
    # The fake engine's fault is a variable: it stands in for the engine's own code.
    done = minimize(isolated, "--no-rerun", FAKE_FAULT=FAULT)
    assert done.result is not None, done.err
    words = done.result["command"].split()
    assert done.code == 1
    assert [word for word in words if word.startswith("--")] == ["--eager", "--kv"]
    assert done.result["after"]["requests"] == 1
    assert done.result["control"]
    script = isolated / "minimize" / "repro.sh"
    for control, word, code in ((), "FAIL", 1), (("control",), "PASS", 0):
        port = free_port()
        ran = subprocess.run(
            ["sh", str(script), *control],
            env={**environment(FAKE_FAULT=FAULT), "PORT": str(port)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert (ran.returncode, ran.stdout.split(":")[0]) == (code, word), ran.stdout + ran.stderr
        assert not speaking_of(port)


def test_a_signal_ends_the_script_and_its_engine(isolated: Path) -> None:
    # After the test above: the files are there.
    port = free_port()
    script = isolated / "minimize" / "repro.sh"
    process = subprocess.Popen(
        ["sh", str(script)],
        # A request that never comes back.
        env={**environment(FAKE_FAULT=FAULT, FAKE_SYMPTOM="hang"), "PORT": str(port)},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not speaking_of(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(timeout=60) == 2
    deadline = time.monotonic() + 20
    while speaking_of(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not speaking_of(port)


def test_what_was_tried_is_not_tried_again(isolated: Path) -> None:
    done = minimize(isolated, "--no-rerun", "--json", FAKE_FAULT="pp==77")
    assert done.code == 1
    assert json.loads(done.out)["after"]["requests"] == 1


def test_a_limit_ends_it_with_what_is_small_so_far(copied: Path) -> None:
    done = minimize(copied, "--no-rerun", "--max-trials", "5", FAKE_FAULT=FAULT)
    assert done.result is not None, done.err
    assert done.result["stopped"] == "--max-trials of 5"
    assert done.result["trials"] == 5
    assert "--seqs" not in done.result["command"]


def test_a_failure_that_does_not_come_any_more_is_told_in_one_line(copied: Path) -> None:
    done = minimize(copied, "--no-rerun", "--max-trials", "2", FAKE_FAULT="pp==77")
    assert done.code == 2
    assert "did not fail in 2 trials" in done.err
    assert done.err.count("\n") == 1


def test_an_interruption_leaves_no_process_and_the_same_command_goes_on(copied: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "culpa", "minimize", str(copied), "--no-rerun"],
        env=environment(FAKE_FAULT=FAULT),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("start:")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    done = minimize(copied, "--no-rerun", FAKE_FAULT=FAULT)
    assert done.code == 1
    assert done.result is not None
    assert done.result["stopped"] == ""


@pytest.mark.parametrize(
    ("outcome", "options", "told"),
    [
        ("nothing", (), "is no folder of a run"),
        ("no failure", (), "with no isolated set"),
        ("isolated", ("--finding", "9"), "--finding 9: the run has 1"),
        ("isolated", ("--max-time", "soon"), "--max-time"),
    ],
)
def test_bad_input_is_one_line(
    outcome: str, options: tuple[str, ...], told: str, tmp_path: Path, isolated: Path
) -> None:
    folder = isolated if outcome == "isolated" else tmp_path / "run"
    if outcome == "no failure":
        isolate(folder, "--patience", "1s", "--max-trials", "1")
    done = minimize(folder, *options, FAKE_FAULT=FAULT)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


def speaking_of(port: int) -> list[str]:
    """Processes with this port in their command line that live."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if str(port) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(" ".join(line))
    return found
