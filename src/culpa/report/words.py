"""The sentences that every report shares: plain text, and never stronger than what the trials showed."""

from collections.abc import Iterable, Sequence
from math import isfinite

from culpa.model import (
    Count,
    Experiment,
    ExperimentOutcome,
    Exposure,
    Finding,
    Level,
    Member,
    Outcome,
    Signature,
    Trial,
)
from culpa.model.trial import NO_TEST
from culpa.report.speed import speed_sentence
from culpa.search.exposure import excluded_rate, rate_interval

LEVEL_MEANING = {
    Level.OBSERVED: "the failure was seen, and no more than that",
    Level.CONTRAST: "one change flips the outcome",
    Level.ISOLATED: "it fails with all else safe, and passes when any one member is made safe",
    Level.LOCATED: "a check inside the engine named where it happens",
}

NOT_JUDGED = "the trials do not judge it"

NOT_SHOWN = (
    "A fault that needs another kind of request, a longer prompt, more requests at once or a longer run than "
    "these would not have been seen.",
    "Nothing is said of other machines, drivers, versions or models.",
)


def duration(seconds: float) -> str:
    """Seconds as a person says them: `8 s`, `3 min 20 s`, `1 h 05 min`."""
    if not isfinite(seconds) or seconds < 0:
        return "unknown"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def percent(share: float) -> str:
    """A share or rate as a percentage. Only the numbers 0 and 1 themselves become 0% and 100%."""
    if not isfinite(share):
        return "unknown"
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{share * 100:.3g}%" if share >= 0.1 else f"{share * 100:.2g}%"


def probability(value: float) -> str:
    """A probability as a percentage. A posterior of 1 is a rounded one: nothing here is ever certain."""
    return "over 99.9%" if value >= 1 else percent(value)


