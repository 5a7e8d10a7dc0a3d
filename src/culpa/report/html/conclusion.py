"""What was found and how sure that is: claims, commands, rates, what is open, factors, environment."""

from difflib import SequenceMatcher
from typing import Any

from culpa.model import Experiment, ExperimentOutcome, Trial, all_suspect
from culpa.model.redact import REDACTED
from culpa.report import clean, words
from culpa.report.asked_arms import ASKED_HEADINGS, asked_arms, asked_cells
from culpa.report.html.inside import inside
from culpa.report.html.labels import Labels
from culpa.report.html.matrix import rows
from culpa.report.html.mitigations import mitigations
from culpa.report.html.rates import rates
from culpa.report.html.surroundings import surroundings
from culpa.report.markdown import isolate_command
from culpa.report.smallest import reproduced
from culpa.report.source import ReportSource

Words = list[tuple[bool, str]]

_MOST_RATES = 14
_NAMED = frozenset({"baseline", "all_safe", "arm", "sufficient", "necessary", "workaround", "reference"})


def conclusion(source: ReportSource, labels: Labels) -> dict[str, Any]:
    """Everything behind the pictures but the trials themselves."""
    experiment = source.experiment
    failure_seen = experiment.conclusion.outcome is not ExperimentOutcome.NO_FAILURE
    return {
        "commands": _commands(experiment, labels),
        "smallest": _smallest(source),
        "findings": _findings(experiment, labels),
        "remarks": _remarks(experiment, labels),
        "mitigation": [labels.say(one) for one in words.mitigation_sentences(experiment)],
        "inside": inside(experiment, labels),
        "measured": mitigations(source.mitigation, labels),
        "asked_arms": _asked(experiment, labels),
        "rates": _rates(experiment, labels),
        "not_excluded": [labels.say(one) for one in experiment.conclusion.not_excluded],
        "factors": _factors(experiment, labels) if failure_seen else [],
        "left_out": [(left.name, labels.say(left.reason)) for left in experiment.left_out],
        "others": [
            {
                "signature": failure.signature.describe(),
                "levels": words.listing(words.setting(name, level) for name, level in failure.levels)
                if failure.levels
                else "",
                "trials": failure.trials,
                "note": labels.say(failure.note),
            }
            for failure in experiment.other_failures
        ],
        **surroundings(source, labels),
        "redactions": [
            (found.words, f"{found.count:,}", f"{found.different:,}") for found in source.redactions
        ],
        "prompts_included": source.prompts_included,
        "reproduce": plain_words(isolate_command(experiment)),
    }


def plain_words(command: str) -> Words:
    """A command of which nothing stands out."""
    return [(False, command)]


def marked(command: str, other: str) -> Words:
    """The words of a command with those marked that the other one does not have in their place."""
    mine, theirs = command.split(" "), other.split(" ")
    found: Words = []
    for kind, first, last, _, _ in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if first < last:
            found.append((kind != "equal", " ".join(mine[first:last])))
    return found


def _smallest(source: ReportSource) -> dict[str, Any] | None:
    """What a minimization left of the failing case, with its files."""
    found = reproduced(source.minimization)
    if found is None:
        return None
    return {
        "command": plain_words(found.command),
        "request": found.request,
        "facts": found.facts,
        "files": found.files,
    }


def _commands(experiment: Experiment, labels: Labels) -> dict[str, Any] | None:
    commands = experiment.commands
    if commands is None or not commands.failing:
        return None
    # Long ones differ where they differ: telling words apart costs their product.
    both = bool(commands.passing) and len(commands.failing) + len(commands.passing) < 20_000
    failing, passing = plain_words(commands.failing), plain_words(commands.passing)
    if both:
        failing = marked(commands.failing, commands.passing)
        passing = marked(commands.passing, commands.failing)
    return {
        "failing": failing,
        "passing": passing if commands.passing else None,
        "failing_trial": _named(experiment.trial(commands.failing_trial), labels),
        "passing_trial": _named(experiment.trial(commands.passing_trial), labels),
        "failing_request": commands.failing_request,
        "passing_request": commands.passing_request,
        "differing": [
            (member.name, member.suspect or labels("unset"), member.safe or labels("unset"))
            for member in commands.differing
        ],
        "redacted": REDACTED in commands.failing + commands.passing,
    }


