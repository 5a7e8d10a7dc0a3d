"""What the guard saw, in every report: where it begins, what that speaks for, and what a silence is worth."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from tests.report.golden import check
from tests.report.guard_cases import VIOLATION, located, watched_in_vain

from culpa.model import Experiment
from culpa.model.guard import GuardedTrial, GuardRecord, Violation
from culpa.report import guard_words
from culpa.report.json_report import experiment_document, experiment_json
from culpa.report.markdown import markdown_report
from culpa.report.schema import ExperimentDocument
from culpa.report.terminal import print_summary


def shown(experiment: Experiment) -> str:
    stream = StringIO()
    print_summary(experiment, Console(file=stream, width=100))
    return stream.getvalue()


@pytest.mark.parametrize("case", [located, watched_in_vain], ids=lambda case: str(case.__name__))
def test_terminal_and_markdown_are_the_recorded_ones(case: Callable[[], Experiment]) -> None:
    experiment = case()
    check(f"{case.__name__}.100.txt", shown(experiment))
    check(f"{case.__name__}.md", markdown_report(experiment))


def test_the_json_holds_place_meaning_and_candidates_and_reads_back_the_same() -> None:
    experiment = located()
    document = json.loads(experiment_json(experiment))
    place = document["findings"][0]["located"]
    assert document["findings"][0]["level"] == "located"
    assert place["violation"]["layer"] == "model.layers.24.linear_attn"
    assert [one["id"] for one in place["explanation"]["supports"]] == ["H4"]
    assert ExperimentDocument.model_validate(document).guard == list(experiment.guarded)
    assert ExperimentDocument.model_validate(document).findings[0].located == (
        experiment.conclusion.findings[0].located
    )


def test_a_result_without_a_guard_reads_as_one() -> None:
    document = json.loads(experiment_json(located()))
    del document["guard"]
    del document["findings"][0]["located"]
    assert ExperimentDocument.model_validate(document).guard == []


def test_hostile_text_reaches_neither_terminal_nor_markup() -> None:
    hostile = replace(
        VIOLATION,
        layer="\x1b[31mred</b><script>",
        request="@everyone",
        found="hf_" + "A1b2" * 8,
        detail="|x|",
    )
    experiment = located()
    (finding,) = experiment.conclusion.findings
    assert finding.located is not None
    finding = replace(finding, located=replace(finding.located, violation=hostile))
    experiment = replace(experiment, conclusion=replace(experiment.conclusion, findings=(finding,)))
    for text in (shown(experiment), markdown_report(experiment), experiment_json(experiment)):
        assert "\x1b" not in text.replace("\x1b[0m", "")
        assert "A1b2A1b2" not in text
    assert "<script>" not in markdown_report(experiment)
    assert experiment_document(experiment).findings[0].located is not None


def test_a_failure_that_stays_away_under_the_guard_is_told() -> None:
    text = markdown_report(watched_in_vain(failed=False))
    assert "the guard may hide it" in text
    assert "the guard may hide it" not in markdown_report(watched_in_vain())


def test_an_engine_in_which_no_process_had_the_guard_is_told() -> None:
    (sentence,) = guard_words.checked(GuardRecord())
    assert sentence == "No process of the engine had the guard in it: nothing was checked."
    assert guard_words.BLIND not in guard_words.unlocated(GuardedTrial(3, True, GuardRecord()))


def test_a_violation_that_tells_nothing_but_its_kind_is_told_as_that() -> None:
    line = guard_words.one_line(Violation("bind_mismatch"))
    assert line == "bind_mismatch: the guard does not say where: no more was told"
    assert "before the first step" in guard_words.where(Violation("bind_mismatch", stage="PP0", step=0))
