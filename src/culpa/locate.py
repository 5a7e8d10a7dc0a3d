"""From an isolated failure to the place where it begins: which trials are watched by the guard, and what that shows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from culpa.guard import explain, read_folder
from culpa.guard.launching import out_folder
from culpa.model import Conclusion, Configuration, Factor, Finding, Level, Outcome, Trial, all_suspect
from culpa.model.guard import GuardedTrial, Located
from culpa.model.trial import GUARD
from culpa.search import Proposal

# Violations of a watched trial that go into the result; its folder has them all.
MOST_KEPT = 20
_REASON = "the isolated configuration once more, with the guard in the engine: where does it begin?"


def to_watch(
    conclusion: Conclusion, trials: Sequence[Trial], factors: Sequence[Factor], folder: Path
) -> list[Proposal]:
    """The configurations that fail and that no trial with the guard has shown yet: one for each finding.

    Where nothing was isolated, the failing configuration that lies nearest to all safe.
    """
    wanted = []
    for finding in conclusion.findings or (None,):
        if any(_watched(trial, folder) for trial in _failing(finding, trials, factors)):
            continue
        best = _plainest(_failing(finding, trials, factors), factors)
        configuration = None if best is None else _whole(best, factors)
        # A second trial would be no better if the first one did not fail.
        tried = [_whole(trial, factors) for trial in trials if trial.purpose == GUARD]
        if configuration is not None and configuration not in tried:
            wanted.append(Proposal(configuration, "search", "guard", _REASON))
    return wanted


def located(
    conclusion: Conclusion, trials: Sequence[Trial], factors: Sequence[Factor], folder: Path
) -> tuple[Conclusion, tuple[GuardedTrial, ...]]:
    """The conclusion with the place of each finding where a guard saw it, and the watched trials behind that."""
    findings: list[Finding] = []
    shown: dict[int, GuardedTrial] = {}
    for finding in conclusion.findings:
        watched = _records(_failing(finding, trials, factors), folder)
        # Where several trials were watched, the last one asked nothing but what fails.
        best = next((one for one in watched if one.record.first is not None), watched[0] if watched else None)
        if best is not None:
            shown[best.trial] = best
        if best is None or best.record.first is None:
            findings.append(finding)
            continue
        violation = best.record.first
        place = Located(best.trial, violation, explain(violation.kind))
        findings.append(replace(finding, level=Level.LOCATED, located=place))
    if not shown:
        others = [trial for trial in trials if trial.outcome in (Outcome.FAIL, Outcome.OTHER, Outcome.PASS)]
        last = _records([one for one in others if one.purpose == GUARD], folder)
        shown = {one.trial: one for one in last[:1]}
    if not shown and not conclusion.findings:
        failing = [trial for trial in trials if trial.outcome is Outcome.FAIL]
        shown = {one.trial: one for one in _records(failing, folder)[:1]}
    return replace(conclusion, findings=tuple(findings)), tuple(shown[number] for number in sorted(shown))


def _records(trials: Iterable[Trial], folder: Path) -> list[GuardedTrial]:
    """What the guard saw in those of the trials that had it, the latest first."""
    watched = [trial for trial in trials if _watched(trial, folder)]
    watched.sort(key=lambda trial: (trial.purpose == GUARD, trial.id), reverse=True)
    found = []
    for one in watched:
        record = read_folder(out_folder(folder / one.folder))
        record = replace(record, violations=record.violations[:MOST_KEPT])
        found.append(GuardedTrial(one.id, one.outcome is Outcome.FAIL, record))
    return found


def _watched(trial: Trial, folder: Path) -> bool:
    return bool(trial.folder) and out_folder(folder / trial.folder).is_dir()


def _failing(finding: Finding | None, trials: Sequence[Trial], factors: Sequence[Factor]) -> list[Trial]:
    """The trials that failed with all members of a finding at the level that fails; all that failed without one."""
    members = {member.name: member.suspect for member in finding.members} if finding is not None else {}
    return [
        trial
        for trial in trials
        if trial.outcome is Outcome.FAIL
        and all(_whole(trial, factors).get(name) == level for name, level in members.items())
    ]


def _plainest(trials: Sequence[Trial], factors: Sequence[Factor]) -> Trial | None:
    """The one that has most factors at another level than the user's."""
    suspects = all_suspect(factors)
    return max(
        trials, key=lambda trial: (len(_whole(trial, factors).differing(suspects)), -trial.id), default=None
    )


def _whole(trial: Trial, factors: Sequence[Factor]) -> Configuration:
    """A trial's levels of what is varied; the user's where it had none yet."""
    suspects = all_suspect(factors)
    levels = trial.configuration.as_dict()
    return suspects.with_levels({name: level for name, level in levels.items() if name in suspects})
