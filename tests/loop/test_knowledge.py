"""What arms that passed tell of the model, and what that says of earlier passes."""

from pathlib import Path

import pytest

from culpa.evidence import Asked
from culpa.knowledge import learn
from culpa.model import Configuration, Outcome, RequestResult, Trial
from culpa.probes import Answer, Judgement, Probe, Question, Request
from culpa.probes.request import COMPLETIONS, Expectation
from culpa.record import Record
from culpa.store import create_run, open_run
from culpa.trial import TrialResult

PROBE = Probe(
    "short",
    ((Request(COMPLETIONS, {"prompt": "2+2?"}, expect=Expectation("4"), recipe=Question("2+2?", "4")),),),
)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(create_run(tmp_path, {"started": "x"}))


def passed(record: Record, number: int, text: str, purpose: str = "search") -> TrialResult:
    trial = Trial(
        number,
        Configuration.of({"a": str(number)}),
        Outcome.PASS,
        purpose,
        "arm",
        requests=(RequestResult("question", "right" if text == "4" else "missed"),),
    )
    record.note_trial(trial, 0.0)
    return TrialResult(trial, (Asked(PROBE, (Answer(200, text),), Judgement("unknown", "")),))


def test_a_pass_that_missed_what_the_all_safe_launch_knew_failed_in_another_way(record: Record) -> None:
    list(learn(record, passed(record, 1, "babble"), "search", False, 0.0))
    assert record.ignorant_passes
    said = list(learn(record, passed(record, 2, "4", "all_safe"), "all_safe", False, 0.0))
    assert [record.trials[number].outcome for number in (1, 2)] == [Outcome.OTHER, Outcome.PASS]
    assert said == ["trial 1 judged again: it missed what the all-safe launch knew"]
    assert not record.ignorant_passes


def test_a_model_that_knows_nothing_when_all_is_safe_is_not_held_to_it(record: Record) -> None:
    list(learn(record, passed(record, 1, "babble"), "search", False, 0.0))
    assert not list(learn(record, passed(record, 2, "gibber", "all_safe"), "all_safe", False, 0.0))
    assert record.trials[1].outcome is Outcome.PASS


def test_an_arm_that_knew_all_shows_that_the_model_knows_it(record: Record) -> None:
    list(learn(record, passed(record, 1, "4"), "search", False, 0.0))
    assert record.reference is not None
    assert record.reference.knows == {"short"}
    assert not record.reference.answers


def test_where_wrong_output_is_hunted_only_the_all_safe_launch_is_a_reference(record: Record) -> None:
    list(learn(record, passed(record, 1, "4"), "search", True, 0.0))
    assert record.reference is None


def test_what_was_judged_again_stays_so_in_the_journal(record: Record, tmp_path: Path) -> None:
    list(learn(record, passed(record, 1, "babble"), "search", False, 0.0))
    list(learn(record, passed(record, 2, "4", "all_safe"), "all_safe", False, 0.0))
    journal, _, entries = open_run(tmp_path)
    again = Record(journal, entries)
    assert again.trials == record.trials
    assert again.trials[1].outcome is Outcome.OTHER
