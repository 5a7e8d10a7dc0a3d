"""Ctrl-C and kill -9 in the middle of a trial: nothing is left behind, and the run goes on without repeating."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.loop.runs import FAKE_ENGINE, command, environment, finish

pytestmark = pytest.mark.slow

FAULT = {"FAKE_FAULT": "eager==on && pp>1"}


def until(condition: Callable[[], bool], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


def entries(folder: Path) -> list[dict[str, Any]]:
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def engines() -> list[psutil.Process]:
    own = (
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if str(FAKE_ENGINE) in (process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
    )
    return [process for process in own if "isolate" not in process.info["cmdline"]]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run that is in the middle of its fourth trial, its engine alive."""
    folder = tmp_path / "run"
    with (tmp_path / "out").open("wb") as out:
        culpa = subprocess.Popen(
            command(folder), env=environment(**FAULT), stdout=out, stderr=subprocess.STDOUT
        )
    try:
        until(
            lambda: (
                any(e["kind"] == "trial_started" and e["id"] == 4 for e in entries(folder))
                and bool(engines())
            )
        )
        yield culpa
    finally:
        culpa.kill()
        culpa.wait()


def resume(folder: Path) -> dict[str, Any]:
    arguments = [sys.executable, "-m", "culpa", "isolate", "--resume", str(folder)]
    run = finish(arguments, environment(**FAULT), folder)
    assert run.code == 1, run.err
    assert run.result is not None
    return run.result


def finished_trials(folder: Path) -> list[int]:
    return [entry["trial"]["id"] for entry in entries(folder) if entry["kind"] == "trial"]


def test_ctrl_c_ends_the_engine_and_exits_130(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert engines() == []
    result = json.loads((tmp_path / "run" / "experiment.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "inconclusive"
    assert len(result["trials"]) == len(finished_trials(tmp_path / "run"))


def test_run_goes_on_after_ctrl_c_without_repeating(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    running.send_signal(signal.SIGINT)
    running.wait(30)
    before = finished_trials(tmp_path / "run")
    result = resume(tmp_path / "run")
    assert [[m["name"] for m in f["factors"]] for f in result["findings"]] == [["eager", "pp"]]
    ids = finished_trials(tmp_path / "run")
    assert ids[: len(before)] == before
    assert len(ids) == len(set(ids))


def test_kill_9_leaves_no_engine(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(running.pid, signal.SIGKILL)
    running.wait(10)
    until(lambda: engines() == [])


def test_run_goes_on_after_kill_9_without_repeating(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(running.pid, signal.SIGKILL)
    running.wait(10)
    before = finished_trials(tmp_path / "run")
    result = resume(tmp_path / "run")
    assert [[m["name"] for m in f["factors"]] for f in result["findings"]] == [["eager", "pp"]]
    assert finished_trials(tmp_path / "run")[: len(before)] == before


def test_finished_run_resumes_to_the_same_result_without_a_trial(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = finish(command(folder), environment(**FAULT), folder)
    again = resume(folder)
    assert first.result is not None
    assert [trial["id"] for trial in again["trials"]] == [trial["id"] for trial in first.result["trials"]]
    assert again["findings"] == first.result["findings"]
