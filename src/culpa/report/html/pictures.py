"""What people look at first: matrix, belief, timeline, root event, layout."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from culpa.model import Experiment, Trial
from culpa.model.told import Told
from culpa.report import clean, incident_words, words
from culpa.report.html.belief import Line, belief_picture, lines
from culpa.report.html.labels import Labels
from culpa.report.html.links import safe_link
from culpa.report.html.logs import LogRow, marked_rows, process_name
from culpa.report.html.matrix import legend, matrix
from culpa.report.html.planned import stored_plan
from culpa.report.html.timeline import timeline, timeline_picture
from culpa.report.html.visible import one_line
from culpa.report.layout_svg import layout_svg
from culpa.report.source import ReportSource

_EVENT_WIDTH = 320
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")


def pictures(source: ReportSource, labels: Labels) -> dict[str, Any]:
    """The pictures with the tables that say the same."""
    experiment = source.experiment
    has_matrix = bool(experiment.trials and experiment.factors)
    told = told_of(source)
    found = lines(experiment.trials, told)
    return {
        "matrix": matrix(experiment, labels) if has_matrix else "",
        "matrix_narrow": matrix(experiment, labels, narrow=True) if has_matrix else "",
        "legend": legend(experiment, labels),
        "belief": belief_picture(experiment.trials, told, labels) if found else "",
        "belief_narrow": belief_picture(experiment.trials, told, labels, narrow=True) if found else "",
        "belief_lines": [
            {
                "key": line.key,
                "name": words.names(line.members),
                "last": _last(line, experiment.trials, labels),
            }
            for line in found
        ],
        "belief_table": _belief_table(experiment.trials, told, labels),
        "timeline": _timeline(source, labels),
        "excerpt": _excerpt(experiment, labels),
        "issues": _issues(experiment),
        "layout": _layout(source, labels),
    }


def _last(line: Line, trials: Sequence[Trial], labels: Labels) -> str:
    """What became of a set: its probability in the end, or the highest that it had."""
    if line.chances[-1] is not None:
        return words.probability(line.chances[-1])
    place = max(range(len(trials)), key=lambda one: line.chances[one] or 0.0)
    return labels("at_most", chance=words.probability(line.chances[place] or 0.0), trial=trials[place].id)


def told_of(source: ReportSource) -> dict[int, Told]:
    """What each trial told, where it told anything."""
    return {one.trial.id: one.told for one in source.trials if one.told is not None}


def _belief_table(trials: Sequence[Trial], account: Mapping[int, Told], labels: Labels) -> dict[str, Any]:
    found = lines(trials, account)
    rows = []
    for place, trial in enumerate(trials):
        told = account.get(trial.id)
        chances = [line.chances[place] for line in found]
        rows.append(
            (
                str(trial.id),
                labels(trial.outcome.value),
                *(words.probability(chance) if chance is not None else "–" for chance in chances),
                f"{told.told:.2f}" if told is not None else "–",
            )
        )
    return {
        "header": (labels("trial"), labels("outcome"), *(line.key for line in found), labels("bits_told")),
        "rows": rows,
        "numeric": tuple(range(2, 3 + len(found))),
    }


def _timeline(source: ReportSource, labels: Labels) -> dict[str, Any] | None:
    failing = source.failing()
    found = timeline(marked_rows(failing.logs)) if failing is not None else None
    if failing is None or found is None:
        return None
    trial, incident = failing.trial, failing.incident
    diagnosis = incident.diagnosis if incident is not None else None
    notes = [words.sentence(f"{diagnosis.verdict.blame}: {diagnosis.verdict.why}")] if diagnosis else []
    return {
        "trial": trial.id,
        "picture": timeline_picture(found, labels),
        "picture_narrow": timeline_picture(found, labels, narrow=True),
        "events": [
            {
                "number": event.number,
                "role": event.row.role,
                "role_name": labels(f"role_{event.row.role}"),
                "who": process_name(event.row.speaker)[0] or event.row.log.rpartition("/")[2],
                "where": _where(event.row),
                "text": one_line(event.row.said, _EVENT_WIDTH),
            }
            for event in found.events
        ],
        "dropped": found.dropped,
        "asynchronous": trial.async_stack,
        "notes": notes,
    }


def _where(row: LogRow) -> str:
    place = f"{row.log.rpartition('/')[2]}:{row.number}"
    clock = _CLOCK.search(row.time)
    return f"{place} · {clock.group() if clock else row.time}" if row.time else place


def _excerpt(experiment: Experiment, labels: Labels) -> dict[str, Any] | None:
    root = experiment.root
    if root is None:
        return None
    shown = root.excerpt or ((root.event.line, root.event.text),)
    last = 0
    rows = []
    for number, text in shown:
        role = "root" if number == root.event.line else ""
        skipped = max(0, number - last - 1) if last else 0
        rows.append({"number": number or "", "text": text, "role": role, "bad": False, "skipped": skipped})
        last = number
    place = labels("root_unwritten", trial=root.trial)
    if root.event.line:
        place = labels("root_where", trial=root.trial, line=f"{root.event.line:,}", log=root.log or "–")
    notes = []
    if root.async_stack:
        notes.append(labels("async"))
    if root.cascade:
        notes.append(labels.say(words.sentence(root.cascade)))
    if root.gpu:
        notes.append(f"GPU {incident_words.gpu(root.gpu)}")
    notes += [f"Xid {told}" for told, _ in incident_words.xids(root.xids)]
    notes += [f"{labels('missing')}: {item}" for item in root.missing]
    return {
        "name": root.log or labels("root_event"),
        "where": place + (f" · {root.event.time}" if root.event.time else ""),
        "rows": rows,
        "after": 0,
        "notes": notes,
    }


def _issues(experiment: Experiment) -> list[dict[str, Any]]:
    if experiment.root is None:
        return []
    return [
        {
            "title": issue.title,
            "url": issue.url,
            "link": safe_link(issue.url),
            "match": issue.match,
            "why": "; ".join(
                part
                for part in (issue.why, *issue.differs, issue.shown and f"shown there: {issue.shown}")
                if part
            ),
        }
        for issue in experiment.root.known_issues
    ]


def _layout(source: ReportSource, labels: Labels) -> dict[str, Any] | None:
    findings = source.experiment.layout
    launched = next((one.trial for one in source.trials if one.trial.purpose == "baseline"), None)
    plan = stored_plan(source.layout, dict(launched.effective) if launched is not None else {})
    if plan is None and not findings:
        return None
    picture = layout_svg(plan, findings, labels.language) if plan is not None else ""
    return {
        # Made by the program from numbers and words that it has escaped itself.
        "picture": Markup(picture),
        "findings": [{"level": found.level, "text": clean.line(found.text)} for found in findings],
    }
