"""Plain lines for output that is no terminal."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.report import golden
from tests.report.blocks import FACTORS, LAUNCH, SUSPECT
from tests.report.cases import isolated

from culpa.model import Belief, Plan, TrialProgress, TrialStarted
from culpa.report.lines import PlainLines


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_whole_run_is_the_golden_one() -> None:
    stream = io.StringIO()
    view = PlainLines(stream)
    experiment = isolated()
    view.started(
        Plan("vLLM", LAUNCH, FACTORS, predicted_trials=9, folder="culpa-runs/x"), experiment.trials[:1]
    )
    for trial in experiment.trials[1:]:
        view.trial_started(
            TrialStarted(trial.id, trial.arm, trial.purpose, trial.configuration, "splits best", 12, 3600.0)
        )
        view.trial_progress(TrialProgress(trial.id, "starting", 0.0))
        view.trial_progress(TrialProgress(trial.id, "probing", 31.5, "cold"))
        view.trial_finished(trial)
        view.belief(Belief(((("execution", "pipeline_parallel_size"), 0.61), ((), 0.02)), 3))
    view.note("answers are compared with the reference")
    view.finished(experiment)
    view.close()
    golden.check("lines.txt", stream.getvalue())


def test_progress_is_told_when_the_phase_changes_and_then_every_thirty_seconds() -> None:
    stream = io.StringIO()
    view = PlainLines(stream)
    for second in range(0, 100, 5):
        view.trial_progress(TrialProgress(1, "starting", float(second)))
    view.trial_progress(TrialProgress(1, "probing", 100.0))
    assert stream.getvalue().splitlines() == [
        "trial 1 starting: 0.0 s",
        "trial 1 starting: 30 s",
        "trial 1 starting: 60 s",
        "trial 1 starting: 90 s",
        "trial 1 probing: 100 s",
    ]


def test_reader_that_has_gone_ends_the_view_and_not_the_run() -> None:
    view = PlainLines(Broken())
    view.note("one")
    view.note("two")


def test_stream_that_cannot_encode_a_character_gets_a_question_mark() -> None:
    raw = io.BytesIO()
    view = PlainLines(io.TextIOWrapper(raw, encoding="ascii"))
    view.note("caf\u00e9")
    assert raw.getvalue() == b"note: caf?\n"


@given(st.text(max_size=60))
def test_an_event_is_one_line_whatever_it_says(text: str) -> None:
    stream = io.StringIO()
    view = PlainLines(stream)
    view.trial_started(TrialStarted(1, text, "search", SUSPECT, text))
    view.trial_progress(TrialProgress(1, "starting", 1.0, text))
    view.note(text)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 4
    assert not any(re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", line) for line in lines)
