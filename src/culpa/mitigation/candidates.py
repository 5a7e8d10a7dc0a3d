"""Which configurations of a run may keep its failure away, nearest to the launch first, and which may not. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from culpa.model import Configuration, Factor, Outcome, Trial
from culpa.model.diagnosis import SettingValue
from culpa.model.mitigation import NotOffered, Workaround
from culpa.triage.known_issues import Value, holds, known_issues

Change = tuple[str, str, str]
SettingsAt = Callable[[Configuration], Mapping[str, SettingValue]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change of the launch. `trials` are those that passed with it under the failing requests; none for a workaround
    that so far only a report vouches for."""

    changes: tuple[Change, ...]
    trials: tuple[Trial, ...] = ()
    workarounds: tuple[Workaround, ...] = ()

    @property
    def levels(self) -> Configuration:
        """The levels that differ from the launch."""
        return Configuration.of({name: level for name, _, level in self.changes})


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be offered, nearest first, and what may not."""

    candidates: tuple[Candidate, ...]
    not_offered: tuple[NotOffered, ...]


def choose(
    trials: Sequence[Trial],
    launch_factors: Sequence[Factor],
    request_suspects: Mapping[str, str],
    *,
    issues: Collection[str] = (),
    settings_at: SettingsAt = lambda _: {},
    most: int = 4,
) -> Choice:
    """The candidates of a run.

    A configuration counts as passing if it passed at least once under the failing requests and neither failed nor
    showed another failure. Of two, the one that changes a superset of the other's settings is left out. `issues` are
    the ids of the known issues that the failure may be an instance of;
    `settings_at` gives the engine's settings at changed levels, by which workarounds of known issues are recognised.
    """
    groups = _groups(trials, launch_factors, request_suspects)
    known = dict(_known(launch_factors, issues, settings_at))
    found = [
        Candidate(changes, tuple(_passes(group)), known.get(changes, ()))
        for changes, group in groups.items()
        if changes and _passes(group) and not _failures(group)
    ]
    found += [
        Candidate(changes, (), workarounds) for changes, workarounds in known.items() if changes not in groups
    ]
    nearest = [one for one in found if not any(_within(other, one) for other in found)]
    nearest.sort(key=lambda one: (len(one.changes), not one.trials, one.trials[0].id if one.trials else 0))
    left_out = [
        NotOffered(one.changes, "not_measured", f"more than {most} configurations lie as near")
        for one in nearest[most:]
    ]
    return Choice(tuple(nearest[:most]), (*_refused(groups, known), *left_out))


def _groups(
    trials: Sequence[Trial], launch_factors: Sequence[Factor], request_suspects: Mapping[str, str]
) -> dict[tuple[Change, ...], list[Trial]]:
    """The trials that asked the failing requests, by what they changed in the launch."""
    groups: dict[tuple[Change, ...], list[Trial]] = {}
    for trial in trials:
        levels = trial.configuration.as_dict()
        if any(levels.get(name, suspect) != suspect for name, suspect in request_suspects.items()):
            continue
        if trial.outcome is Outcome.UNTESTABLE or trial.purpose in ("reference", "calibration"):
            continue
        changes = tuple(
            (factor.name, factor.suspect, levels[factor.name])
            for factor in launch_factors
            if levels.get(factor.name, factor.suspect) != factor.suspect
        )
        groups.setdefault(changes, []).append(trial)
    return groups


def _passes(group: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in group if trial.outcome is Outcome.PASS]


def _failures(group: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in group if trial.outcome in (Outcome.FAIL, Outcome.OTHER)]


def _within(smaller: Candidate, larger: Candidate) -> bool:
    """Whether one changes less of the same, and is known to pass."""
    return bool(smaller.trials) and set(smaller.changes) < set(larger.changes)


def _refused(
    groups: Mapping[tuple[Change, ...], Sequence[Trial]], known: Mapping[tuple[Change, ...], object]
) -> Iterator[NotOffered]:
    """Changes of one setting, or known ones, that did not keep the failure away or only changed its face."""
    for changes, group in groups.items():
        failed = _failures(group)
        if not changes or not failed or (len(changes) > 1 and changes not in known):
            continue
        shifted = [trial for trial in failed if trial.outcome is Outcome.OTHER]
        first = (shifted or failed)[0]
        symptom = (first.signature.symptom if first.signature else "a failure").replace("_", " ")
        named = f"trial {first.id}"
        if shifted:
            yield NotOffered(changes, "symptom_shift", f"{symptom} in its place ({named}): a symptom shift")
        else:
            yield NotOffered(changes, "failed", f"the failure comes all the same ({named})")


def _known(
    factors: Sequence[Factor], issues: Collection[str], settings_at: SettingsAt
) -> Iterator[tuple[tuple[Change, ...], tuple[Workaround, ...]]]:
    """Changes of one setting that a known issue of this failure names as keeping it away."""
    entries = [entry for entry in known_issues() if entry.id in issues and entry.workaround]
    if not entries:
        return
    before = settings_at(Configuration(()))
    for factor in factors:
        for level in () if factor.instrument else factor.safe:
            after = settings_at(Configuration.of({factor.name: level}))
            found = tuple(
                Workaround(entry.id, entry.url, entry.status)
                for entry in entries
                if any(_met(one, after) and not _met(one, before) for one in entry.workaround)
            )
            if found:
                yield ((factor.name, factor.suspect, level),), found


def _met(wanted: Mapping[str, Value | tuple[Value, ...]], settings: Mapping[str, SettingValue]) -> bool:
    return all(name in settings and holds(settings[name], value) for name, value in wanted.items())
