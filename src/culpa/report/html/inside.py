"""What the guard saw inside the engine: where a failure begins, or that nothing was to be seen."""

from collections.abc import Sequence
from typing import Any

from culpa.model import Experiment
from culpa.model.guard import GuardedTrial, Hypothesis, Located
from culpa.report import guard_words
from culpa.report.html.labels import Labels
from culpa.report.html.links import safe_link

_MOST_VIOLATIONS = 20


def inside(experiment: Experiment, labels: Labels) -> dict[str, Any] | None:
    """The places that were located, and the watched trials that located nothing; None where no guard was in."""
    located = [one.located for one in experiment.conclusion.findings if one.located is not None]
    silent = guard_words.silent(experiment)
    if not located and not silent:
        return None
    guarded = {one.trial: one for one in experiment.guarded}
    return {
        "located": [
            _located(place, guarded.get(place.trial), labels, known=experiment.trial(place.trial) is not None)
            for place in located
        ],
        "silent": [guard_words.unlocated(one) for one in silent],
        "blind": guard_words.BLIND if located else "",
    }


def _located(place: Located, watched: GuardedTrial | None, labels: Labels, *, known: bool) -> dict[str, Any]:
    violation, meaning = place.violation, place.explanation
    return {
        "kind": violation.kind,
        "trial": place.trial,
        "known": known,
        "facts": [
            (labels("guard_where"), guard_words.where(violation)),
            (labels("guard_what"), guard_words.what(violation)),
        ],
        "meaning": f"{meaning.meaning} {guard_words.FIRST_MATTERS}".strip(),
        "candidates": [(heading, _hypotheses(found)) for heading, found in guard_words.hypotheses(meaning)],
        "watched": guard_words.checked(watched.record) if watched is not None else [],
        "violations": _violations(watched) if watched is not None else [],
        "more": max(0, watched.record.total - _MOST_VIOLATIONS) if watched is not None else 0,
    }


def _hypotheses(found: Sequence[Hypothesis]) -> list[dict[str, str]]:
    return [{"id": one.id, "text": one.text, "link": safe_link(one.source)} for one in found]


def _violations(watched: GuardedTrial) -> list[tuple[str, ...]]:
    return [
        (str(number), one.kind, guard_words.where(one), guard_words.what(one))
        for number, one in enumerate(watched.record.violations[:_MOST_VIOLATIONS], start=1)
    ]
