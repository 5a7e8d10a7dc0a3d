"""The summary at the end of a run, for a terminal: short, safe in any width, commands ready to be copied."""

import shlex
from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model import Experiment, ExperimentOutcome, RootEvidence
from culpa.model.redact import REDACTED
from culpa.report import clean, guard_words, incident_words, words
from culpa.report.asked_arms import AskedArm, AskedArms, asked_arms, asked_cells
from culpa.report.console import print_trimmed
from culpa.report.speed import speed_sentence
from culpa.store import PAGE, REPORT

_STYLES = {
    ExperimentOutcome.NO_FAILURE: "bold green",
    ExperimentOutcome.ISOLATED: "bold red",
    ExperimentOutcome.INCONCLUSIVE: "bold yellow",
    ExperimentOutcome.ALL_SAFE_FAILS: "bold yellow",
}
_EVENT_WIDTH = 300
_MOST_NOT_EXCLUDED = 5
_MOST_XIDS = 3


def print_summary(experiment: Experiment, console: Console, folder: str = "") -> None:
    """Print what was found. `folder` is where the run and its reports lie, as the user can open it.

    Commands are not wrapped: the terminal folds them, and what is copied is one line.
    """
    console.print()
    print_trimmed(
        console, Text(clean.line(words.headline(experiment)), style=_STYLES[experiment.conclusion.outcome])
    )
    for sentence in _details(experiment):
        print_trimmed(console, Padding(Text(clean.line(sentence)), (0, 0, 0, 2)))
    facts = _facts(experiment)
    if facts.row_count:
        console.print()
        print_trimmed(console, facts)
    _print_guard(experiment, console)
    _print_asked_arms(experiment, console)
    _print_commands(experiment, console)
    if experiment.commands and REDACTED in clean.block(experiment.commands.failing):
        console.print(Text(f"{REDACTED} stands for a secret: put your own there", style="dim"))
    _print_list(console, "not excluded", experiment.conclusion.not_excluded, _MOST_NOT_EXCLUDED)
    if folder:
        _print_reports(console, folder)


def _print_reports(console: Console, folder: str) -> None:
    """Where the reports lie, and how the run becomes something to publish."""
    command = f"culpa report {shlex.quote(folder)} --format issue"
    lines = (
        ("report", f"{folder}/{PAGE}"),
        ("", f"{folder}/{REPORT}"),
        ("publish", f"{command} (or advisory)"),
    )
    console.print()
    for label, text in lines:
        console.print(Text.assemble((f"{label:7}  ", "bold"), clean.line(text)), soft_wrap=True)


def _details(experiment: Experiment) -> list[str]:
    outcome = experiment.conclusion.outcome
    findings = experiment.conclusion.findings
    sentences: list[str] = []
    for number, finding in enumerate(findings):
        if number:
            sentences.append(words.claim(finding, alone=False))
        sentences += words.support(finding)
    if outcome is ExperimentOutcome.NO_FAILURE:
        sentences += [experiment.no_failure] if experiment.no_failure else []
        sentences += [*words.exclusion_sentences(words.passing(experiment)), *words.NOT_SHOWN]
    elif outcome is ExperimentOutcome.ALL_SAFE_FAILS:
        sentences.append("None of the varied factors is needed for it; what it needs lies elsewhere.")
    if outcome is not ExperimentOutcome.NO_FAILURE:
        sentences.append(words.baseline_sentence(experiment))
    if experiment.interrupted:
        sentences.append("The run was interrupted; culpa isolate --resume goes on from here.")
    sentences += [f"A limit ended the search: {limit}" for limit in experiment.limits_reached]
    return [*sentences, *experiment.notes]


def _facts(experiment: Experiment) -> Table:
    """What failed first, the root event and where to read it, and other failures."""
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    hunted, root = experiment.hunted, experiment.root
    if hunted is not None:
        table.add_row("symptom", Text(clean.line(hunted.symptom)))
        if hunted.process or hunted.rank:
            table.add_row("first to fail", Text(clean.line(words.place(hunted))))
    if root is not None:
        event = root.event.text
        if hunted is not None and hunted.event and hunted.event.startswith(event):
            event = hunted.event  # an exception without a message: the event says where it was raised
        table.add_row("root event", Text(clean.line(event, _EVENT_WIDTH), style="red"))
        where = f"line {root.event.line:,}, trial {root.trial}" if root.event.line else f"trial {root.trial}"
        table.add_row("", Text(clean.line(f"{where}, {root.log}" if root.log else where), style="dim"))
        if root.async_stack:
            table.add_row("", Text("asynchronous: the stack shows where it was noticed, not what caused it"))
        _add_surroundings(table, root)
    elif hunted is not None and hunted.event:
        table.add_row("event", Text(clean.line(hunted.event, _EVENT_WIDTH), style="red"))
    for failure in experiment.other_failures:
        levels = ", ".join(f"{name}={level}" for name, level in failure.levels)
        shown = failure.signature.describe() + (f", seen with {levels}" if levels else "")
        table.add_row("another failure", Text(clean.line(shown, _EVENT_WIDTH)))
        if failure.note:
            table.add_row("", Text(clean.line(failure.note, _EVENT_WIDTH), style="dim"))
    for status in experiment.conclusion.statuses:
        if status.status == "masking":
            reason = status.reason or "with it the failure does not show"
            table.add_row("masked by", Text(clean.line(f"{status.name}: {reason}")))
    return table


