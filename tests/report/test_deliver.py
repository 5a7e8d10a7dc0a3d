"""What the command line asks of the reports."""

import json
from pathlib import Path

import pytest
from tests.report.cases import isolated
from tests.report.stored_run import store
from tests.report.test_report_plan import PLAN
from tests.report.test_report_runs import RUNS

from culpa.report import choose_view, print_plan, print_result, print_runs, write_reports
from culpa.report.lines import PlainLines, Quiet
from culpa.report.live import RichLive


def test_quiet_view_is_chosen_on_request() -> None:
    assert isinstance(choose_view(quiet=True), Quiet)


def test_output_that_is_no_terminal_gets_plain_lines() -> None:
    assert isinstance(choose_view(), PlainLines)


def test_terminal_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_view(), RichLive)


def test_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_view(), PlainLines)


def test_with_json_the_view_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    choose_view(as_json=True).note("hello")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "note: hello\n"


def test_reports_are_written_beside_the_evidence_and_leave_no_part_files(tmp_path: Path) -> None:
    folder = store(tmp_path / "run", isolated())
    markdown, document = write_reports(isolated(), folder)
    reports = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    assert reports == ["experiment.json", "journal.jsonl", "report.html", "report.md"]
    assert not list(folder.glob(".*.part"))
    assert markdown.read_text(encoding="utf-8").startswith("# vLLM 0.32.0")
    assert json.loads(document.read_text(encoding="utf-8"))["outcome"] == "isolated"


def test_result_as_json_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(isolated(), as_json=True)
    assert json.loads(capsys.readouterr().out)["schema"] == "culpa.experiment/1"


def test_result_for_a_person_names_the_report_and_how_to_publish_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result(isolated())
    printed = capsys.readouterr().out
    assert "culpa-runs/20260101-120000-isolate/report.html" in printed
    assert "culpa report culpa-runs/20260101-120000-isolate --format issue" in printed


def test_plan_and_runs_print_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(PLAN)
    print_runs(RUNS)
    assert "8 factors to vary" in capsys.readouterr().out
    print_plan(PLAN, as_json=True)
    assert json.loads(capsys.readouterr().out)["schema"] == "culpa.plan/1"
    print_runs(RUNS, as_json=True)
    assert len(json.loads(capsys.readouterr().out)) == len(RUNS)