def plural(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `12,345 tokens`."""
    ending = "" if number == 1 else "es" if noun.endswith("h") else "s"
    return f"{number:,} {noun}{ending}"


def listing(parts: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *head, last = list(parts) or [""]
    return f"{', '.join(head)} and {last}" if head else last


def sentence(text: str) -> str:
    """The text with a capital, if it begins with a plain word, and a full stop."""
    first, _, rest = text.strip().partition(" ")
    start = first.capitalize() if first.isalpha() and first.islower() else first
    whole = f"{start} {rest}".rstrip()
    return whole if whole.endswith((".", "!", "?")) else f"{whole}."


def setting(name: str, level: str) -> str:
    """A factor at a level, as one word where the level allows it."""
    return f"{name}={level}" if level else f"{name} unset"


def suspects(members: Sequence[Member]) -> str:
    """The members of a set at the levels that fail."""
    return listing(setting(member.name, member.suspect) for member in members)


def names(found: Sequence[str]) -> str:
    """A set of factors without levels; the empty set stands for "none of these"."""
    return " + ".join(found) or "none of these"


def why(trial: Trial) -> str:
    """Why a trial is no pass: the signature, the mismatch, or the reason given. Empty on a pass."""
    if trial.outcome is Outcome.PASS:
        return ""
    if trial.outcome is Outcome.UNTESTABLE or trial.signature is None:
        return "; ".join(trial.mismatches) or trial.reason
    return trial.signature.describe()


def times(count: Count) -> str:
    """How often a configuration failed, in words."""
    if count.trials == 0:
        return "was not tried"
    if count.failed == 0:
        return f"passed {count.trials} of {count.trials}"
    return f"failed {count.failed} of {count.trials}"


def place(signature: Signature | None) -> str:
    """The process and rank that failed first, or why nobody can be named."""
    if signature is None:
        return ""
    return (
        " ".join(part for part in (signature.process, signature.rank) if part) or "not named by the evidence"
    )


def symptom(signature: Signature) -> str:
    """The symptom class in words."""
    return signature.symptom.replace("_", " ")


def engine(experiment: Experiment) -> str:
    """The engine's name with its version."""
    return " ".join(part for part in (experiment.engine, experiment.engine_version) if part)


def asked(exposure: Exposure) -> str:
    """What was asked of the engine."""
    text = f"{plural(exposure.requests, 'request')}, {plural(exposure.tokens, 'token')}"
    return f"{text}, {duration(exposure.seconds)}"


def headline(experiment: Experiment) -> str:
    """The conclusion in one line."""
    outcome = experiment.conclusion.outcome
    findings = experiment.conclusion.findings
    if outcome is ExperimentOutcome.NO_FAILURE:
        return "No failure was seen."
    if outcome is ExperimentOutcome.ALL_SAFE_FAILS:
        return "The launch fails even with every factor that can be varied at its safe level."
    if findings:
        return claim(findings[0], alone=len(findings) == 1)
    if experiment.interrupted:
        return "A failure was seen; the run was interrupted before it was isolated."
    return "A failure was seen, but the trials do not isolate it."


def claim(finding: Finding, alone: bool = True) -> str:
    """What was shown of a set of factors, no stronger than its level. `alone`: it is the only fault found."""
    what = "The failure" if alone else "A failure"
    names = suspects(finding.members)
    many = len(finding.members) > 1
    strength = f"{finding.level.value}, probability {probability(finding.probability)}"
    if finding.level in (Level.ISOLATED, Level.LOCATED):
        return f"{what} needs {names}{' together' if many else ''} ({strength})."
    if finding.level is Level.CONTRAST:
        flips = "changing any one of them" if many else "changing that"
        return f"{what} depends on {names} ({strength}): {flips} flips the outcome."
    return f"{what} was seen with {names} ({strength}); whether it needs that was not shown."


def support(finding: Finding) -> list[str]:
    """The counts behind a claim, and its conditions."""
    if finding.sufficient.trials:
        which = "these" if len(finding.members) > 1 else "this"
        sentences = [f"With {which} and all else safe it {times(finding.sufficient)}."]
    else:
        sentences = ["It was not tried with all else safe."]
    safe = {member.name: member.safe for member in finding.members}
    sentences += [
        f"With {setting(name, safe.get(name, 'its safe level'))} instead, all else still safe, it {times(count)}."
        for name, count in finding.necessary
    ]
    return [*sentences, *finding.conditions]


def baseline_sentence(experiment: Experiment) -> str:
    """How often the launch failed as it is, with the interval of rates where it did not always fail."""
    count = experiment.baseline
    if count.trials == 0:
        return "The launch as it is was not tried to its end."
    text = f"The launch as it is {times(count)} {'trial' if count.trials == 1 else 'trials'}"
    if 0 < count.failed < count.trials:
        low, high = rate_interval(count)
        text += f" (a rate between {percent(low)} and {percent(high)} agrees with that, at 95%)"
    return text + "."


def exclusion_sentences(passes: Sequence[Trial]) -> list[str]:
    """Which failure rates the passing trials exclude at 95%: per launch, and per request."""
    if not passes:
        return ["No trial passed, so no failure rate is excluded."]
    requests = sum(trial.exposure.requests for trial in passes)
    sentences = [
        f"With {plural(len(passes), 'launch')} and no failure, a fault that hits more than "
        f"{percent(excluded_rate(len(passes)))} of launches is excluded at 95%."
    ]
    if requests:
        sentences.append(
            f"With {plural(requests, 'request')} and no failure, a fault that hits more than "
            f"{percent(excluded_rate(requests))} of such requests is excluded at 95%."
        )
    return sentences


def excluded(passes: Sequence[Trial]) -> str:
    """The failure rates above which these passes exclude a fault at 95%, in a few words."""
    rates = [f"over {percent(excluded_rate(len(passes)))} of launches"]
    requests = sum(trial.exposure.requests for trial in passes)
    if requests > len(passes):
        rates.append(f"over {percent(excluded_rate(requests))} of requests")
    return ", ".join(rates)


def passing(experiment: Experiment) -> list[Trial]:
    """The trials that passed. A reference is the measure of the others and can't fail by it: it does not count."""
    return [
        trial for trial in experiment.trials if trial.outcome is Outcome.PASS and trial.purpose not in NO_TEST
    ]


def mitigation_sentences(experiment: Experiment) -> list[str]:
    """What may be done for the time being, with what that does and does not say. Empty if nothing passed."""
    commands = experiment.commands
    if commands is None or not commands.passing:
        return []
    asked_for = {factor.name for factor in experiment.factors if factor.scope == "request"}
    if {member.name for member in commands.differing} & asked_for:
        return []  # what users ask is no setting of the launch
    change = listing(
        f"{setting(member.name, member.safe)} instead of {member.suspect or 'unset'}"
        for member in commands.differing
    )
    with_change = f"with {change}" if change else "in that form"
    sentences = [f"For the time being, the launch can be run {with_change}."]
    trial = experiment.trial(commands.passing_trial)
    if trial is not None:
        same = [other for other in passing(experiment) if other.configuration == trial.configuration]
        total = sum(other.exposure.requests for other in same)
        sentences.append(f"It passed {plural(len(same), 'trial')} with {plural(total, 'request')}.")
        sentences += exclusion_sentences(same)
        sentences += _chance_sentence(experiment.baseline, len(same))
    contrast = (
        f"Passing {with_change} is a contrast and no fix: it may hide the failure instead of removing it"
    )
    price = speed_sentence(experiment)
    if price:
        return [*sentences, price, f"{contrast}."]
    return [*sentences, f"{contrast}, and what it costs in speed or capacity was not measured here."]


def _chance_sentence(baseline: Count, passes: int) -> list[str]:
    """How likely the passes are to be luck, where the failure shows only sometimes."""
    if not 0 < baseline.failed < baseline.trials:
        return []
    luck = (1 - baseline.failed / baseline.trials) ** passes
    seen = f"{baseline.failed} of {baseline.trials}"
    return [
        f"The failure shows only sometimes: at the rate of the baseline ({seen}) so many passes come by "
        f"chance with probability {percent(luck)}."
    ]
