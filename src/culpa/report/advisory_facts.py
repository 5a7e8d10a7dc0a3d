"""What an advisory is about, apart from any language: the trials behind each of its claims."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.model import (
    Configuration,
    Experiment,
    FactorStatus,
    Level,
    Member,
    Outcome,
    Trial,
    all_suspect,
)
from culpa.model.mitigation import Mitigation
from culpa.report import words
from culpa.report.environment_text import fact
from culpa.report.source import ReportSource
from culpa.report.speed import Price, price

# Failures of a GPU: there the kernel's log is a witness.
_GPU = ("cuda_", "cublas", "device_side", "gpu_hw", "gsp_", "nccl", "triton", "hang")


@dataclass(frozen=True, slots=True)
class Workaround:
    """A launch that passed, with what it was asked: a contrast that may serve for a time. `rate` and `launch_rate` are
    the highest rates of failure, by request and by launch, that its passes do not exclude at 95%."""

    command: str
    request: str
    changes: tuple[Member, ...]
    trials: int
    requests: int
    launch_rate: float
    rate: float | None
    price: Price | None
    luck: float | None
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A control arm that was run: the levels that it changed from the launch, and how its trials ended."""

    changes: tuple[tuple[str, str], ...]
    outcome: str
    trials: tuple[int, ...]


def workaround(experiment: Experiment, found: Mitigation | None = None) -> Workaround | None:
    """The cheapest configuration that was measured, else the nearest one that passed, if it may be offered.

    None where nothing that was measured keeps the failure away, where no finding says what the failure needs, where
    the difference lies in what users ask, and where the same configuration failed in another way: a symptom that
    shifts is no mitigation.
    """
    from culpa.search.exposure import excluded_rate

    commands = experiment.commands
    levels = {finding.level for finding in experiment.conclusion.findings}
    if (
        commands is None
        or not commands.passing
        or not levels & {Level.ISOLATED, Level.LOCATED, Level.CONTRAST}
    ):
        return None
    if found is not None:
        return _measured(found)
    requested = {factor.name for factor in experiment.factors if factor.scope == "request"}
    if requested & {member.name for member in commands.differing} or not commands.differing:
        return None
    trial = experiment.trial(commands.passing_trial)
    if trial is None:
        return None
    same = [other for other in experiment.trials if _full(experiment, other) == _full(experiment, trial)]
    if any(other.outcome in (Outcome.OTHER, Outcome.FAIL) for other in same):
        return None
    passed = [other for other in same if other.outcome is Outcome.PASS and other.purpose != "reference"]
    if not passed:
        return None
    requests = sum(other.exposure.requests for other in passed)
    failed, tried = experiment.baseline.failed, experiment.baseline.trials
    return Workaround(
        command=commands.passing,
        request=commands.passing_request,
        changes=commands.differing,
        trials=len(passed),
        requests=requests,
        launch_rate=excluded_rate(len(passed)),
        rate=excluded_rate(requests) if requests else None,
        price=price(experiment),
        luck=(1 - failed / tried) ** len(passed) if 0 < failed < tried else None,
    )


def _measured(found: Mitigation) -> Workaround | None:
    """The first of the options, which stand by cost."""
    if not found.options:
        return None
    best = found.options[0]
    return Workaround(
        command=best.command,
        request="",
        changes=tuple(Member(name, before, level) for name, before, level in best.changes),
        trials=best.exposure.launches,
        requests=best.exposure.requests,
        launch_rate=best.exposure.excluded_launch_rate,
        rate=best.exposure.excluded_request_rate if best.exposure.requests else None,
        price=None,
        luck=None,
        upstream=tuple(one.url for one in best.workarounds),
    )


def control_arms(experiment: Experiment) -> list[Step]:
    """The arms that tell most: each member of a finding made safe from the launch, then those that were asked for."""
    suspects = all_suspect(experiment.factors)
    members = [member for finding in experiment.conclusion.findings for member in finding.members]
    wanted: list[tuple[tuple[str, str], ...]] = [((member.name, member.safe),) for member in members]
    wanted += [arm.levels for arm in experiment.arms]
    steps: list[Step] = []
    for changes in dict.fromkeys(wanted):
        if not changes:
            continue
        configuration = suspects.with_levels(dict(changes))
        trials = [trial for trial in experiment.trials if _full(experiment, trial) == configuration]
        outcome = _outcome(trials)
        if outcome:
            steps.append(Step(changes, outcome, tuple(trial.id for trial in trials)))
    return steps


def failed_arms(experiment: Experiment) -> list[Step]:
    """Arms that one would hope for and that failed all the same: none of them is a workaround."""
    return [step for step in control_arms(experiment) if step.outcome in ("fail", "mixed")]


def of_status(experiment: Experiment, status: str) -> list[FactorStatus]:
    """The factors that turned out so."""
    return [one for one in experiment.conclusion.statuses if one.status == status]


def is_gpu_failure(experiment: Experiment) -> bool:
    """Whether the kernel's log of the machine would show it."""
    hunted = experiment.hunted
    return bool(experiment.root and experiment.root.xids) or (
        hunted is not None and hunted.symptom.startswith(_GPU)
    )


def capacities(experiment: Experiment) -> list[tuple[str, str]]:
    """The engine's own counts of tokens that its cache holds, by arm, each once."""
    found: dict[str, str] = {}
    for trial in experiment.trials:
        tokens = dict(trial.effective).get("kv_cache_tokens")
        if tokens and trial.arm and (trial.purpose == "baseline" or _is_asked(experiment, trial)):
            found.setdefault(trial.arm, f"{int(tokens):,}" if tokens.isdigit() else tokens)
    return list(found.items())


def environment(source: ReportSource) -> list[tuple[str, str]]:
    """The facts of the environment that matter first, those that are known."""
    experiment = source.experiment
    names = ("os", "kernel", "python", "torch", "cuda", "triton", "driver", "gpus", "image")
    rows = [("engine", words.engine(experiment)), *((name, fact(source, name)) for name in names)]
    return [(name, value) for name, value in rows if value]


def longest_prompt(trials: Sequence[Trial]) -> int:
    """The length of the longest prompt that was asked, in tokens, as the engine counted it or as it was meant."""
    sizes = [
        one.prompt_tokens or one.size
        for trial in trials
        for one in trial.requests
        if one.kind == "long_prompt"
    ]
    return max(sizes, default=0)


def _is_asked(experiment: Experiment, trial: Trial) -> bool:
    return trial.arm in {arm.name for arm in experiment.arms}


def _full(experiment: Experiment, trial: Trial) -> Configuration:
    return all_suspect(experiment.factors).with_levels(trial.configuration.as_dict())


def _outcome(trials: Sequence[Trial]) -> str:
    """`pass`, `fail`, `other`, or `mixed`; empty where nothing was judged."""
    ends = {trial.outcome for trial in trials if trial.outcome is not Outcome.UNTESTABLE}
    return next(iter(ends)).value if len(ends) == 1 else "mixed" if ends else ""
