"""The table that a person would have made by hand: the launch and the arms asked for, by kind of request."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.model import Experiment, Outcome, RequestResult, Trial
from culpa.model.trial import NO_TEST
from culpa.report.speed import generation_speed
from culpa.report.words import listing


@dataclass(frozen=True, slots=True)
class AskedArm:
    """One arm. `levels` runs along the columns; texts are empty where nothing is known."""

    name: str
    levels: tuple[str, ...]
    questions: str
    long_prompts: str
    outcome: str
    speed: str
    cache_tokens: str
    trials: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AskedArms:
    """The table: the factors with a column, and a row for the launch as it is and for each arm asked for."""

    columns: tuple[str, ...]
    rows: tuple[AskedArm, ...]


# The columns behind the factors, and what a row shows in them.
ASKED_HEADINGS = ("short questions", "long prompts", "outcome", "tokens/s", "KV tokens", "trials")


def asked_cells(row: AskedArm) -> tuple[str, ...]:
    """The texts of a row along `ASKED_HEADINGS`."""
    trials = ", ".join(str(number) for number in row.trials)
    return row.questions, row.long_prompts, row.outcome, row.speed, row.cache_tokens, trials


def asked_arms(experiment: Experiment) -> AskedArms | None:
    """The table, or None if no arms were asked for.

    A row holds the trials with these levels of the launch in which what was asked stayed as it was found.
    """
    if not experiment.arms:
        return None
    launched = {factor.name: factor.suspect for factor in experiment.factors}
    arms = [("baseline", {}), *((arm.name, dict(arm.levels)) for arm in experiment.arms)]
    columns = [name for name in launched if any(name in levels for _, levels in arms)]
    sizes = [one.size for trial in experiment.trials for one in trial.requests if one.kind == "long_prompt"]
    longest = max(sizes, default=0)
    rows = []
    for name, levels in arms:
        wanted = {**launched, **levels}
        trials = [trial for trial in experiment.trials if _is(trial, wanted)]
        rows.append(
            AskedArm(
                name=name,
                levels=tuple(wanted[column] for column in columns),
                questions=_questions(trials),
                long_prompts=_long_prompts(trials, longest),
                outcome=_outcome(trials),
                speed=_speed(trials),
                cache_tokens=_cache_tokens(trials),
                trials=tuple(trial.id for trial in trials),
            )
        )
    return AskedArms(tuple(columns), tuple(rows))


def _is(trial: Trial, wanted: dict[str, str]) -> bool:
    """Whether a trial had these levels; a factor that it does not name was as found."""
    return trial.purpose not in NO_TEST and all(
        trial.configuration[name] == level for name, level in wanted.items() if name in trial.configuration
    )


def _questions(trials: Sequence[Trial]) -> str:
    asked = [one for trial in trials for one in trial.requests if one.kind == "question"]
    return _answers(trials, asked)


def _long_prompts(trials: Sequence[Trial], longest: int) -> str:
    """The answers to prompts of about the longest size, with that size as the engine counted it, or as meant."""
    asked = [
        one
        for trial in trials
        for one in trial.requests
        if one.kind == "long_prompt" and 2 * one.size >= longest
    ]
    text = _answers(trials, asked)
    if not asked:
        return text
    counted = max((one.prompt_tokens or 0 for one in asked), default=0)
    size = f"{counted:,}" if counted else f"about {max(one.size for one in asked):,}"
    return f"{text} ({size} tokens)"


def _answers(trials: Sequence[Trial], asked: Sequence[RequestResult]) -> str:
    """`3 of 3 right`, or what became of the others; empty where no trial was run."""
    if not asked:
        return "not reached" if trials else ""
    right = sum(one.status == "right" for one in asked)
    failures = _failures(trials, asked)
    if failures and right:
        return f"{right} of {len(asked)} right, {listing(failures)}"
    return listing(failures) if failures else f"{right} of {len(asked)} right"


def _failures(trials: Sequence[Trial], asked: Sequence[RequestResult]) -> list[str]:
    """The symptoms of the trials in which one of these requests was not answered, or not rightly."""
    bad = {id(one) for one in asked if one.status in ("failed", "missed")}
    return list(
        dict.fromkeys(
            trial.signature.symptom.replace("_", " ")
            for trial in trials
            if trial.signature is not None and any(id(one) in bad for one in trial.requests)
        )
    )


def _outcome(trials: Sequence[Trial]) -> str:
    """`fail`, with the place that failed first; several trials are counted."""
    if not trials:
        return "not run"
    outcomes = [trial.outcome for trial in trials]
    texts = []
    for outcome in dict.fromkeys(outcomes):
        count = f" {outcomes.count(outcome)} of {len(outcomes)}" if len(outcomes) > 1 else ""
        of_it = [trial for trial in trials if trial.outcome is outcome]
        texts.append(f"{_word(outcome)}{count}{_place(of_it)}")
    return ", ".join(texts)


def _word(outcome: Outcome) -> str:
    return "fails otherwise" if outcome is Outcome.OTHER else outcome.value


def _place(trials: Sequence[Trial]) -> str:
    ranks = dict.fromkeys(
        trial.signature.rank for trial in trials if trial.signature is not None and trial.signature.rank
    )
    return f" ({listing(ranks)} first)" if ranks else ""


def _speed(trials: Sequence[Trial]) -> str:
    speed = generation_speed(trials)
    return f"{speed.tokens_per_second:.0f}" if speed is not None else ""


def _cache_tokens(trials: Sequence[Trial]) -> str:
    """The size of the KV cache as the first of the trials told it."""
    told = (dict(trial.effective).get("kv_cache_tokens", "").replace(",", "") for trial in trials)
    return next((f"{int(number):,}" for number in told if number.isdigit()), "")
