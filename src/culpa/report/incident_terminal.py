"""The summary of an incident for a terminal: what broke, where, first or follow-up, how sure, what next."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model import Diagnosis, Incident, Reading, XidSeen
from culpa.report import clean
from culpa.report import incident_words as words
from culpa.report.console import print_trimmed
from culpa.report.words import plural

_TEXT_WIDTH = 400
_MOST_XIDS = 8
_MOST_ISSUES = 6


def print_incident(reading: Reading, console: Console) -> None:
    """Print what the logs tell. Commands are not wrapped, so that they can be copied."""
    names = ", ".join(file.name for file in reading.files[:4])
    more = f" and {len(reading.files) - 4} more" if len(reading.files) > 4 else ""
    read = f"{plural(reading.lines, 'line')} of {names}{more}"
    incident = reading.incident
    if incident is None:
        print_trimmed(console, Text(clean.line(f"No failure is to be seen in {read}."), style="bold green"))
        _print_xids(reading, reading.xids, console)
        _print_steps(console, "next", reading.next_steps)
        return
    print_trimmed(console, Text(clean.line(_headline(incident)), style="bold red"))
    print_trimmed(console, Text(clean.line(f"in {read}"), style="dim"))
    console.print()
    diagnosis = incident.diagnosis or Diagnosis()
    print_trimmed(console, _facts(reading, incident, diagnosis))
    _print_xids(reading, diagnosis.xids, console)
    _print_issues(diagnosis, console)
    _print_steps(console, "missing: what this log does not hold", incident.missing_evidence)
    _print_steps(console, "next", reading.next_steps)


def _headline(incident: Incident) -> str:
    broke = words.what_broke(incident)
    who = incident.rank or (incident.root.process if incident.root else None) or incident.process
    place = f", first in {who}" if who else ""
    return f"{broke[:1].upper()}{broke[1:]}{place}"


def _facts(reading: Reading, incident: Incident, diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    root = incident.root
    if root is not None:
        name, line = reading.locate(root.line)
        table.add_row("root event", Text(clean.line(root.text, _TEXT_WIDTH), style="red"))
        where = [f"{name}, line {line:,}", root.time, root.process]
        table.add_row("", Text(clean.line(", ".join(part for part in where if part)), style="dim"))
        if incident.root_alternates:
            same = "; ".join(words.located(reading, incident.root_alternates))
            table.add_row("", Text(clean.line(f"the same event: {same}"), style="dim"))
    elif incident.event:
        table.add_row("event", Text(clean.line(incident.event, _TEXT_WIDTH), style="red"))
    table.add_row("order", Text(clean.line(_order(reading, incident, diagnosis))))
    if diagnosis.gpu is not None:
        table.add_row("GPU", Text(clean.line(words.gpu(diagnosis.gpu))))
    verdict = diagnosis.verdict
    table.add_row(
        "fault", Text(clean.line(f"{verdict.blame}: {verdict.why}" if verdict.why else verdict.blame))
    )
    if incident.async_stack:
        table.add_row("stack", Text("asynchronous: it shows where the error was noticed, not what caused it"))
    why = "; ".join(diagnosis.confidence_why)
    table.add_row(
        "confidence", Text(clean.line(f"{diagnosis.confidence}: {why}" if why else diagnosis.confidence))
    )
    told = [
        words.engine(diagnosis.engine, diagnosis.engine_version),
        words.configuration(diagnosis.configuration),
    ]
    if any(told):
        table.add_row("engine", Text(clean.line(", ".join(part for part in told if part), _TEXT_WIDTH)))
    if diagnosis.load:
        table.add_row("load", Text(clean.line(words.load(diagnosis.load))))
    return table


def _order(reading: Reading, incident: Incident, diagnosis: Diagnosis) -> str:
    if diagnosis.confidence == "low" and incident.missing_evidence:
        first = "only consequences are in this log; this is the one nearest to the cause"
    else:
        first = "the first event of the failure"
    if not incident.cascade_lines:
        return first
    count = plural(len(incident.cascade_lines), "line")
    verb = "reports" if len(incident.cascade_lines) == 1 else "report"
    return f"{first}; {count} only {verb} what follows ({'; '.join(words.located(reading, incident.cascade_lines))})"


def _print_xids(reading: Reading, xids: Sequence[XidSeen], console: Console) -> None:
    if not xids:
        return
    console.print()
    console.print(Text("kernel messages (Xid)", style="bold"))
    groups = words.xids(xids)
    for told, members in groups[:_MOST_XIDS]:
        where = "; ".join(words.located(reading, [xid.line for xid in members]))
        stale = members[0].stale
        text = f"{told} ({where})" + (f": {members[0].why}" if stale else "")
        print_trimmed(console, Padding(Text(clean.line(text), style="dim" if stale else ""), (0, 0, 0, 2)))
    if len(groups) > _MOST_XIDS:
        print_trimmed(console, Padding(Text(f"and {len(groups) - _MOST_XIDS} more kinds"), (0, 0, 0, 2)))


def _print_issues(diagnosis: Diagnosis, console: Console) -> None:
    if not diagnosis.known_issues:
        return
    console.print()
    console.print(Text("known issues", style="bold"))
    for issue in diagnosis.known_issues[:_MOST_ISSUES]:
        label = "match" if issue.match else "near"
        console.print(Text.assemble(f"  {label:5} ", clean.line(issue.url)), soft_wrap=True)
        status = f" ({issue.status})" if issue.status not in ("", "unknown") else ""
        lines = [f"{issue.title}{status}"]
        lines.append(issue.why if issue.match else f"differs: {'; '.join(issue.differs)}")
        if issue.match and issue.shown:
            lines.append(f"shown there: {issue.shown}")
        for line in lines:
            print_trimmed(console, Padding(Text(clean.line(line), style="dim"), (0, 0, 0, 8)))


def _print_steps(console: Console, label: str, sentences: tuple[str, ...]) -> None:
    if not sentences:
        return
    console.print()
    console.print(Text(label, style="bold"))
    for sentence in sentences:
        console.print(Text(f"  - {clean.line(sentence)}"), soft_wrap=True)