def _named(trial: Trial | None, labels: Labels) -> str:
    return f"{labels('trial')} {trial.id} · {trial.arm or trial.purpose}" if trial is not None else ""


def _findings(experiment: Experiment, labels: Labels) -> list[dict[str, Any]]:
    found = experiment.conclusion.findings
    return [
        {
            "claim": labels.claim(finding, alone=len(found) == 1),
            "support": labels.support(finding),
            "level": finding.level.value,
            "meaning": labels.meaning(finding.level),
        }
        for finding in found
    ]


def _remarks(experiment: Experiment, labels: Labels) -> list[str]:
    outcome = experiment.conclusion.outcome
    sentences = [] if experiment.conclusion.findings else [labels.headline(experiment)]
    sentences.append(words.baseline_sentence(experiment))
    if outcome is ExperimentOutcome.NO_FAILURE:
        sentences += [experiment.no_failure] if experiment.no_failure else []
        sentences += [*words.exclusion_sentences(words.passing(experiment)), *words.NOT_SHOWN]
    sentences += [f"A limit ended the search: {limit}" for limit in experiment.limits_reached]
    if experiment.interrupted:
        sentences.append("The run was interrupted. This is what was known by then.")
    return [labels.say(one) for one in (*sentences, *experiment.notes)]


def _asked(experiment: Experiment, labels: Labels) -> dict[str, Any] | None:
    asked = asked_arms(experiment)
    if asked is None:
        return None
    headings = [labels(f"asked_{heading.replace(' ', '_').replace('/', '_')}") for heading in ASKED_HEADINGS]
    return {
        "header": (labels("arm"), *asked.columns, *headings),
        "rows": [
            (
                row.name,
                *(level or labels("unset") for level in row.levels),
                *asked_cells(row),
            )
            for row in asked.rows
        ],
    }


def _rates(experiment: Experiment, labels: Labels) -> dict[str, Any] | None:
    """What was run often or by wish first; the single steps of a long search apart."""
    table, found = rates(experiment)
    if not found:
        return None
    main: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for rate in found:
        named = any(trial.purpose in _NAMED for trial in rate.trials) or len(rate.trials) > 1
        shown = main if named or len(found) <= _MOST_RATES else rest
        levels = [
            words.setting(name, clean.value(name, level))
            for name, level in zip(table.columns, rate.row.levels, strict=True)
        ]
        shown.append(
            {
                "arm": rate.row.arm,
                "levels": ", ".join([*levels, rate.row.others if table.without_column else ""]).rstrip(", "),
                "outcomes": f"{rate.count.failed} / {rate.count.trials}"
                if rate.count.trials
                else rate.row.outcomes,
                "picture": rate.picture,
                "interval": rate.interval,
                "requests": f"{rate.row.requests:,}",
                "tokens": f"{rate.row.tokens:,}",
                "time": words.duration(rate.row.seconds),
                "trials": rate.row.trials,
            }
        )
    return {"main": main, "rest": rest} if main else {"main": rest, "rest": []}


def _factors(experiment: Experiment, labels: Labels) -> list[dict[str, Any]]:
    reasons = {status.name: status.reason for status in experiment.conclusion.statuses}
    return [
        {
            "name": row.factor.name,
            "suspect": clean.value(row.factor.name, row.factor.suspect) or labels("unset"),
            "safe": clean.value(row.factor.name, row.factor.safe[0]) or labels("unset"),
            "status": labels(f"status_{row.status}"),
            "needed": row.needed,
            "reason": labels.say(reasons.get(row.factor.name, words.NOT_JUDGED)),
        }
        for row in rows(experiment)
    ]


def changed_levels(experiment: Experiment, trial: Trial) -> str:
    """The levels of a trial that are not those of the launch."""
    launched = all_suspect(experiment.factors)
    full = launched.with_levels(trial.configuration.as_dict())
    return ", ".join(
        words.setting(name, clean.value(name, full.get(name)))
        for name in full.differing(launched)
        if name in launched
    )
