"""What surrounds the engine, as the run has kept it."""

from typing import Any

from culpa.environment.stored import BadEnvironment, parse_environment
from culpa.report import clean
from culpa.report.html.labels import Labels
from culpa.report.source import ReportSource


def surroundings(source: ReportSource, labels: Labels) -> dict[str, Any]:
    """The environment as the run has kept it, with what could not be read; else the few facts of its result."""
    if source.environment is not None:
        try:
            found = parse_environment(source.environment, "environment")
        except BadEnvironment:
            pass  # of another version: the result of the run has the facts that matter most
        else:
            return {
                "environment": {
                    "header": (labels("fact"), labels("value"), labels("source")),
                    "rows": [
                        (fact.key, fact.value, fact.source) for fact in found.facts if fact.value is not None
                    ],
                    "unread": [(fact.key, fact.reason) for fact in found.facts if fact.value is None],
                }
            }
    rows = [(name, clean.value(name, value)) for name, value in source.experiment.environment]
    shown = {"header": (labels("fact"), labels("value")), "rows": rows, "unread": []}
    return {"environment": shown if rows else None}
