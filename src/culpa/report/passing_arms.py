"""What every arm that never failed excludes: how long it ran, what it was asked, the failure rates that rules out."""

from collections.abc import Iterator
from dataclasses import dataclass

from culpa.model import Configuration, Experiment, Outcome, Trial, all_suspect
from culpa.model.trial import NO_TEST
from culpa.search.exposure import excluded_rate


@dataclass(frozen=True, slots=True)
class PassingArm:
    """One configuration that passed in `passes` trials and failed in none.

    `excluded_launch_rate` is the share of launches, `excluded_request_rate` that of requests (None where none was
    asked) above which a fault is excluded at 95% (`culpa.search.exposure.excluded_rate`).
    """

    arm: str
    configuration: Configuration
    passes: int
    requests: int
    tokens: int
    seconds: float
    concurrency: int
    trials: tuple[int, ...]

    @property
    def excluded_launch_rate(self) -> float:
        return excluded_rate(self.passes)

    @property
    def excluded_request_rate(self) -> float | None:
        return excluded_rate(self.requests) if self.requests else None


def passes_of(trials: list[Trial]) -> list[Trial]:
    """The trials of one configuration whose passes exclude something: none if one of them failed."""
    if any(trial.outcome is Outcome.FAIL for trial in trials):
        return []
    # A reference is the measure of the others and can't fail by it.
    return [trial for trial in trials if trial.outcome is Outcome.PASS and trial.purpose not in NO_TEST]


def passing_arms(experiment: Experiment) -> Iterator[PassingArm]:
    """Every configuration that passed and never failed, in the order in which each was first run.

    A factor that a trial does not name was at its suspect level, as in the table of arms.
    """
    launched = all_suspect(experiment.factors)
    groups: dict[Configuration, list[Trial]] = {}
    for trial in experiment.trials:
        groups.setdefault(launched.with_levels(trial.configuration.as_dict()), []).append(trial)
    for configuration, trials in groups.items():
        passes = passes_of(trials)
        if passes:
            yield PassingArm(
                arm=", ".join(dict.fromkeys(trial.arm for trial in passes if trial.arm)),
                configuration=configuration,
                passes=len(passes),
                requests=sum(trial.exposure.requests for trial in passes),
                tokens=sum(trial.exposure.tokens for trial in passes),
                seconds=sum(trial.exposure.seconds for trial in passes),
                concurrency=max(trial.exposure.concurrency for trial in passes),
                trials=tuple(trial.id for trial in passes),
            )
