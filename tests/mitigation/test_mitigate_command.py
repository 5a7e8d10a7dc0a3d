"""`culpa mitigate` and `culpa isolate --mitigate` on the fake engine, as a user would run them."""

import json
import sys
from pathlib import Path

import pytest
from tests.loop.runs import Finished, environment, finish, isolate

from culpa.cli.app import _run

FAULT = {"FAKE_FAULT": "eager && pp>1"}
pytestmark = pytest.mark.slow


def mitigate(folder: Path, *options: str) -> Finished:
    return finish(
        [sys.executable, "-m", "culpa", "mitigate", str(folder), *options], environment(**FAULT), folder
    )


def test_isolate_measures_afterwards_what_keeps_the_failure_away(tmp_path: Path) -> None:
    run = isolate(tmp_path / "run", "--mitigate", "--quiet", **FAULT)
    assert run.code == 1, run.err
    found = json.loads((tmp_path / "run" / "mitigation.json").read_text())
    assert found["schema"] == "culpa.mitigation/1"
    changes = sorted(option["changes"][0][0] for option in found["options"])
    assert changes == ["eager", "pp"]
    assert all(option["asked"] == "passed" for option in found["options"])
    assert "remove it when this passes" in run.out
    assert "remove it when this passes" in (tmp_path / "run" / "report.html").read_text()
    again = mitigate(tmp_path / "run", "--repeats", "1", "--most", "1", "--json", "--quiet")
    assert again.code == 0, again.err
    document = json.loads(again.out)
    assert len(document["options"]) == 1
    assert [one["kind"] for one in document["not_offered"]] == ["not_measured"]
    assert document == json.loads((tmp_path / "run" / "mitigation.json").read_text())


def test_a_run_without_a_failure_is_told_in_one_line(tmp_path: Path) -> None:
    isolate(tmp_path / "run", "--patience", "1s", "--quiet")
    done = mitigate(tmp_path / "run")
    assert done.code == 2
    assert "saw no failure" in done.err
    assert done.err.count("\n") == 1


def test_a_folder_that_holds_no_run_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["mitigate", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_without_a_readable_result_is_told_before_anything_is_launched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    isolate(tmp_path / "run", "--patience", "1s", "--quiet")
    (tmp_path / "run" / "experiment.json").write_text('{"findings": [')
    assert _run(["mitigate", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "experiment.json, can't be read: end the run with culpa isolate --resume" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run" / "mitigation").exists()
