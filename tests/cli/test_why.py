"""`culpa why`: the account of a run, from its journal alone."""

import json
from pathlib import Path

import pytest

from culpa.cli.app import main
from culpa.model import Configuration, Outcome, Signature, Trial
from culpa.model.told import Told
from culpa.record import Record
from culpa.store import create_run

BEFORE = ((("eager",), 0.4), (("eager", "pp"), 0.3))
AFTER = ((("eager", "pp"), 0.9), ((), 0.02))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    record = Record(create_run(tmp_path / "run", {"started": "2026-01-01", "engine": "fake"}))
    levels = Configuration.of({"eager": "on", "pp": "3"})
    first = record.next_id(0.1, "the launch as it is, to see the failure")
    record.note_trial(
        Trial(first, levels, Outcome.FAIL, "baseline", "baseline", signature=Signature("hang")), 1.0
    )
    second = record.next_id(1.1, "expected to fail with probability 31%: tells \x1b[31m0.88 bits")
    record.note_trial(Trial(second, levels.with_levels({"pp": "1"}), Outcome.PASS, "search", "pp safe"), 2.0)
    record.note_told(Told(second, 0.31, 0.88, 1.25, BEFORE, AFTER))
    return tmp_path / "run"


def test_each_trial_says_why_what_was_expected_and_what_it_told(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["why", str(run)])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "why: the launch as it is, to see the failure" in shown
    assert "expected: to fail with 31%, and to tell 0.88 bits" in shown
    assert "told: 1.25 bits" in shown
    assert "before: eager 40%, eager + pp 30%" in shown
    assert "after: eager + pp 90%, none of these 2%" in shown
    assert "\x1b[31m" not in shown


def test_as_json_it_has_the_same_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["why", str(run), "--json"])
    document = json.loads(capsys.readouterr().out)
    first, second = document["trials"]
    assert document["schema"] == "culpa.why/1"
    assert (first["told_bits"], second["told_bits"], second["expected_bits"]) == (None, 1.25, 0.88)
    assert second["after"][0] == {"set": ["eager", "pp"], "probability": 0.9}


def test_a_folder_without_a_run_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["why", str(tmp_path)])
    assert ended.value.code == 2
    assert "holds no run" in capsys.readouterr().err


def test_a_run_without_trials_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_run(tmp_path / "run", {"started": "2026-01-01", "engine": "fake"})
    with pytest.raises(SystemExit) as ended:
        main(["why", str(tmp_path / "run")])
    assert ended.value.code == 0
    assert "No trial of this run has ended yet" in capsys.readouterr().out