def _add_surroundings(table: Table, root: RootEvidence) -> None:
    """GPU and kernel messages of the root event, and public reports of the same."""
    if root.gpu is not None:
        table.add_row("GPU", Text(clean.line(incident_words.gpu(root.gpu))))
    for told, _ in incident_words.xids(root.xids)[:_MOST_XIDS]:
        table.add_row("Xid", Text(clean.line(told, _EVENT_WIDTH)))
    for issue in root.known_issues:
        if issue.match:
            table.add_row("known issue", Text(clean.line(f"{issue.url} {issue.title}", _EVENT_WIDTH)))


def _print_guard(experiment: Experiment, console: Console) -> None:
    """Where it begins, as the guard saw it; or what was checked in vain."""
    for finding in experiment.conclusion.findings:
        place = finding.located
        if place is None:
            continue
        table = Table.grid(padding=(0, 2), pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        violation, meaning = place.violation, place.explanation
        table.add_row(
            "located", Text(clean.line(f"{violation.kind}: {guard_words.where(violation)}"), style="red")
        )
        table.add_row("", Text(clean.line(guard_words.what(violation), _EVENT_WIDTH)))
        table.add_row("", Text(clean.line(meaning.meaning)))
        for heading, told in guard_words.brief(meaning):
            table.add_row("", Text(clean.line(f"{heading} {'; '.join(told)}"), style="dim"))
        console.print()
        print_trimmed(console, table)
    for watched in guard_words.silent(experiment):
        console.print()
        for sentence in guard_words.unlocated(watched):
            print_trimmed(console, Text(clean.line(sentence), style="dim"))


def _print_asked_arms(experiment: Experiment, console: Console) -> None:
    """The arms that the user asked for beside the launch as it is, where there are any."""
    asked = asked_arms(experiment)
    if asked is None:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("arm", "short questions", "long prompts", "outcome"):
        table.add_column(heading, overflow="fold")
    for heading in ("tokens/s", "KV tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in asked.rows:
        cells = asked_cells(row)[:-1]  # the trials are told in the report
        table.add_row(Text(clean.line(row.name)), *(Text(clean.line(one)) for one in cells))
    console.print()
    print_trimmed(console, table)
    for row in asked.rows[1:]:
        told = words.listing(_changed(asked, row)) or "the launch as it is"
        if told != row.name:
            print_trimmed(console, Text(clean.line(f"{row.name}: {told}"), style="dim"))


def _changed(asked: AskedArms, row: AskedArm) -> list[str]:
    """The levels of an arm that are not those of the launch."""
    return [
        words.setting(name, level)
        for name, level, before in zip(asked.columns, row.levels, asked.rows[0].levels, strict=True)
        if level != before
    ]


def _print_commands(experiment: Experiment, console: Console) -> None:
    commands = experiment.commands
    if commands is None or not commands.failing:
        return
    _print_command(console, "fails", commands.failing, commands.failing_request)
    if not commands.passing:
        return
    change = words.listing(words.setting(member.name, member.safe) for member in commands.differing)
    label = f"passes with {change} (a contrast, no fix)" if change else "passes (a contrast, no fix)"
    _print_command(console, label, commands.passing, commands.passing_request)
    price = speed_sentence(experiment)
    if price:
        console.print(Text(clean.line(price), style="dim"))


def _print_command(console: Console, label: str, command: str, request: str) -> None:
    console.print()
    console.print(Text(clean.line(label), style="bold"))
    console.print(Text(clean.block(command)), soft_wrap=True)
    if request:
        console.print(Text(clean.line(f"asked: {request}"), style="dim"))


def _print_list(console: Console, label: str, sentences: Iterable[str], most: int) -> None:
    shown = list(sentences)
    if not shown:
        return
    console.print()
    console.print(Text(label, style="bold"))
    for sentence in shown[:most]:
        print_trimmed(console, Padding(Text(clean.line(sentence)), (0, 0, 0, 2)))
    if len(shown) > most:
        print_trimmed(console, Padding(Text(f"and {len(shown) - most} more, in the report"), (0, 0, 0, 2)))
