"""How fast an engine answered, from the requests of its trials: generated tokens a second, one request at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from culpa.model import Experiment, RequestResult, Trial

# Shorter answers are mostly the time of the first token, longer prompts mostly the time to read them.
_LEAST_TOKENS = 32
_LONGEST_PROMPT = 512


@dataclass(frozen=True, slots=True)
class Speed:
    """Median, lowest and highest generated tokens a second, over that many requests sent alone."""

    tokens_per_second: float
    low: float
    high: float
    requests: int


def generation_speed(trials: Iterable[Trial]) -> Speed | None:
    """The speed over all trials; None where no request of them is fit to measure it."""
    rates = sorted(
        (one.completion_tokens or 0) / one.seconds
        for trial in trials
        for one in trial.requests
        if _measures(one)
    )
    return Speed(median(rates), rates[0], rates[-1], len(rates)) if rates else None


@dataclass(frozen=True, slots=True)
class Price:
    """How fast the passing command generated against the failing one, on the same kind of request."""

    failing: Speed
    passing: Speed

    @property
    def ratio(self) -> float:
        """How many times as fast the passing one is."""
        return self.passing.tokens_per_second / self.failing.tokens_per_second


def price(experiment: Experiment) -> Price | None:
    """The price of the passing command in speed; None where it was not measured."""
    commands = experiment.commands
    failing = experiment.trial(commands.failing_trial) if commands else None
    passing = experiment.trial(commands.passing_trial) if commands else None
    if failing is None or passing is None:
        return None
    before = generation_speed(_alike(experiment, failing))
    after = generation_speed(_alike(experiment, passing))
    return Price(before, after) if before is not None and after is not None else None


def speed_sentence(experiment: Experiment) -> str:
    """The price of the passing command in a sentence; empty where it was not measured."""
    found = price(experiment)
    if found is None:
        return ""
    return (
        f"It generated {_shown(found.passing)}, the failing launch {_shown(found.failing)} on the same kind of "
        f"request: {found.ratio:.2f} times as fast."
    )


def _shown(speed: Speed) -> str:
    spread = f", {speed.low:.0f} to {speed.high:.0f}" if speed.requests > 1 else ""
    plural = "s" if speed.requests > 1 else ""
    return f"{speed.tokens_per_second:.0f} tokens/s (median of {speed.requests} answer{plural}{spread})"


def _alike(experiment: Experiment, trial: Trial) -> list[Trial]:
    """The trials with the same launch: what was asked of them does not change how fast they are."""
    launch = [factor.name for factor in experiment.factors if factor.scope == "launch"]
    levels = [trial.configuration.get(name) for name in launch]
    return [
        other for other in experiment.trials if [other.configuration.get(name) for name in launch] == levels
    ]


def _measures(one: RequestResult) -> bool:
    return (
        one.status != "failed"
        and one.at_once == 1
        and one.seconds > 0
        and (one.completion_tokens or 0) >= _LEAST_TOKENS
        and one.prompt_tokens is not None
        and one.prompt_tokens <= _LONGEST_PROMPT
    )
