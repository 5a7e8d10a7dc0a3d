"""A stored run is read back as it was, redacted, and the same every time."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report import cases
from tests.report.stored_run import answers, store

from culpa.model import Experiment, Launch
from culpa.report.markdown import markdown_report
from culpa.report.source import load
from culpa.store import BadRunFolder

CASES = (
    cases.isolated,
    cases.incident,
    cases.no_failure,
    cases.all_safe_fails,
    cases.inconclusive,
    cases.interrupted,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.__name__))
def test_a_stored_experiment_says_what_it_said(case: Callable[[], Experiment], tmp_path: Path) -> None:
    experiment = case()
    folder = store(tmp_path / "run", experiment)
    said = markdown_report(replace(experiment, folder=str(folder)))
    # Hosts and users in the cases are named alike in both, or not at all.
    assert markdown_report(load(folder).experiment) == said


def test_the_same_folder_gives_the_same_value(tmp_path: Path) -> None:
    folder = store(tmp_path / "run", cases.incident())
    assert load(folder) == load(folder)


def test_a_secret_of_the_launch_is_found_where_only_a_log_holds_it(tmp_path: Path) -> None:
    experiment = cases.isolated()
    argv = (*experiment.launch.argv, "--api-key", "zebra-4711-Lantern")
    folder = store(
        tmp_path / "run",
        replace(experiment, launch=Launch(argv=argv)),
        files={"trials/0001/engine.log": "started\nclient said zebra-4711-Lantern and left\n"},
    )
    trials = [replace(trial, folder="trials/0001") for trial in experiment.trials[:1]]
    assert trials
    source = load(folder)
    assert "zebra" not in repr(source)


def test_roles_and_processes_of_lines_come_with_them(tmp_path: Path) -> None:
    experiment = cases.isolated()
    first = replace(experiment.trials[0], folder="trials/0001")
    experiment = replace(experiment, trials=(first, *experiment.trials[1:]))
    incident = {
        "symptom": "assertion",
        "root": {"line": 2, "text": "AssertionError", "process": "worker", "rank": "PP1"},
        "cascade_lines": [3],
    }
    log = (
        "(APIServer pid=7) INFO 01-01 12:00:40 [api_server.py:28] started\n"
        "(Worker_PP1 pid=9) ERROR 01-01 12:00:41 [multiproc_executor.py:71] AssertionError\n"
        "(EngineCore pid=8) ERROR 01-01 12:00:41 [core.py:48] Worker failed\n"
    )
    folder = store(
        tmp_path / "run",
        experiment,
        files={
            "trials/0001/engine.log": log,
            "trials/0001/trial.json": json.dumps({"incident": incident}),
        },
    )
    (shown,) = load(folder).trials[0].logs
    assert [(line.number, line.role, line.process, line.rank) for line in shown.lines] == [
        (1, "", "api_server", ""),
        (2, "root", "worker", "PP1"),
        (3, "cascade", "engine_core", ""),
    ]


def test_a_large_log_is_cut_around_its_events(tmp_path: Path) -> None:
    experiment = cases.isolated()
    first = replace(experiment.trials[0], folder="trials/0001")
    experiment = replace(experiment, trials=(first,))
    lines = [f"line {number}" for number in range(1, 50_001)]
    lines[29_999] = "the event"
    incident = {"symptom": "assertion", "root": {"line": 30_000, "text": "the event"}}
    folder = store(
        tmp_path / "run",
        experiment,
        files={
            "trials/0001/engine.log": "\n".join(lines),
            "trials/0001/trial.json": json.dumps({"incident": incident}),
        },
    )
    (shown,) = load(folder).trials[0].logs
    texts = {line.number: line.text for line in shown.lines}
    assert shown.total == 50_000
    assert shown.truncated
    assert texts[30_000] == "the event"
    assert texts[1] == "line 1"
    assert texts[50_000] == "line 50000"
    assert len(texts) <= 160


def test_prompts_of_the_user_go_and_those_of_culpa_stay(tmp_path: Path) -> None:
    experiment = cases.isolated()
    first = replace(experiment.trials[0], folder="trials/0001", reason="asked 'my private plan for tomorrow'")
    second = replace(experiment.trials[1], folder="trials/0002")
    experiment = replace(experiment, trials=(first, second))
    folder = store(
        tmp_path / "run",
        experiment,
        files={
            "trials/0001/answers.json": answers(
                "request", "my private plan for tomorrow", "a secret answer!"
            ),
            "trials/0002/answers.json": answers("short", "What is 2+2? Answer with one number.", "4"),
        },
    )
    hidden = load(folder)
    assert "private plan" not in repr(hidden)
    assert "secret answer" not in repr(hidden)
    assert "What is 2+2?" in repr(hidden)
    shown = load(folder, include_prompts=True)
    assert shown.prompts_included
    assert "my private plan for tomorrow" in repr(shown)


@pytest.mark.parametrize("damage", ["nothing", "no_result", "no_schema", "file"])
def test_what_is_no_run_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    if damage == "file":
        folder.write_text("x", encoding="utf-8")
    elif damage != "nothing":
        store(folder, cases.isolated())
        if damage == "no_result":
            (folder / "experiment.json").unlink()
        else:
            (folder / "experiment.json").write_text('{"schema": "culpa.experiment/9"}', encoding="utf-8")
    with pytest.raises(BadRunFolder) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
