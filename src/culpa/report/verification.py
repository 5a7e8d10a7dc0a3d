"""A verification for people and for machines: terminal, JSON, JUnit XML, the summary of a GitHub workflow."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model.verification import Counter, ProbeReport, Verification
from culpa.report import clean
from culpa.report.console import print_trimmed
from culpa.report.words import duration, listing, percent, plural, sentence
from culpa.search.exposure import excluded_rate

SCHEMA = "culpa.verification/1"
_WORDS = {
    "right": "right",
    "wrong": "FAILED",
    "unknown": "can't be told",
    "unsupported": "not supported",
    "not_asked": "not asked",
}
_STYLES = {
    "right": "green",
    "wrong": "bold red",
    "unknown": "yellow",
    "unsupported": "dim",
    "not_asked": "dim",
}


def verdict(found: Verification) -> str:
    """The result in one sentence."""
    if found.untestable:
        return f"Nothing can be said: {found.untestable}"
    failures = found.failures
    if failures:
        names = listing(dict.fromkeys(one.name for one in failures))
        return f"FAILED: {names} ({_what(failures[0])})"
    if found.xids:
        return (
            f"FAILED: every answer was right, but the kernel reported {plural(len(found.xids), 'GPU error')}"
        )
    if found.corrupted:
        return f"FAILED: the engine itself counts {plural(found.corrupted, 'request')} with NaN in the logits"
    if found.interrupted:
        return "Interrupted: no failure so far."
    if found.undecided:
        names = listing(found.undecided)
        return f"Not verified: whether the answers to {names} are right can't be told. Nothing else failed."
    if not found.passed:
        return "Nothing can be said: no answer could be judged."
    return "PASSED: no failure was seen."


def exclusions(found: Verification) -> list[str]:
    """What the exposure excludes, and what it does not."""
    exposure = found.exposure
    asked = (
        f"{plural(exposure.requests, 'request')}, {plural(exposure.tokens, 'token')}, "
        f"up to {exposure.concurrency} at once, {duration(exposure.seconds)}"
    )
    if found.failed:
        return [f"Asked: {asked}."]
    if not exposure.requests:
        return []
    return [
        f"With {plural(exposure.requests, 'request')} and 0 failures a rate above "
        f"{percent(excluded_rate(exposure.requests))} is excluded at 95%.",
        f"Asked: {asked}. Other requests, longer runs and more load are not excluded by it.",
    ]


def print_verification(found: Verification, console: Console) -> None:
    """The summary in a terminal."""
    console.print()
    style = "bold green" if found.passed else "bold yellow" if found.untestable else "bold red"
    print_trimmed(console, Text(clean.line(verdict(found)), style=style))
    for text in (*exclusions(found), *_notes(found)):
        print_trimmed(console, Padding(Text(clean.line(text)), (0, 0, 0, 2)))
    if found.incident is not None and found.incident.root is not None:
        console.print()
        root = found.incident.root
        print_trimmed(console, Text.assemble(("root event  ", "bold"), (clean.line(root.text, 300), "red")))
    for line in found.xids[:5]:
        print_trimmed(console, Text.assemble(("kernel  ", "bold"), clean.line(line, 300)))
    if found.counters:
        console.print()
        print_trimmed(console, _counter_table(found.counters))


def probe_line(probe: ProbeReport) -> Text:
    """One probe in one line."""
    asked = f"{plural(probe.requests, 'request')}, {duration(probe.seconds)}"
    again = f" (round {probe.round})" if probe.round > 1 else ""
    text = Text.assemble(
        (f"{_WORDS[probe.status]:<13} ", _STYLES[probe.status]), clean.line(f"{probe.name}{again}: {asked}")
    )
    if probe.status != "right":
        text.append(f": {clean.line(_what(probe), 300)}")
    return text


def verification_json(found: Verification) -> str:
    """The whole as JSON, schema `culpa.verification/1`; only ASCII is written."""
    exposure = found.exposure
    document = {
        "schema": SCHEMA,
        "passed": found.passed,
        "verdict": verdict(found),
        **asdict(found),
        "exposure": {
            **asdict(exposure),
            "excluded_rate_95": excluded_rate(exposure.requests) if not found.failed else None,
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def junit_xml(found: Verification) -> str:
    """JUnit's XML as CI systems read it: a test case for each probe."""
    suite = ElementTree.Element(
        "testsuite",
        name="culpa verify",
        tests=str(len(found.probes)),
        failures=str(len(found.failures)),
        errors="1" if found.untestable else "0",
        skipped=str(sum(one.status in ("unknown", "unsupported", "not_asked") for one in found.probes)),
        time=f"{found.seconds:.3f}",
        timestamp=found.started,
    )
    for probe in found.probes:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"culpa.{found.suite}",
            name=probe.name if probe.round == 1 else f"{probe.name} (round {probe.round})",
            time=f"{probe.seconds:.3f}",
        )
        said = clean.line(probe.evidence)
        if probe.status == "wrong":
            ElementTree.SubElement(case, "failure", type=probe.symptom or "wrong", message=said)
        elif probe.status != "right":
            ElementTree.SubElement(case, "skipped", message=f"{_WORDS[probe.status]}: {said}")
    if found.untestable or found.xids or found.corrupted:
        case = ElementTree.SubElement(suite, "testcase", classname="culpa.host", name="engine and kernel")
        kind = "error" if found.untestable else "failure"
        said = found.untestable or "; ".join(found.xids) or verdict(found)
        ElementTree.SubElement(case, kind, message=clean.line(said))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def github_summary(found: Verification) -> str:
    """Markdown for the summary page of a GitHub workflow run."""
    from culpa.report.markup import cell, table, text

    rows = [
        (text(one.name), str(one.round), _WORDS[one.status], str(one.requests), cell(_what(one), 200))
        for one in found.probes
    ]
    lines = [f"### culpa verify: {text(verdict(found))}", ""]
    lines += [f"- {text(one)}" for one in (*exclusions(found), *_notes(found))]
    return "\n".join([*lines, "", str(table(("probe", "round", "result", "requests", "what"), rows)), ""])


