"""The table of arms: one row a configuration, with columns only for factors whose levels differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from culpa.model import Configuration, Experiment, Outcome, Trial, all_suspect
from culpa.report import words
from culpa.report.passing_arms import passes_of

MOST_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class ArmRow:
    """All trials of one configuration. `levels` runs along the columns of the table; `others` sums up the
    factors that have no column of their own; `excludes` says which failure rates the passes of an arm that never
    failed exclude (empty for all others)."""

    arm: str
    levels: tuple[str, ...]
    others: str
    outcomes: str
    failed: tuple[str, ...]
    requests: int
    tokens: int
    seconds: float
    trials: tuple[int, ...]
    excludes: str = ""


@dataclass(frozen=True, slots=True)
class ArmTable:
    """The rows, the factors that have a column, and how many varied factors have none."""

    columns: tuple[str, ...]
    without_column: int
    rows: tuple[ArmRow, ...]


def arm_table(experiment: Experiment) -> ArmTable:
    """Group the trials by configuration, in the order in which each configuration was first run.

    A factor that a trial does not name was at its suspect level: the first trials run before the factors of
    the failing request are known.
    """
    launched = all_suspect(experiment.factors)
    groups: dict[Configuration, list[Trial]] = {}
    for trial in experiment.trials:
        full = launched.with_levels(trial.configuration.as_dict())
        groups.setdefault(full, []).append(trial)
    varied = _varied(experiment, groups)
    columns = varied if len(varied) <= MOST_COLUMNS else _decisive(experiment, varied)
    rest = [name for name in varied if name not in columns]
    rows = tuple(
        _row(experiment, configuration, trials, columns, rest) for configuration, trials in groups.items()
    )
    return ArmTable(tuple(columns), len(rest), rows)


def _varied(experiment: Experiment, configurations: Iterable[Configuration]) -> list[str]:
    """Factors that had more than one level, in catalogue order and then any others by name."""
    levels: dict[str, set[str]] = {}
    for configuration in configurations:
        for name, level in configuration.levels:
            levels.setdefault(name, set()).add(level)
    known = [factor.name for factor in experiment.factors]
    ordered = [*known, *sorted(levels.keys() - set(known))]
    return [name for name in ordered if len(levels.get(name, ())) > 1]


def _decisive(experiment: Experiment, varied: Sequence[str]) -> list[str]:
    """The factors that matter most, where there is no room for all: members, then masking ones."""
    conclusion = experiment.conclusion
    members = [member.name for finding in conclusion.findings for member in finding.members]
    weighty = [status.name for status in conclusion.statuses if status.status in ("in", "masking")]
    named = [name for name in dict.fromkeys([*members, *weighty]) if name in varied][:MOST_COLUMNS]
    return [name for name in varied if name in named]


def _row(
    experiment: Experiment,
    configuration: Configuration,
    trials: Sequence[Trial],
    columns: Sequence[str],
    rest: Sequence[str],
) -> ArmRow:
    failed = dict.fromkeys(_what_failed(trial) for trial in trials)
    return ArmRow(
        arm=", ".join(dict.fromkeys(trial.arm for trial in trials if trial.arm)),
        levels=tuple(configuration.get(name) for name in columns),
        others=_others(experiment, configuration, rest),
        outcomes=_outcomes(trials),
        failed=tuple(text for text in failed if text),
        requests=sum(trial.exposure.requests for trial in trials),
        tokens=sum(trial.exposure.tokens for trial in trials),
        seconds=sum(trial.exposure.seconds for trial in trials),
        trials=tuple(trial.id for trial in trials),
        excludes=_excludes(trials),
    )


def _excludes(trials: Sequence[Trial]) -> str:
    passed = passes_of(list(trials))
    return words.excluded(passed) if passed else ""


def _others(experiment: Experiment, configuration: Configuration, rest: Sequence[str]) -> str:
    """The factors without a column: as launched, all changed, or the few that are on one side."""
    suspect = {factor.name: factor.suspect for factor in experiment.factors}
    changed = [name for name in rest if configuration.get(name) != suspect.get(name)]
    if not changed:
        return "as launched"
    kept = [name for name in rest if name not in changed]
    if not kept:
        return "all changed"
    if len(changed) <= 2:
        return "changed: " + ", ".join(f"{name}={configuration.get(name)}" for name in changed)
    if len(kept) <= 2:
        return "changed, but for " + ", ".join(kept)
    return f"{len(changed)} of {len(rest)} changed"


def _outcomes(trials: Sequence[Trial]) -> str:
    """`fail`, or for repeated trials `fail 2 of 3, pass 1 of 3`."""
    if len(trials) == 1:
        return trials[0].outcome.value
    counts = {outcome: sum(trial.outcome is outcome for trial in trials) for outcome in Outcome}
    return ", ".join(
        f"{outcome.value} {count} of {len(trials)}" for outcome, count in counts.items() if count
    )


def _what_failed(trial: Trial) -> str:
    if trial.outcome is Outcome.FAIL and trial.signature is not None:
        # They all share the hunted event, which the report gives in full elsewhere.
        return replace(trial.signature, event=None).describe()
    return words.why(trial)
