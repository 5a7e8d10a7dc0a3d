"""Verdicts on engines that behave oddly."""

from pathlib import Path

import pytest
from tests.loop.runs import isolate

pytestmark = pytest.mark.slow


def test_engine_that_refuses_every_request_is_no_pass(tmp_path: Path) -> None:
    run = isolate(tmp_path / "run", FAKE_FAULT="pp>0", FAKE_SYMPTOM="refuse")
    assert run.code == 2
    assert "refuses every request" in run.err
    assert "no key, no answer" in run.err


def test_stream_without_an_end_is_a_failure(tmp_path: Path) -> None:
    run = isolate(tmp_path / "run", "--max-trials", "1", FAKE_FAULT="pp>0", FAKE_SYMPTOM="endless")
    assert run.code == 1
    assert run.result is not None
    assert run.result["signature"]["symptom"] == "runaway_answer"


def test_requests_are_not_accused_of_what_only_takes_its_time(tmp_path: Path) -> None:
    run = isolate(tmp_path / "run", FAKE_FAULT="kv==fp8", FAKE_SYMPTOM="late")
    assert run.found == [["kv"]]
    assert run.result is not None
    assert not [f for f in run.result["factors"] if f["status"] == "in" and f["name"] != "kv"]


def test_run_with_an_older_journal_header_is_refused(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "journal.jsonl").write_text('{"kind":"run","schema":"culpa.journal/1"}\n')
    arguments = [sys.executable, "-m", "culpa", "isolate", "--resume", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "header" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_failure_names_what_the_engine_refused_to_be_asked(tmp_path: Path) -> None:
    run = isolate(tmp_path / "run", "--patience", "1s", "--probe", "embeddings")
    assert run.code == 0
    assert run.result is not None
    assert run.result["no_failure"].endswith("The engine refused, and so was not asked: embeddings.")
