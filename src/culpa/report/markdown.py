"""`report.md`: the experiment as a maintainer would want to read it, safe to paste into an issue."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from culpa.model import Experiment, ExperimentOutcome, Finding, Member, OtherFailure, Outcome, Trial
from culpa.model.guard import Located
from culpa.model.redact import REDACTED
from culpa.redaction import Redacted
from culpa.report import clean, guard_words, incident_words, words
from culpa.report.arms import arm_table
from culpa.report.asked_arms import ASKED_HEADINGS, asked_arms, asked_cells
from culpa.report.markup import Markdown, cell, code, fence, finalize, link, table, text

_STATUS = {"in": "needed", "out": "not needed", "masking": "masks it", "untested": "not tested"}
_LEVEL_WIDTH = 60
_EVENT_WIDTH = 200
_LOG_WIDTH = 400
_MOST_LEFT_OUT = 6  # a longer list is folded


def markdown_report(
    experiment: Experiment, redactions: Sequence[Redacted] = (), compared: Markdown | str = ""
) -> str:
    """The whole report. Everything that came from a log, a launch or an engine is redacted and escaped; `redactions`
    say what was taken out before, `compared` is the table of what keeps the failure away, where that was measured."""
    context = {**_context(experiment), "redactions": redactions, "compared": compared}
    rendered = _templates().get_template("report.md.j2").render(context)
    return rendered.rstrip("\n") + "\n"


@cache
def _templates() -> Environment:
    """Templates in which every value is escaped unless it is Markdown already."""
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
    return templates


def _context(experiment: Experiment) -> dict[str, Any]:
    commands = experiment.commands
    failing = _failing_trial(experiment)
    passing = experiment.trial(commands.passing_trial) if commands else None
    outcome = experiment.conclusion.outcome
    findings = experiment.conclusion.findings
    launch = fence(experiment.launch.command_line(), "sh")
    failing_command = fence(commands.failing, "sh") if commands and commands.failing else ""
    passing_command = fence(commands.passing, "sh") if commands and commands.passing else ""
    return {
        "experiment": experiment,
        "outcome": outcome.value,
        "title": _title(experiment),
        "head": _head(experiment),
        "headline": words.headline(experiment),
        "claims": [words.claim(finding, alone=len(findings) == 1) for finding in findings],
        "support": [words.support(finding) for finding in findings],
        "finding_tables": [_finding_table(finding) for finding in findings],
        "level_meanings": {finding.level.value: words.LEVEL_MEANING[finding.level] for finding in findings},
        "baseline": words.baseline_sentence(experiment),
        "launch": launch,
        "signature": _signature(experiment),
        "root": _root(experiment),
        "arms": _arms(experiment),
        "asked_arms": _asked_arms(experiment),
        "located": [_located(one.located) for one in findings if one.located is not None],
        "unlocated": [guard_words.unlocated(one) for one in guard_words.silent(experiment)],
        "first_matters": guard_words.FIRST_MATTERS,
        "blind": guard_words.BLIND,
        "exclusions": words.exclusion_sentences(words.passing(experiment)),
        "not_shown": words.NOT_SHOWN,
        "factors": _factors(experiment),
        "left_out": _left_out(experiment),
        "most_left_out": _MOST_LEFT_OUT,
        "others": [_other(failure) for failure in experiment.other_failures],
        "masking": [status for status in experiment.conclusion.statuses if status.status == "masking"],
        "failing_command": failing_command,
        "passing_command": passing_command,
        "failing_request": commands.failing_request if commands else "",
        "passing_request": commands.passing_request if commands else "",
        "differing": _differing(commands.differing) if commands else "",
        "failing_trial": failing,
        "passing_trial": passing,
        "mitigation": words.mitigation_sentences(experiment),
        "effective": _effective(failing, passing),
        "environment": _pairs(("fact", "value"), experiment.environment),
        "isolate": fence(isolate_command(experiment), "sh"),
        "folder": code(experiment.folder) if experiment.folder else "",
        "trial_folders": _folders(failing, passing),
        "redacted": any(REDACTED in block for block in (launch, failing_command, passing_command)),
        "failure_seen": outcome is not ExperimentOutcome.NO_FAILURE,
    }


def _title(experiment: Experiment) -> str:
    name = words.engine(experiment)
    if experiment.hunted is None:
        return f"{name}: no failure seen"
    where = f" in {words.place(experiment.hunted)}" if experiment.hunted.process else ""
    return f"{name}: {words.symptom(experiment.hunted)}{where}"


def _head(experiment: Experiment) -> Markdown:
    trials = words.plural(len(experiment.trials), "trial")
    took = f"{trials} in {words.duration(experiment.elapsed_seconds)}"
    parts = [
        text(f"culpa {experiment.culpa_version}"),
        f"run {code(experiment.run_id)}",
        text(f"started {experiment.started}"),
        text(took),
    ]
    return Markdown(" · ".join(parts))


def _failing_trial(experiment: Experiment) -> Trial | None:
    """The trial that stands for the failure: that of the failing command, else the first that failed."""
    named = experiment.trial(experiment.commands.failing_trial) if experiment.commands else None
    if named is not None:
        return named
    return next((trial for trial in experiment.trials if trial.outcome is Outcome.FAIL), None)


def _level(name: str, level: str) -> Markdown:
    return cell(clean.value(name, level), _LEVEL_WIDTH) or text("unset")


def _signature(experiment: Experiment) -> dict[str, Markdown]:
    hunted = experiment.hunted
    if hunted is None:
        return {}
    event = code(hunted.event, _EVENT_WIDTH) if hunted.event else text("none in the log")
    return {
        "Symptom": code(hunted.symptom),
        "First to fail": Markdown(f"**{text(words.place(hunted))}**"),
        "Event": event,
    }


def _root(experiment: Experiment) -> dict[str, Any] | None:
    root = experiment.root
    if root is None:
        return None
    lines = root.excerpt or ((root.event.line, root.event.text),)
    width = len(str(max(number for number, _ in lines)))
    excerpt = "\n".join(
        clean.line(line, _LOG_WIDTH)
        if not number  # an answer, no line of a log
        else f"{'>' if number == root.event.line else ' '} {number:>{width}}  {clean.line(line, _LOG_WIDTH)}"
        for number, line in lines
    )
    where = [f"Line {root.event.line:,}, trial {root.trial}" if root.event.line else f"Trial {root.trial}"]
    if root.event.time:
        where.append(f"at {root.event.time}")
    return {
        "where": ", ".join(where),
        "log": code(root.log) if root.log else "",
        "excerpt": fence(excerpt, "text"),
        "async_stack": root.async_stack,
        "cascade": root.cascade,
        "missing": root.missing,
        "gpu": incident_words.gpu(root.gpu) if root.gpu else "",
        "xids": [told for told, _ in incident_words.xids(root.xids)],
        "issues": [(link(issue.url), issue) for issue in root.known_issues if issue.match],
        "near": [(link(issue.url), issue) for issue in root.known_issues if not issue.match],
    }


def _arms(experiment: Experiment) -> Markdown:
    arms = arm_table(experiment)
    noun = "other factor" if arms.columns else "factor"
    rest = [words.plural(arms.without_column, noun)] if arms.without_column else []
    numeric = ("requests", "tokens", "minutes")
    header = ["arm", *arms.columns, *rest, "outcome", "what failed", *numeric, "excludes", "trials"]
    rows = [
        [
            text(row.arm),
            *(_level(name, level) for name, level in zip(arms.columns, row.levels, strict=True)),
            *([text(row.others)] if rest else []),
            Markdown(f"**{row.outcomes}**" if row.outcomes.startswith("fail") else text(row.outcomes)),
            Markdown("; ".join(cell(failed, _EVENT_WIDTH) for failed in row.failed)),
            f"{row.requests:,}",
            f"{row.tokens:,}",
            f"{row.seconds / 60:.1f}",
            row.excludes,
            ", ".join(str(number) for number in row.trials),
        ]
        for row in arms.rows
    ]
    return table(header, rows, numeric)


def _asked_arms(experiment: Experiment) -> Markdown | str:
    asked = asked_arms(experiment)
    if asked is None:
        return ""
    rows = [
        [
            text(row.name),
            *(_level(name, level) for name, level in zip(asked.columns, row.levels, strict=True)),
            *asked_cells(row),
        ]
        for row in asked.rows
    ]
    return table(["arm", *asked.columns, *ASKED_HEADINGS], rows, ("tokens/s", "KV tokens"))


def _finding_table(finding: Finding) -> Markdown:
    necessary = dict(finding.necessary)
    rows = [("these, all else safe", Markdown(""), Markdown(""), words.times(finding.sufficient))]
    rows += [
        (
            Markdown(f"{cell(member.name)} made safe"),
            _level(member.name, member.suspect),
            _level(member.name, member.safe),
            words.times(necessary[member.name]) if member.name in necessary else "was not tried",
        )
        for member in finding.members
    ]
    return table(("tried", "as launched", "safe", "result"), rows)


def _located(place: Located) -> dict[str, Any]:
    """Where a finding begins: rows of facts, the meaning, and candidates with links to where they were read."""
    violation, meaning = place.violation, place.explanation
    facts = (
        ("Kind", code(violation.kind)),
        ("Where", text(guard_words.where(violation))),
        ("What", text(guard_words.what(violation))),
        ("Seen in", text(f"trial {place.trial}")),
    )
    return {
        "facts": facts,
        "meaning": meaning.meaning,
        "candidates": [
            (heading, [(link(one.source, one.id), one.text) for one in found])
            for heading, found in guard_words.hypotheses(meaning)
        ],
    }


def _factors(experiment: Experiment) -> Markdown | str:
    order = {"in": 0, "masking": 1, "out": 2, "untested": 3}
    statuses = sorted(experiment.conclusion.statuses, key=lambda status: order[status.status])
    judged = {status.name for status in statuses}
    rows = [
        (
            cell(status.name),
            _level(status.name, status.suspect),
            _level(status.name, status.safe),
            _STATUS[status.status],
            status.reason,
        )
        for status in statuses
    ]
    rows += [
        (
            cell(factor.name),
            _level(factor.name, factor.suspect),
            _level(factor.name, factor.safe[0]),
            "not tested",
            words.NOT_JUDGED,
        )
        for factor in experiment.factors
        if factor.name not in judged
    ]
    return table(("factor", "as launched", "safe", "what it is", "why"), rows) if rows else ""


def _left_out(experiment: Experiment) -> list[Markdown]:
    return [Markdown(f"{code(left.name)}: {text(left.reason)}") for left in experiment.left_out]


def _other(failure: OtherFailure) -> Markdown:
    shown = code(failure.signature.describe(), _EVENT_WIDTH)
    levels = words.listing(words.setting(name, clean.value(name, level)) for name, level in failure.levels)
    under = f" with {text(levels)}" if failure.levels else ""
    trials = words.listing(str(number) for number in failure.trials)
    seen = f" (trial{'s' if len(failure.trials) > 1 else ''} {trials})" if failure.trials else ""
    note = f": {text(failure.note)}" if failure.note else ""
    return Markdown(f"{shown}{under}{seen}{note}")


def _differing(members: tuple[Member, ...]) -> Markdown | str:
    if not members:
        return ""
    rows = [
        (cell(member.name), _level(member.name, member.suspect), _level(member.name, member.safe))
        for member in members
    ]
    return table(("factor", "fails", "passes"), rows)


def _effective(failing: Trial | None, passing: Trial | None) -> dict[str, Markdown | str]:
    """What the engine said of itself in the two trials: first what differs, then what is the same."""
    left = dict(failing.effective) if failing else {}
    right = dict(passing.effective) if passing else {}
    names = sorted(left.keys() | right.keys())
    both = bool(left and right)
    silent = [trial.id for trial in (failing, passing) if trial and not trial.effective]
    differing = [name for name in names if both and left.get(name) != right.get(name)]
    rows = [(cell(name), *(_said(name, side) for side in (left, right))) for name in differing]
    same = [(name, left.get(name, right.get(name, ""))) for name in names if name not in differing]
    return {
        "silent": f"Trial {words.listing(map(str, silent))} ended before it said anything." if silent else "",
        "differing": table(("setting", "failing trial", "passing trial"), rows) if rows else "",
        "same": _pairs(("setting", "effective"), same),
    }


def _said(name: str, side: dict[str, str]) -> Markdown:
    return _level(name, side[name]) if name in side else text("not said")


def _pairs(header: tuple[str, str], pairs: Any) -> Markdown | str:
    rows = [(cell(name), cell(clean.value(name, item), _EVENT_WIDTH)) for name, item in pairs]
    return table(header, rows) if rows else ""


def isolate_command(experiment: Experiment) -> str:
    """The command that runs the experiment again."""
    options = [f"--{name} {value}".rstrip() for name, value in experiment.options]
    return " ".join(["culpa isolate", *options, "--", experiment.launch.command_line()])


def _folders(failing: Trial | None, passing: Trial | None) -> list[Markdown]:
    return [
        Markdown(f"{code(trial.folder)}: trial {trial.id}, {text(trial.arm)}, {trial.outcome.value}")
        for trial in (failing, passing)
        if trial and trial.folder
    ]
