"""What `--dry-run` prints: the plan for a person, and as JSON (schema "culpa.plan/1") for programs."""

import json
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.model import Factor, Plan
from culpa.report import clean, words
from culpa.report.console import print_trimmed

SCHEMA = "culpa.plan/1"


def print_plan(plan: Plan, console: Console) -> None:
    """Print engine, launch, factors, arms, and how long it may take."""
    console.print(Text(clean.line(_engine(plan)), style="bold"))
    console.print(Text(clean.block(plan.launch.command_line())), soft_wrap=True)
    _heading(console, f"{words.plural(len(plan.factors), 'factor')} to vary")
    if plan.factors:
        print_trimmed(console, _factor_table(plan))
    if plan.left_out:
        _heading(console, "Left out")
        print_trimmed(console, _pairs([(left.name, left.reason) for left in plan.left_out]))
    if plan.layout:
        _heading(console, "Layout of the model, before anything is launched")
        print_trimmed(console, _pairs([(finding.level, finding.text) for finding in plan.layout]))
    if plan.arms:
        _heading(console, "Arms that are certain")
        print_trimmed(console, _pairs([(arm.name, _arm(arm.levels, arm.reason)) for arm in plan.arms]))
    if plan.probes:
        _heading(console, "Probes, in this order")
        print_trimmed(console, Padding(Text(clean.line(", ".join(plan.probes))), (0, 0, 0, 2)))
    _heading(console, "Predicted")
    for sentence in prediction(plan):
        print_trimmed(console, Padding(Text(sentence), (0, 0, 0, 2)))
    for note in plan.notes:
        print_trimmed(console, Padding(Text(clean.line(note)), (0, 0, 0, 2)))


def prediction(plan: Plan) -> list[str]:
    """How many trials and how long, and the limits that were set."""
    sentences = []
    if plan.predicted_trials is not None:
        trials = f"about {words.plural(plan.predicted_trials, 'trial')}, if it fails every time"
        confidence = f"to reach {words.percent(plan.confidence)} confidence"
        sentences.append(f"{trials}, {confidence}")
    if plan.predicted_seconds is not None:
        sentences.append(f"about {words.duration(plan.predicted_seconds)}")
    if plan.max_trials is not None:
        sentences.append(f"at most {words.plural(plan.max_trials, 'trial')}")
    if plan.max_seconds is not None:
        sentences.append(f"at most {words.duration(plan.max_seconds)}")
    return sentences or ["nothing is known yet of how long it takes"]


def plan_json(plan: Plan) -> str:
    """The plan as JSON, with a newline at its end; only ASCII."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "engine": clean.line(plan.engine),
        "engine_version": plan.engine_version and clean.line(plan.engine_version),
        "launch": clean.block(plan.launch.command_line()),
        "factors": [_factor(factor) for factor in plan.factors],
        "left_out": [{"name": left.name, "reason": clean.line(left.reason)} for left in plan.left_out],
        "arms": [
            {
                "name": clean.line(arm.name),
                "purpose": arm.purpose,
                "levels": {name: clean.value(name, level) for name, level in arm.levels},
                "reason": clean.line(arm.reason),
            }
            for arm in plan.arms
        ],
        "probes": list(plan.probes),
        "confidence": plan.confidence,
        "predicted_trials": plan.predicted_trials,
        "predicted_seconds": plan.predicted_seconds,
        "max_trials": plan.max_trials,
        "max_seconds": plan.max_seconds,
        "notes": [clean.line(note) for note in plan.notes],
        "layout": [
            {
                "id": found.id,
                "level": found.level,
                "text": clean.line(found.text),
                "factors": list(found.factors),
            }
            for found in plan.layout
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _factor(factor: Factor) -> dict[str, Any]:
    return {
        "name": factor.name,
        "suspect": clean.value(factor.name, factor.suspect),
        "safe": [clean.value(factor.name, level) for level in factor.safe],
        "scope": factor.scope,
        "prior": factor.prior,
        "instrument": factor.instrument,
        "numeric": factor.numeric,
        "meaning": clean.line(factor.meaning),
    }


def _factor_table(plan: Plan) -> Table:
    """Narrow consoles get no prior and no meaning folded to one letter: levels fold first."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("factor", overflow="fold", max_width=30)
    table.add_column("as launched", overflow="fold", max_width=20)
    table.add_column("safe", overflow="fold", max_width=20)
    table.add_column("prior", justify="right", no_wrap=True)
    table.add_column("a flip would mean", overflow="fold", ratio=1)
    for factor in plan.factors:
        meaning = f"(instrument) {factor.meaning}" if factor.instrument else factor.meaning
        table.add_row(
            Text(clean.line(factor.name)),
            Text(_shown(factor.name, factor.suspect)),
            Text(", ".join(_shown(factor.name, level) for level in factor.safe)),
            Text(words.percent(factor.prior)),
            Text(clean.line(meaning)),
        )
    return table


def _shown(name: str, level: str) -> str:
    return clean.line(clean.value(name, level)) or "unset"


def _engine(plan: Plan) -> str:
    name = " ".join(part for part in (plan.engine, plan.engine_version) if part)
    return f"{name}, launched with:"


def _arm(levels: tuple[tuple[str, str], ...], reason: str) -> str:
    changes = ", ".join(words.setting(name, clean.value(name, level)) for name, level in levels)
    return "; ".join(part for part in (changes, reason) if part)


def _pairs(rows: list[tuple[str, str]]) -> Padding:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(overflow="fold", max_width=30)
    table.add_column(overflow="fold", ratio=1)
    for name, text in rows:
        table.add_row(Text(clean.line(name)), Text(clean.line(text)))
    return Padding(table, (0, 0, 0, 2))


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))
