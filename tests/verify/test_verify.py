"""`culpa verify` on the fake engine, as a user runs it: a gate with exit codes, reports, trusted answers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.loop.runs import FACTORS, FAKE_ENGINE, LAUNCH, environment

from culpa.host import free_port

pytestmark = pytest.mark.slow

STARTED = ("--factors", str(FACTORS), "--", sys.executable, str(FAKE_ENGINE), *LAUNCH.split())


KNOWN = ("--question", "What is 2+2? Answer with one number.=4")


def run(*words: str, **fake: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "culpa", "verify", *words]
    return subprocess.run(
        command, env=environment(**fake), capture_output=True, text=True, timeout=100, check=False
    )


@contextmanager
def serving(**fake: str) -> Iterator[str]:
    """The fake engine, running already."""
    port = free_port()
    command = [sys.executable, str(FAKE_ENGINE), *LAUNCH.split(), "--port", str(port)]
    env = environment(**fake)
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as engine:
        try:
            assert engine.stderr is not None
            assert any("INFO ready" in line for line in engine.stderr)
            yield f"http://127.0.0.1:{port}"
        finally:
            engine.kill()


def test_a_healthy_engine_passes_and_what_that_excludes_is_told() -> None:
    done = run(*STARTED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert "0 failures a rate above" in done.stdout
    assert "is excluded at 95%" in done.stdout


def test_an_engine_that_crashes_fails_with_its_root_event() -> None:
    done = run("--json", *STARTED, FAKE_FAULT="pp>1", FAKE_SYMPTOM="crash")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["passed"]
    assert found["incident"]["root"]["text"]
    assert found["exposure"]["excluded_rate_95"] is None


def test_an_engine_that_does_not_come_up_fails() -> None:
    done = run("--json", *STARTED, FAKE_FAULT="pp>1", FAKE_SYMPTOM="startup")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["probes"]] == ["start"]


def test_an_endpoint_that_runs_already_is_asked_and_left_alone() -> None:
    with serving() as endpoint:
        assert run("--endpoint", endpoint, "--suite", "quick").returncode == 0
        again = run("--endpoint", f"{endpoint}/v1", "--suite", "quick", "--json")
    assert again.returncode == 0
    found = json.loads(again.stdout)
    assert found["passed"]
    assert "cold" in [one["name"] for one in found["probes"]]
    assert "many_at_once" not in [one["name"] for one in found["probes"]]


def test_a_wrong_answer_ends_it_unless_it_is_to_keep_going() -> None:
    fault = {"FAKE_FAULT": "stream==on", "FAKE_SYMPTOM": "wrong"}
    first = json.loads(run("--json", *KNOWN, *STARTED, **fault).stdout)
    all_of_them = json.loads(run("--json", "--keep-going", *KNOWN, *STARTED, **fault).stdout)
    assert [one["status"] for one in first["probes"]][-1] == "wrong"
    assert len(all_of_them["probes"]) > len(first["probes"])
    assert not all_of_them["passed"]


def test_wrong_answers_of_a_model_that_may_not_know_are_no_pass_and_no_failure() -> None:
    done = run(*STARTED, FAKE_FAULT="pp>1", FAKE_SYMPTOM="wrong")
    assert done.returncode == 2
    assert "Not verified" in done.stdout
    assert "--golden" in done.stdout


def test_trusted_answers_tell_a_wrong_one_where_the_model_knows_nothing(tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    recorded = run("--suite", "quick", "--record-golden", str(golden), *STARTED)
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    same = run("--golden", str(golden), *STARTED)
    assert same.returncode == 0, same.stdout + same.stderr
    other = run("--golden", str(golden), *STARTED, FAKE_FAULT="pp>1", FAKE_SYMPTOM="babble")
    assert other.returncode == 1


def test_answers_of_a_model_that_knows_nothing_are_recorded_which_is_what_was_asked_for(
    tmp_path: Path,
) -> None:
    golden = tmp_path / "golden.json"
    fault = {"FAKE_FAULT": "pp>1", "FAKE_SYMPTOM": "wrong"}
    done = run("--suite", "quick", "--record-golden", str(golden), *STARTED, **fault)
    assert done.returncode == 0, done.stdout + done.stderr
    assert golden.exists()
    assert "can't be told " in done.stdout


def test_no_trusted_answers_are_recorded_of_an_engine_that_fails(tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    done = run("--record-golden", str(golden), *KNOWN, *STARTED, FAKE_FAULT="pp>1", FAKE_SYMPTOM="wrong")
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "no answers were recorded" in done.stderr
    assert not golden.exists()


def test_junit_and_the_summary_of_a_workflow_are_written(tmp_path: Path) -> None:
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    done = run(
        *("--junit", str(junit), *KNOWN, *STARTED),
        FAKE_FAULT="pp>1",
        FAKE_SYMPTOM="wrong",
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert done.returncode == 1
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "1"
    assert "culpa verify: FAILED" in summary.read_text()


def test_a_reader_that_has_gone_changes_neither_exit_code_nor_files(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "culpa", "verify", "--suite", "quick", "--junit", str(junit), *STARTED]
    with subprocess.Popen(
        command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gate:
        assert gate.stdout is not None
        assert gate.stderr is not None
        gate.stdout.close()
        told = gate.stderr.read()
        assert gate.wait(60) == 0
    assert told == "culpa: can't print the result (Broken pipe)\n"
    assert "testsuite" in junit.read_text()


def test_it_goes_on_for_as_long_as_it_was_asked_to() -> None:
    found = json.loads(run("--json", "--suite", "quick", "--duration", "3s", *STARTED).stdout)
    assert found["passed"]
    assert max(one["round"] for one in found["probes"]) >= 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "give either --endpoint URL"),
        (("--endpoint", "127.0.0.1:1"), "begins with http"),
        (("--endpoint", "http://127.0.0.1:1"), "nothing answers"),
        (("--suite", "all", "--endpoint", "http://127.0.0.1:1"), "there are quick, standard, soak"),
        (("--golden", "nowhere.json", "--endpoint", "http://127.0.0.1:1"), "no such file"),
        (("--", "no-such-engine", "serve"), "engine not recognised"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], told: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
