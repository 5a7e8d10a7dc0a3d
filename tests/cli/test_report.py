"""`culpa report`: which formats it writes, where, and how it refuses."""

import json
from pathlib import Path

import pytest
from tests.report.cases import incident, isolated
from tests.report.stored_run import store

from culpa.cli.app import main


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return store(tmp_path / "run", isolated())


def test_html_is_written_into_the_run_and_its_path_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", folder) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_in_another_language_leaves_the_first_one_alone(folder: Path) -> None:
    assert run("report", folder) == 0
    before = (folder / "report.html").read_bytes()
    assert run("report", folder, "--lang", "zh") == 0
    assert (folder / "report.html").read_bytes() == before
    assert 'lang="zh' in (folder / "report.zh.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["html", "md", "issue", "advisory", "json"])
def test_every_format_is_written_to_standard_output_and_the_same_each_time(
    form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for _ in range(2):
        assert run("report", folder, "--format", form, "-o", "-") == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].endswith("\n")
    if form == "json":
        assert json.loads(texts[0])["schema"] == "culpa.experiment/1"


@pytest.mark.parametrize("form", ["md", "issue", "advisory", "json"])
def test_text_formats_go_to_standard_output_by_default(
    form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert run("report", folder, "--format", form) == 0
    assert "pipeline_parallel_size" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_file_is_written_whole_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = folder.parent / "issue.md"
    assert run("report", folder, "--format", "issue", "-o", target) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert "### 🐛 Describe the bug" in target.read_text(encoding="utf-8")


def test_title_and_form_of_an_issue_are_told_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", folder, "--format", "issue") == 0
    told = capsys.readouterr().err
    assert told.startswith("title: [Bug]: vLLM 0.32.0: ")
    assert "form: https://github.com/vllm-project/vllm/issues/new?template=400-bug-report.yml" in told


def test_the_reports_do_not_change_when_the_run_is_moved(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", folder, "--format", "advisory") == 0
    before = capsys.readouterr().out
    assert run("report", folder.rename(tmp_path / "moved"), "--format", "advisory") == 0
    assert capsys.readouterr().out == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "pdf"], "there is no such format; there are html, md, issue, advisory, json"),
        (["--lang", "fr"], "reports are written in en and zh"),
        (["--format", "issue", "--lang", "zh"], "issue is written in English only"),
        (["--format", "md", "-o", "/nowhere/at/all.md"], "can't write /nowhere/at/all.md"),
        (["--format", "md", "-o", "/tmp"], "can't write /tmp: it is a folder"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", folder, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err


def test_a_folder_without_a_run_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.err == f"culpa: {tmp_path} holds no run: there is no journal.jsonl in it\n"


def test_a_run_that_has_not_ended_says_how_to_end_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "experiment.json").unlink()
    assert run("report", folder) == 2
    assert f"culpa isolate --resume {folder}" in capsys.readouterr().err


def test_a_run_of_the_incident_has_all_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = store(tmp_path / "incident", incident())
    for form in ("md", "issue", "advisory", "json"):
        assert run("report", stored, "--format", form) == 0
        assert "23,23,18" in capsys.readouterr().out
