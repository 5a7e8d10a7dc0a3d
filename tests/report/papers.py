"""Runs for the tests of issues and advisories: the stored one, and such as hold hostile text."""

from pathlib import Path

from tests.report.test_markdown import hostile_experiment

from culpa.model import Experiment, Incident, RootEvent
from culpa.report.excerpts import LogExcerpt, ShownLine
from culpa.report.source import ReportSource, TrialSource, load

STORED = Path(__file__).parent / "runs" / "incident"


def stored() -> ReportSource:
    """The incident on the reference engine, as `culpa demo` left it."""
    return load(STORED)


def source_of(experiment: Experiment, line: str = "a line") -> ReportSource:
    """The experiment with a log around its root event that repeats the line."""
    root = experiment.root.event.line if experiment.root else 1
    lines = tuple(
        ShownLine(number, line, "root" if number == root else "")
        for number in range(max(root - 3, 1), root + 9)
    )
    log = LogExcerpt("trials/0001/engine.log", 1, 400, lines)
    incident = Incident(symptom="assertion", root=RootEvent(root, line))
    trials = tuple(
        TrialSource(trial, "to see", None, "engine --flag", (), (log,), incident, None)
        for trial in experiment.trials
    )
    return ReportSource(experiment, trials, (), prompts_included=False)


def hostile_source(text: str) -> ReportSource:
    """A source that carries the text wherever a log, a launch or an engine can put it."""
    return source_of(hostile_experiment(text), text)