def _what(probe: ProbeReport) -> str:
    if probe.status == "right":
        return probe.caveat
    what = f"{probe.symptom.replace('_', ' ')}: {probe.evidence}" if probe.symptom else probe.evidence
    return f"{what} {probe.caveat}".strip()


def _notes(found: Verification) -> list[str]:
    notes = []
    if found.undecided:
        notes.append(
            "The model may not know the answers. Give questions that it knows (--question), or compare with answers "
            "of a trusted configuration (--record-golden there, --golden here)."
        )
    unsupported = dict.fromkeys(one.name for one in found.probes if one.status == "unsupported")
    if unsupported:
        notes.append(f"Not supported by this engine, and so not verified: {listing(unsupported)}.")
    caveats = dict.fromkeys(one.caveat for one in found.probes if one.status == "right" and one.caveat)
    notes += [sentence(caveat) for caveat in caveats]
    notes.append(f"Kernel log: {found.kernel_log}.")
    if found.other_xids:
        notes.append(
            f"GPUs that this engine does not use reported {plural(len(found.other_xids), 'error')} meanwhile, which "
            f"do not count: {found.other_xids[0]}"
        )
    if found.golden:
        notes.append(f"Answers were compared with {found.golden}.")
    if found.recorded:
        notes.append(f"The answers were recorded in {found.recorded}.")
    if found.unrecorded:
        notes.append(f"No answers were recorded: {found.unrecorded}.")
    return notes


def _counter_table(counters: Sequence[Counter]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("the engine's own numbers", "before", "after"):
        table.add_column(heading, justify="left" if heading.startswith("the") else "right")
    for one in counters:
        table.add_row(
            Text(clean.line(f"{one.meaning} ({one.name})")), _number(one.before), _number(one.after)
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
