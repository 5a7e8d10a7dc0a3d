"""`culpa replay`: recorded requests asked again of an engine, and reduced to those that it takes."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.replay.poisoned_engine import FIRST, LAST

from culpa.cli.app import _run
from culpa.host import free_port
from culpa.probes import Probe
from culpa.recorder import Keep, Ring
from culpa.store import list_runs
from culpa.traffic import read_folder, request_probe

ENGINE = Path(__file__).parent / "poisoned_engine.py"
FACTORS = Path(__file__).parent / "factors.toml"
FIELDS = {"method": "POST", "path": "/v1/completions", "type": "application/json"}


def prompts(count: int, first: int, last: int) -> list[str]:
    """Many harmless prompts with a poisonous pair among them."""
    special = {first: f"some {FIRST}", last: f"some {LAST}"}
    return [special.get(number, f"prompt number {number}") for number in range(count)]


def recording(folder: Path, texts: Sequence[str], *, lost: bool = True) -> Path:
    """A recording of these prompts, two under way at a time; the last one was lost with the engine."""
    ring = Ring(folder, Keep(), {"mode": "bodies"})
    for number, text in enumerate(texts):
        body = json.dumps({"prompt": text, "temperature": 0}).encode()
        name = ring.request(number * 0.01, FIELDS, body)
        answer = json.dumps({"choices": [{"text": f"well, {text[:20]}", "finish_reason": "stop"}]}).encode()
        if lost and number == len(texts) - 1:
            ring.end(name, number * 0.01 + 0.5, {"outcome": "lost", "said": "the response broke off"})
        else:
            end = {"outcome": "answered", "status": 200, "type": "application/json"}
            ring.end(name, number * 0.01 + 0.015, end, answer)
    ring.seal(len(texts) * 0.01, "upstream died" if lost else "stopped")
    return folder


@contextmanager
def engine(*options: str) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(ENGINE), "--port", str(port), *options], stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.wait()


def played(capsys: pytest.CaptureFixture[str], folder: Path, port: int, *options: str) -> tuple[int, Any]:
    words = ["replay", str(folder), "--endpoint", f"http://127.0.0.1:{port}", "--speed", "max", "--json"]
    code = _run([*words, *options])
    return code, json.loads(capsys.readouterr().out)


def reduced(
    folder: Path, out: Path | None, *options: str, launch: Sequence[str] = ()
) -> tuple[int, Any, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "culpa", "replay", str(folder), "--reduce", "--speed", "max", "--json"),
            *("--factors", str(FACTORS), *(("--out", str(out)) if out else ()), *options),
            *("--", sys.executable, str(ENGINE), *launch),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def test_a_healthy_engine_answers_as_it_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recording(tmp_path / "r", prompts(30, 100, 100), lost=False)
    with engine() as port:
        code, found = played(capsys, folder, port)
    assert code == 0
    assert {one["verdict"] for one in found["requests"]} == {"same"}


def test_a_failure_that_comes_again_is_told_with_what_came_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recording(tmp_path / "r", prompts(30, 4, 29))
    with engine() as port:
        code, found = played(capsys, folder, port)
    assert code == 1
    assert [one["verdict"] for one in found["requests"]][-1] == "failed again"
    assert found["failed"]


def test_an_engine_that_dies_earlier_is_not_asked_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recording(tmp_path / "r", prompts(60, 4, 9))
    with engine() as port:
        code, found = played(capsys, folder, port)
    verdicts = [one["verdict"] for one in found["requests"]]
    assert code == 1
    assert verdicts[9] == "failed"
    assert verdicts[-1] == "unsent"


def test_a_failure_that_stays_away_is_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = recording(tmp_path / "r", prompts(10, 100, 9))
    with engine() as port:
        code, found = played(capsys, folder, port)
    assert code == 0
    assert found["requests"][-1]["verdict"] == "recovered"


def test_another_text_at_temperature_zero_is_told_and_counts_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recording(tmp_path / "r", prompts(6, 100, 100), lost=False)
    ring = Ring(tmp_path / "changed", Keep(), {})
    name = ring.request(0.0, FIELDS, read_folder(folder).requests[0].content.read())
    end = {"outcome": "answered", "status": 200}
    ring.end(name, 0.1, end, b'{"choices":[{"text":"another","finish_reason":"stop"}]}')
    ring.seal(1.0, "stopped")
    with engine() as port:
        code, found = played(capsys, tmp_path / "changed", port)
        strict, _ = played(capsys, tmp_path / "changed", port, "--same-text")
    assert found["requests"][0]["verdict"] == "differs"
    assert (code, strict) == (0, 1)


def test_a_part_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = recording(tmp_path / "r", prompts(30, 100, 29))
    with engine() as port:
        _, found = played(capsys, folder, port, "--only", "3,5-6", "--only", "unanswered,last:2")
    assert [one["index"] for one in found["requests"]] == [3, 5, 6, 28, 29]


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_a_pair_far_apart_is_found_in_few_launches(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(91, 43, 90))
    code, found, _ = reduced(folder, tmp_path / "run", "--only", "10-")
    assert code == 1
    assert found["requests"] == [43, 90]
    assert found["minimal"]
    assert found["rate_held"]
    assert found["trials"] <= 20
    assert found["signature"]["symptom"] == "cuda_illegal_access"
    left = read_folder(Path(found["recording"]))
    assert [json.loads(one.content.read())["prompt"] for one in left.requests] == [
        f"some {FIRST}",
        f"some {LAST}",
    ]
    assert [one.outcome for one in left.requests] == ["answered", "lost"]
    probe = request_probe(Path(found["recording"]))
    assert isinstance(probe, Probe)
    assert [request.span is not None for request in probe.requests()] == [True, True]


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_an_error_in_place_of_an_answer_is_reduced_too(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(6, 2, 5), lost=False)
    code, found, _ = reduced(folder, tmp_path / "run", launch=["--symptom", "http500"])
    assert code == 1
    assert found["requests"] == [2, 5]


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_a_failure_at_every_second_launch_is_reduced_with_its_rate(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(4, 1, 3))
    luck = ["--luck", str(tmp_path / "luck")]
    code, found, _ = reduced(folder, tmp_path / "run", "--tries", "6", launch=luck)
    assert code == 1
    assert set(found["requests"]) >= {1, 3}
    assert 0 < found["failed_trials"] < found["trials_of_these"]
    assert found["rate_held"]


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_requests_that_do_no_harm_are_a_pass(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(5, 100, 4))
    code, found, _ = reduced(folder, tmp_path / "run", "--tries", "2")
    assert code == 0
    assert not found["failed"]
    assert found["trials"] == 2


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_a_reduction_ends_where_it_is_told_to_and_keeps_what_it_has(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(20, 7, 15))
    code, found, _ = reduced(folder, tmp_path / "run", "--max-trials", "2")
    assert code == 1
    assert found["stopped"] == "--max-trials 2 was reached"
    assert {7, 15} <= set(found["requests"])
    assert not found["minimal"]
    assert (tmp_path / "run" / "trials" / "0001" / "engine.log").exists()
    (run,) = list_runs(tmp_path)
    assert (run.engine, run.outcome, run.trials) == ("poisoned", "reduced so far", 2)
    assert run.finding == f"{len(found['requests'])} of 20 requests"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give --endpoint URL"),
        (["--reduce"], "give --endpoint URL"),
        (["--endpoint", "nowhere"], "begins with http://"),
        (["--endpoint", "http://127.0.0.1:1", "--speed", "-1"], "a number from"),
        (["--endpoint", "http://127.0.0.1:1", "--speed", "fast"], "a number from"),
        (["--endpoint", "http://127.0.0.1:1", "--only", "some"], "give places"),
        (["--endpoint", "http://127.0.0.1:1", "--only", "77"], "none of the 3 requests"),
        (["--endpoint", "http://127.0.0.1:1"], "nothing answers at"),
        (["--reduce", "--", "/no/such/engine"], "no/such/engine"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recording(tmp_path / "r", prompts(3, 100, 100))
    assert _run(["replay", str(folder), "--quiet", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert says in captured.err


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_a_reduction_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = recording(tmp_path / "r", prompts(8, 2, 7))
    reduced(folder, tmp_path / "run", "--max-trials", "2")
    words = ["--resume", str(tmp_path / "run")]
    code, found, _ = reduced(folder, None, *words)
    assert code == 1
    assert found["requests"] == [2, 7]
    numbers = sorted(path.name for path in (tmp_path / "run" / "trials").iterdir())
    assert numbers == [f"{number:04d}" for number in range(1, found["trials"] + 1)]

    other = recording(tmp_path / "other", prompts(8, 3, 7))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "culpa", "replay", str(other), "--reduce", "--factors", str(FACTORS)),
            *(*words, "--", sys.executable, str(ENGINE)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "about other requests" in done.stderr
