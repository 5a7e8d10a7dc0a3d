"""An advisory: what to do about a failure that was isolated, in the sections of a troubleshooting article."""

from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from culpa.model import ExperimentOutcome, Level, Outcome
from culpa.model.guard import Located
from culpa.report import clean, guard_words, words
from culpa.report.advisory_facts import (
    Workaround,
    capacities,
    control_arms,
    environment,
    failed_arms,
    is_gpu_failure,
    longest_prompt,
    of_status,
    workaround,
)
from culpa.report.advisory_language import LANGUAGES, Language
from culpa.report.asked_arms import asked_arms
from culpa.report.excerpts import around
from culpa.report.markup import Markdown, cell, code, fence, finalize, link, table, tidy
from culpa.report.measured import measured, measured_table
from culpa.report.source import ReportSource

EXAMPLE_ENGINE = "culpa-lab"  # the reference engine: its faults are switched on
_EVENT_WIDTH = 300
_LINE_WIDTH = 400
_LOG_LINES = 24
_TRACE_LINES = 16
_MOST = 12
_MOST_CANDIDATES = 4
_HEADINGS = {
    "en": ("arm", "short questions", "long prompts", "outcome", "tokens/s", "KV tokens", "trials"),
    "zh": ("对照组", "短提示词", "长 prompt", "结果", "tokens/s", "KV 容量（tokens）", "试验"),
}
# The largest rate of failure that so many passes of a verification leave open, at 95%, should be told before it runs.
_VERIFY_REQUESTS = 60


def advisory(source: ReportSource, language: str = "en") -> str:
    """The advisory as Markdown, in "en" or "zh". Every claim is as strong as its finding, and no stronger."""
    rendered = (
        _templates().get_template(f"advisory.{language}.md.j2").render(_context(source, LANGUAGES[language]))
    )
    return tidy(rendered)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("culpa.report", "templates"),
        autoescape=False,  # that would escape for HTML; `finalize` escapes for Markdown
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["sentence"] = words.sentence
    templates.filters["code"] = code
    templates.filters["link"] = link
    templates.filters["setting"] = lambda pair: code(words.setting(pair[0], clean.value(pair[0], pair[1])))
    return templates


def _context(source: ReportSource, language: Language) -> dict[str, Any]:
    from culpa.search.exposure import excluded_rate

    experiment = source.experiment
    conclusion = experiment.conclusion
    findings = conclusion.findings
    commands = experiment.commands
    compared = measured(source)
    offered = workaround(experiment, compared)
    failing = [set(step.changes) for step in failed_arms(experiment)]
    root = experiment.root
    return {
        "t": language,
        "experiment": experiment,
        "outcome": conclusion.outcome.value,
        "seen": conclusion.outcome is not ExperimentOutcome.NO_FAILURE,
        "engine": words.engine(experiment),
        "title": _title(source, language),
        "findings": [
            {
                "claim": language.claim(finding, len(findings) == 1),
                "support": language.support(finding),
                "level": language.level(finding.level),
                "meaning": language.level_meaning(finding.level),
                "members": finding.members,
            }
            for finding in findings
        ],
        "isolated": all(finding.level in (Level.ISOLATED, Level.LOCATED) for finding in findings),
        "open_rates": _open_rates(source, language),
        "hunted": experiment.hunted,
        "root": root,
        "environment": environment(source),
        "offered": _offered(offered),
        "compared": measured_table(compared, language.name) if compared and compared.options else "",
        "workload": compared.workload if compared else "",
        "refused": [
            (_levels(tuple((name, level) for name, _, level in one.changes), language), one)
            for one in (compared.not_offered if compared else ())[:_MOST]
            # Shifts and arms that fail are named as such already.
            if one.kind == "not_measured"
            or (one.kind == "failed" and {(name, level) for name, _, level in one.changes} not in failing)
        ],
        "located": [
            _located(finding.located, language) for finding in findings if finding.located is not None
        ],
        "unlocated": [guard_words.unlocated(one) for one in guard_words.silent(experiment)],
        "changes": _changes(offered, language) if offered else "",
        "failed_arms": [(_levels(step.changes, language), step) for step in failed_arms(experiment)],
        "control_arms": [(_levels(step.changes, language), step) for step in control_arms(experiment)],
        "masking": of_status(experiment, "masking"),
        "out": of_status(experiment, "out")[:_MOST],
        "in_": of_status(experiment, "in"),
        "untested": of_status(experiment, "untested")[:_MOST],
        "others": [
            (language.symptom(failure.signature), _levels(failure.levels, language), failure)
            for failure in experiment.other_failures[:_MOST]
        ],
        "launch": fence(experiment.launch.command_line(), "sh"),
        "failing": fence(commands.failing, "sh") if commands and commands.failing else "",
        "failing_request": commands.failing_request if commands else "",
        "baseline": language.times(experiment.baseline),
        "baseline_rate": _rate(source, language),
        "arms": _arms(source, language),
        "event": code(experiment.hunted.event, _EVENT_WIDTH)
        if experiment.hunted and experiment.hunted.event
        else "",
        "trace": _trace(source),
        "xids": [language.xid(xid) for xid in root.xids] if root else [],
        "gpu": language.gpu(replace(root.gpu, why="")) if root and root.gpu else "",
        "issues": root.known_issues[:_MOST] if root else (),
        "layout": [one for one in experiment.layout if one.level != "note"][:_MOST],
        "capacities": capacities(experiment),
        "gpu_failure": is_gpu_failure(experiment),
        "longest": longest_prompt(experiment.trials),
        "not_excluded": conclusion.not_excluded,
        "verify_requests": _VERIFY_REQUESTS,
        "verify_rate": language.percent(excluded_rate(_VERIFY_REQUESTS)),
        "passes": words.passing(experiment),
        "fails": sum(trial.outcome is Outcome.FAIL for trial in experiment.trials),
        "redactions": [(language.redacted(one.kind, one.words), one) for one in source.redactions],
        "requested": {factor.name for factor in experiment.factors if factor.scope == "request"},
        "is_example": experiment.engine == EXAMPLE_ENGINE,
        "kernel_log": dict(experiment.environment).get("kernel_log", ""),
    }


