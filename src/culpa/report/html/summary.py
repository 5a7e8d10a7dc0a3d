"""The head of the page: what failed, the claim, and the figures of the run."""

from typing import Any

from culpa.model import Experiment, Outcome
from culpa.report import clean, words
from culpa.report.html.labels import Labels


def summary(experiment: Experiment, labels: Labels) -> dict[str, Any]:
    """What the head of the page shows."""
    return {
        "title": _title(experiment, labels),
        "headline": labels.headline(experiment),
        "formula": [
            [
                {
                    "name": member.name,
                    "suspect": clean.value(member.name, member.suspect) or labels("unset"),
                    "safe": clean.value(member.name, member.safe) or labels("unset"),
                }
                for member in finding.members
            ]
            for finding in experiment.conclusion.findings
        ],
        "facts": _facts(experiment, labels),
    }


def _title(experiment: Experiment, labels: Labels) -> str:
    if experiment.hunted is None:
        return labels("no_failure_seen")
    symptom = labels.symptom(experiment.hunted)
    place = words.place(experiment.hunted) if experiment.hunted.process else ""
    return labels("failure_in", symptom=symptom, place=place) if place else symptom


def _facts(experiment: Experiment, labels: Labels) -> list[tuple[str, str]]:
    counts = [
        f"{sum(trial.outcome is outcome for trial in experiment.trials)} {labels(outcome.value)}"
        for outcome in Outcome
        if any(trial.outcome is outcome for trial in experiment.trials)
    ]
    facts = [(labels("engine"), words.engine(experiment))]
    findings = experiment.conclusion.findings
    if findings:
        levels = ", ".join(f"{one.level.value}, {words.probability(one.probability)}" for one in findings)
        facts.append((labels("strength"), levels))
    count = experiment.baseline
    if count.trials:
        facts.append((labels("baseline_failed"), f"{count.failed} / {count.trials}"))
    facts += [
        (labels("trials_run"), f"{len(experiment.trials)}: {', '.join(counts)}"),
        (labels("took"), words.duration(experiment.elapsed_seconds)),
        (labels("started"), experiment.started.replace("T", " ").replace("+00:00", " UTC")),
    ]
    return [(name, value) for name, value in facts if value]
