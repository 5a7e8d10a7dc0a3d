"""`culpa guard` while it runs, and its result: in a terminal and as JSON."""

import json
import sys
from types import TracebackType

from pydantic import TypeAdapter
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.guard import explain
from culpa.model.guard import Explanation, GuardedRun, GuardRecord, Proof, SelfTest, Violation
from culpa.model.redact import redact
from culpa.model.verification import ProbeReport
from culpa.report import clean, guard_words
from culpa.report.console import plain_console, print_trimmed
from culpa.report.verification import probe_line
from culpa.report.words import duration, listing, plural

SCHEMA = "culpa.guard/1"
SELF_TEST_SCHEMA = "culpa.guard-self-test/1"
_LINE = 300
_EXPLAINED = TypeAdapter(Explanation)
_RUN = TypeAdapter(GuardedRun)
_SELF_TEST = TypeAdapter(SelfTest)


class LiveLines:
    """A line for each probe, and one for each new kind of violation on a stage: the others are counted."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self._console = plain_console(sys.stderr if as_json else sys.stdout)
        self._quiet = quiet
        self._seen: set[tuple[str, str | None]] = set()

    def __enter__(self) -> "LiveLines":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        pass

    def violation(self, violation: Violation) -> None:
        """The guard reports something."""
        sort = (violation.kind, violation.stage)
        if sort in self._seen:
            return
        self._seen.add(sort)
        text = clean.line(guard_words.one_line(violation), _LINE)
        self._print(Text.assemble(("violation    ", "bold red"), text))

    def probe(self, probe: ProbeReport) -> None:
        """A probe is done."""
        self._print(probe_line(probe))

    def starting(self, name: str, number: int) -> None:
        """The engine is started, or a run of a self-test begins."""
        if name == "start":
            self._print(Text("starting the engine with the guard in it", style="dim"))

    def serving(self, address: str) -> None:
        """The engine answers."""
        self._print(Text.assemble(("serving at ", "bold"), clean.line(address), " until Ctrl-C"))

    def proof(self, proof: Proof) -> None:
        """A planted fault was caught, or not."""
        self._print(_proof_line(proof))

    def _print(self, text: Text) -> None:
        if self._quiet:
            return
        try:
            print_trimmed(self._console, text)
        except OSError:  # the reader has gone; the run goes on for its exit code
            self._quiet = True


def verdict(run: GuardedRun) -> str:
    """The result in one sentence."""
    if run.record.total:
        kinds = listing(kind for kind, _ in run.record.kinds)
        return f"VIOLATED: {plural(run.record.total, 'violation')} ({kinds})"
    if run.failure:
        return f"FAILED: the engine failed, and the guard saw no violation before ({run.failure})"
    if run.untestable:
        return f"Nothing can be said: {run.untestable}"
    if not run.record.processes:
        return "Nothing was checked: no process of the engine had the guard in it."
    return "CLEAN: no violation was seen."


def print_run(run: GuardedRun) -> None:
    """The summary of a run. Raises OSError where nobody reads any more."""
    console = plain_console(sys.stdout)
    console.print()
    bad = run.record.total or run.failure
    style = "bold red" if bad else "bold green" if run.clean else "bold yellow"
    print_trimmed(console, Text(clean.line(verdict(run), _LINE), style=style))
    for sentence in (*guard_words.checked(run.record), f"Asked: {run.asked}; {duration(run.seconds)}."):
        print_trimmed(console, Padding(Text(clean.line(sentence, 1000)), (0, 0, 0, 2)))
    if run.failure and run.record.total:
        print_trimmed(
            console, Padding(Text(clean.line(f"The engine failed: {run.failure}", _LINE)), (0, 0, 0, 2))
        )
    if run.record.processes:
        console.print()
        print_trimmed(console, _process_table(run.record))
    _print_violations(run.record, console)
    if not run.record.total and run.record.processes:
        console.print()
        print_trimmed(console, Text(guard_words.BLIND, style="dim"))
    if run.folder:
        console.print()
        console.print(Text.assemble(("files  ", "bold"), clean.line(run.folder)), soft_wrap=True)


def _process_table(record: GuardRecord) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("process", "engine", "mode"):
        table.add_column(heading, overflow="fold")
    for heading in ("steps", "requests", "checks made", "violations", "own time"):
        table.add_column(heading, justify="right")
    for one in record.processes:
        made = sum(count for _, count in one.checked)
        row = (
            guard_words.process_name(one),
            " ".join(part for part in (one.engine, one.engine_version or "") if part),
            one.mode,
            "unknown" if one.steps is None else f"{one.steps:,}",
            "" if one.requests is None else f"{one.requests:,}",
            f"{made:,}" if one.ended else "unknown",
            f"{one.violations:,}",
            "" if one.own_seconds is None else f"{one.own_seconds * 1000:,.0f} ms",
        )
        table.add_row(*(Text(clean.line(cell, 60)) for cell in row))
    return table


def _print_violations(record: GuardRecord, console: Console) -> None:
    first = record.first
    if first is None:
        return
    meaning = explain(first.kind)
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("first", Text(clean.line(f"{first.kind}: {guard_words.where(first)}", _LINE), style="red"))
    table.add_row("", Text(clean.line(guard_words.what(first), _LINE)))
    table.add_row("means", Text(meaning.meaning))
    for heading, told in guard_words.brief(meaning):
        for number, sentence in enumerate(told):
            table.add_row(heading if not number else "", Text(sentence))
    others = [kind for kind, _ in record.kinds if kind != first.kind]
    for kind in others:
        count = dict(record.kinds)[kind]
        seen = next((one for one in record.violations if one.kind == kind), None)
        place = f", first {guard_words.where(seen)}" if seen is not None else ""
        table.add_row("also", Text(clean.line(f"{kind}, {count} times{place}", _LINE), style="dim"))
    console.print()
    print_trimmed(console, table)
    print_trimmed(console, Text(guard_words.FIRST_MATTERS, style="dim"))


def run_json(run: GuardedRun) -> str:
    """The run as JSON, schema `culpa.guard/1`; only ASCII is written."""
    kinds = [kind for kind, _ in run.record.kinds]
    return _json(
        {
            "schema": SCHEMA,
            "clean": run.clean,
            "verdict": verdict(run),
            "first": _RUN.dump_python(run, mode="json")["record"]["violations"][:1] or None,
            "explanations": [_EXPLAINED.dump_python(explain(kind), mode="json") for kind in kinds],
            **_RUN.dump_python(run, mode="json"),
        }
    )


def print_self_test(test: SelfTest) -> None:
    """The table of a self-test. Raises OSError where nobody reads any more."""
    console = plain_console(sys.stdout)
    console.print()
    applied = [proof for proof in test.proofs if proof.applies]
    caught = sum(proof.caught for proof in applied)
    healthy = (
        "a healthy run raised nothing" if test.healthy.clean else f"the healthy run: {verdict(test.healthy)}"
    )
    text = f"{'PASSED' if test.passed else 'FAILED'}: {caught} of {len(applied)} planted faults caught; {healthy}."
    print_trimmed(console, Text(clean.line(text, _LINE), style="bold green" if test.passed else "bold red"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("fault", "planted", "caught as"):
        table.add_column(heading, no_wrap=True)
    table.add_column("where, or why not", overflow="fold")
    for proof in test.proofs:
        found, planted = proof.found, proof.planted
        where = proof.reason
        if found is not None:
            parts = (found.stage, f"step {found.step}", found.layer)
            where = ", ".join(part for part in parts if part)
        row = (
            proof.fault,
            f"{planted.stage or ''} step {planted.step}" if planted is not None else "-",
            found.kind if found is not None else "MISSED" if proof.applies else "not here",
            where,
        )
        table.add_row(*(Text(clean.line(cell, 200)) for cell in row))
    console.print()
    print_trimmed(console, table)
    for sentence in guard_words.checked(test.healthy.record):
        print_trimmed(console, Text(clean.line(f"Healthy run: {sentence}", 1000), style="dim"))


def self_test_json(test: SelfTest) -> str:
    """The self-test as JSON, schema `culpa.guard-self-test/1`; only ASCII is written."""
    document = _SELF_TEST.dump_python(test, mode="json")
    for proof, row in zip(test.proofs, document["proofs"], strict=True):
        row["caught"] = proof.caught
    return _json({"schema": SELF_TEST_SCHEMA, "passed": test.passed, **document})


def _json(document: dict[str, object]) -> str:
    return redact(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)) + "\n"


def _proof_line(proof: Proof) -> Text:
    if not proof.applies:
        word, style = "not here", "dim"
    else:
        word, style = ("caught", "green") if proof.caught else ("MISSED", "bold red")
    told = guard_words.one_line(proof.found) if proof.found is not None else proof.reason
    return Text.assemble((f"{word:<13}", style), clean.line(f"{proof.fault}: {told}", _LINE))


__all__ = ["LiveLines", "print_run", "print_self_test", "run_json", "self_test_json", "verdict"]