def _title(source: ReportSource, language: Language) -> Markdown | str:
    hunted = source.experiment.hunted
    if hunted is None:
        return words.engine(source.experiment)
    return code(hunted.event, _EVENT_WIDTH) if hunted.event else language.symptom(hunted)


def _rate(source: ReportSource, language: Language) -> tuple[str, str] | None:
    """The interval of rates that agrees with a launch that failed only sometimes."""
    from culpa.search.exposure import rate_interval

    count = source.experiment.baseline
    if not 0 < count.failed < count.trials:
        return None
    low, high = rate_interval(count)
    return language.percent(low), language.percent(high)


def _open_rates(source: ReportSource, language: Language) -> tuple[str, str] | None:
    """The highest rates of failure that passes leave open, by launch and by request, where nothing failed."""
    from culpa.search.exposure import excluded_rate

    passes = words.passing(source.experiment)
    requests = sum(trial.exposure.requests for trial in passes)
    if not passes or not requests:
        return None
    return language.percent(excluded_rate(len(passes))), language.percent(excluded_rate(requests))


def _located(place: Located, language: Language) -> dict[str, Any]:
    """Where a finding begins, as a check inside the engine saw it."""
    violation = place.violation
    return {
        "trial": place.trial,
        "kind": code(violation.kind),
        "where": guard_words.where(violation),
        "what": guard_words.what(violation),
        "meaning": place.explanation.meaning,
        "candidates": [
            (heading, [(link(one.source), one.text) for one in found[:_MOST_CANDIDATES]])
            for heading, found in guard_words.hypotheses(place.explanation)
        ],
    }


def _offered(offered: Workaround | None) -> dict[str, Any] | None:
    if offered is None:
        return None
    return {"command": fence(offered.command, "sh"), "facts": offered}


def _changes(offered: Workaround, language: Language) -> Markdown:
    joint = " instead of " if language.name == "en" else " 代替 "
    parts = [
        f"{code(words.setting(one.name, one.safe))}{joint}{code(words.setting(one.name, one.suspect))}"
        for one in offered.changes
    ]
    return Markdown(language.listing(parts))


def _levels(levels: tuple[tuple[str, str], ...], language: Language) -> Markdown:
    return Markdown(
        language.listing(code(words.setting(name, clean.value(name, level))) for name, level in levels)
    )


def _arms(source: ReportSource, language: Language) -> Markdown | str:
    asked = asked_arms(source.experiment)
    if asked is None:
        return ""
    name, *rest = _HEADINGS[language.name]
    rows = [
        [
            row.name,
            *(
                cell(clean.value(column, level), 60)
                for column, level in zip(asked.columns, row.levels, strict=True)
            ),
            language.sentence(row.questions),
            language.sentence(row.long_prompts),
            language.outcome(row.outcome),
            row.speed,
            row.cache_tokens,
            ", ".join(str(number) for number in row.trials),
        ]
        for row in asked.rows
    ]
    return table([name, *asked.columns, *rest], rows, (rest[3], rest[4]))


def _trace(source: ReportSource) -> Markdown | str:
    """The lines around the root event, of the engine's log if it is there: that is where users see it."""
    root = source.experiment.root
    if root is None:
        return ""
    told = source.trial(root.trial)
    logs = [log for log in told.logs if any(line.role for line in log.lines)] if told else []
    lines = [f"{line.text[:_LINE_WIDTH]}" for log in logs for line in around(log.lines, _TRACE_LINES)]
    if not lines:
        lines = [text[:_LINE_WIDTH] for _, text in root.excerpt[:_LOG_LINES]] or [
            root.event.text[:_LINE_WIDTH]
        ]
    return fence("\n".join(lines), "text")
