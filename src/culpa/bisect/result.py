"""From the trials of versions to the one value that every report reads."""

from dataclasses import replace
from typing import TYPE_CHECKING

import culpa
from culpa.bisect.changes import changed_settings, titles_between
from culpa.bisect.loop import OF_VERSIONS, Bisection
from culpa.engines.errors import BadLaunch
from culpa.model import Configuration, Outcome, Trial
from culpa.model.bisection import ENGINE_VERSION, BisectionOutcome, VersionRow, WhatChanged
from culpa.model.bisection import Bisection as Result
from culpa.model.redact import redact
from culpa.search.change_point import ChangeFound

if TYPE_CHECKING:
    from culpa.bisect.run import BisectRun


def assemble_bisection(one: "BisectRun", loop: Bisection, *, interrupted: bool) -> Result:
    """Build the value. Reads the logs of two trials for what they printed, nothing else of the machine."""
    bisect, run = one.bisect, one.run
    labels, record = bisect.row.labels, run.record
    trials = record.ordered()
    result = Result(
        culpa_version=culpa.__version__,
        run_id=run.run_id,
        started=run.started,
        elapsed_seconds=round(loop.elapsed, 3),
        engine=bisect.adapter.name,
        launch=bisect.setup.launch,
        source=bisect.opened.source,
        packages=bisect.opened.provider.packages,
        outcome="no_failure",
        versions=_rows(labels, trials, ()),
        turned=bisect.row.turned,
        confidence=bisect.setup.options.confidence,
        hunted=record.hunted.signature if record.hunted else None,
        trials=trials,
        settings=loop.settings,
        settings_text=loop.settings_text,
        notes=(*bisect.setup.reading.notes, *record.notes),
        limits_reached=tuple(loop.limits_reached),
        interrupted=interrupted,
        folder=str(run.folder),
    )
    if record.hunted is None:
        return result
    history = loop.trials_of_versions()
    found = loop.search.conclude(history)
    chances = tuple(float(one) for one in loop.search.posterior(history).weight)
    result = replace(
        result,
        outcome=_outcome(found),
        versions=_rows(labels, trials, chances),
        interval=tuple(labels[found.first : found.last + 1]),
        probability=found.probability,
        bad=found.bad,
        good=found.good,
        notes=(*result.notes, *_remarks(labels, found)),
    )
    if not found.found:
        return result
    good, bad = labels[found.first - 1], labels[found.last]
    return replace(
        result, edge=(good, bad), changed=_changed(one, good, bad, trials), commands=_commands(one, good, bad)
    )


def _outcome(found: ChangeFound) -> BisectionOutcome:
    if found.good_fails:
        return "good_fails"
    if not found.found:
        return "inconclusive"
    return "found" if found.first == found.last else "interval"


def _rows(
    labels: tuple[str, ...], trials: tuple[Trial, ...], chances: tuple[float, ...]
) -> tuple[VersionRow, ...]:
    rows = []
    for place, label in enumerate(labels):
        own = [
            trial
            for trial in trials
            if trial.purpose in OF_VERSIONS and trial.configuration.get(ENGINE_VERSION) == label
        ]
        ended = [trial.outcome for trial in own]
        useless = [
            trial.reason
            for trial in own
            if trial.outcome in (Outcome.UNTESTABLE, Outcome.OTHER) and trial.reason
        ]
        said = [dict(trial.effective).get("engine_version", "") for trial in own]
        rows.append(
            VersionRow(
                label,
                ended.count(Outcome.FAIL),
                ended.count(Outcome.PASS),
                ended.count(Outcome.OTHER),
                ended.count(Outcome.UNTESTABLE),
                next((one for one in said if one), ""),
                useless[-1] if useless else "",
                chances[place] if chances else None,
            )
        )
    return tuple(rows)


def _remarks(labels: tuple[str, ...], found: ChangeFound) -> tuple[str, ...]:
    """What does not fit the picture of one change."""
    remarks = []
    if found.found and found.good.failed:
        remarks.append(
            f"versions before the change showed this very failure too, {found.good.failed} of {found.good.trials} "
            "times: they are less good than they are called"
        )
    if found.unlike:
        named = ", ".join(labels[place] for place in found.unlike)
        remarks.append(
            f"{named} passed more often than one change allows: there may be more changes than one"
        )
    return tuple(remarks)


def _changed(one: "BisectRun", good: str, bad: str, trials: tuple[Trial, ...]) -> WhatChanged:
    row = one.bisect.row
    ordered = tuple(reversed(row.candidates)) if row.turned else row.candidates
    older, newer = (bad, good) if row.turned else (good, bad)
    titles, source = titles_between(ordered, older, newer, one.bisect.asked.notes)
    settings = changed_settings(one.bisect.adapter, one.run.folder, trials, good, bad)
    return WhatChanged(titles, source, settings)


def _commands(one: "BisectRun", good: str, bad: str) -> tuple[str, str]:
    """The launches of the two versions as lines that can be pasted."""
    lines = []
    for label in (good, bad):
        try:
            launch = one.bisect.adapter.apply(
                one.bisect.setup.launch, Configuration.of({ENGINE_VERSION: label})
            )
        except BadLaunch:
            return "", ""
        lines.append(redact(launch.command_line()))
    return lines[0], lines[1]
