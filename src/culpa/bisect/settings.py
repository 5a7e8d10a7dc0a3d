"""Which settings the failure needs beside the version: `culpa isolate` at the bad end, with the version as a factor.

What the bisection has seen of the two versions is handed on, so nothing of it is tried again.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culpa.isolate import Asked, Run, execute, new_run, resumed_run, set_up
from culpa.model import Experiment
from culpa.model.bisection import ENGINE_VERSION, Bisection
from culpa.model.observer import Observer
from culpa.record import Record
from culpa.report import write_reports
from culpa.store import JOURNAL, open_run
from culpa.versions import VersionFactor

if TYPE_CHECKING:
    from culpa.bisect.run import BisectRun

FOLDER = "isolate"
_HANDED_ON = ("limits", "hunted", "reference", "note")


def isolate_settings(one: "BisectRun", result: Bisection, observer: Observer) -> Bisection:
    """Isolate at the bad end, against the last good version; the run lies in the folder `isolate` of the bisection."""
    folder = one.run.folder / FOLDER
    good, bad = result.edge[0], one.bisect.row.labels[-1]
    assert good is not None
    observer.note(f"which settings does it need beside the version? {bad} against {good}, in {folder}")
    begun = (folder / JOURNAL).exists()
    run = resumed_run(folder, {}) if begun else _begun(one, folder, good, bad, len(result.trials))
    experiment = execute(run, observer)
    write_reports(experiment, folder)
    return replace(
        _told(result, experiment), elapsed_seconds=result.elapsed_seconds + experiment.elapsed_seconds
    )


def _begun(one: "BisectRun", folder: Path, good: str, bad: str, used: int) -> Run:
    asked, options = one.bisect.asked, one.bisect.asked.options
    left = options.max_trials - used if options.max_trials is not None else None
    options = replace(options, max_trials=None if left is None else max(1, left), thresholds=False)
    only = (*asked.only, ENGINE_VERSION) if asked.only else ()
    version = VersionFactor((bad, good), asked.versions)
    setup = set_up(Asked(asked.words, options, only, asked.skip, (), asked.factors_file, version))
    run = new_run(setup, folder)
    entries = list(_seen(one, good, bad))
    for entry in entries:
        run.journal.append(entry["kind"], **{name: value for name, value in entry.items() if name != "kind"})
    return replace(run, record=Record(run.journal, entries))


def _seen(one: "BisectRun", good: str, bad: str) -> Iterator[dict[str, Any]]:
    """The entries of the bisection's journal that say something of the two versions, as a run of isolate has them."""
    _, _, entries = open_run(one.run.folder)
    final = {entry["trial"]["id"]: entry for entry in entries if entry["kind"] == "trial"}
    for entry in entries:
        if entry["kind"] in _HANDED_ON:
            yield entry
        elif entry["kind"] == "trial" and final[entry["trial"]["id"]] is entry:
            trial = entry["trial"]
            if dict(trial["configuration"]["levels"]).get(ENGINE_VERSION) not in (good, bad):
                continue
            purpose = trial["purpose"] if trial["purpose"] in ("baseline", "reference") else "search"
            folder = f"../{trial['folder']}" if trial["folder"] else ""
            yield {"kind": "trial_started", "id": trial["id"], "elapsed": 0.0, "why": "run by culpa bisect"}
            yield {
                "kind": "trial",
                "trial": {**trial, "purpose": purpose, "folder": folder},
                "elapsed": 0.0,
            }


def _told(result: Bisection, experiment: Experiment) -> Bisection:
    """What the isolation says of settings, in the words of the bisection."""
    findings = experiment.conclusion.findings
    if not findings:
        why = experiment.conclusion.outcome.value
        return replace(
            result, settings_text=f"{result.settings_text}; culpa isolate found no set ({why})".lstrip("; ")
        )
    members = [f"{member.name}={member.suspect}" for member in findings[0].members]
    alone = [member.name for member in findings[0].members] == [ENGINE_VERSION]
    return replace(
        result,
        settings="version_alone" if alone else "settings_too",
        isolated=tuple(members),
        isolated_probability=findings[0].probability,
        interrupted=experiment.interrupted,
    )
