"""The account of a run: each trial with the reason for it, the bits it was expected to tell, and those it told."""

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from culpa.model import Trial
from culpa.model.told import Beliefs, Told
from culpa.record import Record
from culpa.report import clean, words
from culpa.report.console import print_trimmed

SCHEMA = "culpa.why/1"
_LEGEND = (
    "Bits are about which set of factors is at fault: expected before the trial, told after it. An outcome that "
    "was likely tells less than expected, an unlikely one more. See docs/search.md."
)


def print_why(record: Record, console: Console | None = None) -> None:
    """Print the account for a person."""
    console = console or Console(highlight=False)
    trials = record.ordered()
    if not trials:
        console.print("No trial of this run has ended yet.")
        return
    for trial in trials:
        console.print(Text(clean.line(_heading(trial)), style="bold"))
        for sentence in _sentences(record, trial):
            print_trimmed(console, Padding(Text(clean.line(sentence)), (0, 0, 0, 4)))
    console.print()
    print_trimmed(console, Text(_LEGEND, style="dim"))


def _heading(trial: Trial) -> str:
    return f"{trial.id:3}  {trial.arm or trial.purpose}: {trial.outcome.value} ({trial.purpose})"


def _sentences(record: Record, trial: Trial) -> Iterator[str]:
    reason = record.reasons.get(trial.id, "")
    if reason:
        yield f"why: {reason}"
    told = record.told.get(trial.id)
    if told is None:
        yield "no evidence about the failing set: it served to see the failure, or to measure"
        return
    if told.failing is not None:
        yield f"expected: to fail with {words.percent(told.failing)}, and to tell {told.expected:.2f} bits"
    yield f"told: {_bits(told)}"
    yield f"before: {_beliefs(told.before)}"
    if told.after != told.before:
        yield f"after: {_beliefs(told.after)}"


def _bits(told: Told) -> str:
    return f"{told.told:.2f} bits" if told.told >= 0.005 else "next to nothing about the failing set"


def _beliefs(beliefs: Beliefs) -> str:
    return ", ".join(f"{words.names(names)} {words.percent(chance)}" for names, chance in beliefs)


def why_json(record: Record) -> str:
    """The account as JSON (schema "culpa.why/1"), with a newline at its end; only ASCII."""
    document = {"schema": SCHEMA, "trials": [_trial(record, trial) for trial in record.ordered()]}
    return json.dumps(document, indent=2) + "\n"


def _trial(record: Record, trial: Trial) -> dict[str, Any]:
    told = record.told.get(trial.id)
    return {
        "id": trial.id,
        "arm": clean.line(trial.arm),
        "purpose": trial.purpose,
        "outcome": trial.outcome.value,
        "why": clean.line(record.reasons.get(trial.id, "")),
        "failing_chance": None if told is None or told.failing is None else round(told.failing, 4),
        "expected_bits": None if told is None else round(told.expected, 4),
        "told_bits": None if told is None else round(told.told, 4),
        "before": None if told is None else _rows(told.before),
        "after": None if told is None else _rows(told.after),
    }


def _rows(beliefs: Beliefs) -> list[dict[str, Any]]:
    """An empty set stands for "none of these"."""
    return [{"set": [clean.line(name) for name in names], "probability": round(p, 4)} for names, p in beliefs]
