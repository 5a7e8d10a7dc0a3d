"""The environment of an engine as one block: for a terminal, to be pasted, as JSON; its check and comparisons."""

import html
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from culpa.environment import NOT_IN_LOG, environment_document
from culpa.model.environment import Check, Comparison, Difference, Environment, Fact
from culpa.report import clean, markup
from culpa.report.console import print_trimmed
from culpa.report.words import plural

_TITLES = {
    "known_bad": "in a known-bad range",
    "advice": "to be set otherwise",
    "may_apply": "may apply: what is open decides",
    "known_good": "in a known-good range",
}
_STYLES = {"known_bad": "bold red", "advice": "yellow", "may_apply": "yellow", "known_good": "green"}
_MOST_TEXT = 600
_MOST_VALUE = 400
#: From this weight on, a difference is worth looking at first.
FIRST = 60


def print_environment(environment: Environment, checks: Sequence[Check], console: Console) -> None:
    """Print the block and what is known of its items."""
    print_trimmed(console, Text(clean.line(_headline(environment)), style="bold"))
    for section, facts in groupby(_told(environment), key=lambda fact: fact.section):
        table = Table.grid(padding=(0, 2), pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for fact in facts:
            table.add_row(clean.line(_name(fact)), _value(fact))
        console.print()
        print_trimmed(console, Text(section, style="bold"))
        print_trimmed(console, Padding(table, (0, 0, 0, 2)))
    if silent := _silent(environment):
        console.print()
        print_trimmed(console, Text(silent, style="dim"))
    _print_checks(checks, console)


def environment_markdown(environment: Environment, checks: Sequence[Check]) -> str:
    """The block as Markdown that folds away, for a bug report; what is known of its items below it."""
    block: list[str] = []
    for section, facts in groupby(_told(environment), key=lambda fact: fact.section):
        rows = [(clean.line(_name(fact)), _plain(fact)) for fact in facts]
        width = max(len(name) for name, _ in rows)
        block += [f"[{section}]", *(f"{name:<{width}}  {value}" for name, value in rows), ""]
    if silent := _silent(environment):
        block.append(silent)
    summary = html.escape(clean.line(_headline(environment)))
    fenced = markup.fence("\n".join(block).rstrip(), "text")
    lines = ["<details>", f"<summary>{summary}</summary>", "", fenced, "", "</details>", ""]
    for standing, found in _grouped(checks):
        lines += [f"**{_TITLES[standing][:1].upper()}{_TITLES[standing][1:]}**", ""]
        lines += [f"- {markup.text(_checked(check))} <{check.source}>" for check in found]
        lines.append("")
    return "\n".join(lines)


def environment_json(environment: Environment, checks: Sequence[Check]) -> str:
    """The document of a run (docs/env.md) with its check, as ASCII."""
    document: dict[str, Any] = {
        **environment_document(environment),
        "checks": [
            {
                "standing": check.standing,
                "key": check.key,
                "value": clean.line(check.value),
                "said": check.said,
                "source": check.source,
                "status": check.status,
                "met": [clean.line(text) for text in check.needs],
                "open": list(check.open),
            }
            for check in checks
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print what differs, what matters first."""
    found = comparison.differences
    if not found:
        text = f"nothing that both sides tell differs ({plural(comparison.same, 'item')} the same)"
        print_trimmed(console, Text(text, style="bold green"))
    else:
        words = f"{plural(len(found), 'item')} differ, {comparison.same} are the same"
        print_trimmed(console, Text(words.replace("1 item differ", "1 item differs"), style="bold"))
        first = [one for one in found if one.weight >= FIRST]
        for title, part in (("look at these first", first), ("then", found[len(first) :])):
            if part:
                console.print()
                print_trimmed(console, Text(title if first else "differences", style="bold"))
                print_trimmed(
                    console, Padding(_differences(part, comparison, why=part is first), (0, 0, 0, 2))
                )
    if comparison.unreadable:
        console.print()
        print_trimmed(console, Text("told by one side only", style="bold"))
        print_trimmed(
            console, Padding(_differences(comparison.unreadable, comparison, why=False), (0, 0, 0, 2))
        )


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as a Markdown table, what matters first."""
    rows = (
        (
            markup.cell(one.key),
            markup.cell(_side(one.left)),
            markup.cell(_side(one.right)),
            markup.Markdown(f"{markup.text(one.why)} (<{one.source}>)"),
        )
        for one in (*comparison.differences, *comparison.unreadable)
    )
    header = ("item", clean.line(comparison.left), clean.line(comparison.right), "why it matters")
    return f"{markup.table(header, rows)}\n"


def comparison_json(comparison: Comparison) -> str:
    """The comparison as JSON (schema culpa.environment-comparison/1), as ASCII."""

    def rows(found: Sequence[Difference]) -> list[dict[str, Any]]:
        return [
            {
                "key": one.key,
                "left": one.left,
                "right": one.right,
                "weight": one.weight,
                "why": one.why,
                "source": one.source,
            }
            for one in found
        ]

    document = {
        "schema": "culpa.environment-comparison/1",
        "left": clean.line(comparison.left),
        "right": clean.line(comparison.right),
        "differences": rows(comparison.differences),
        "told_by_one_side": rows(comparison.unreadable),
        "same": comparison.same,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _headline(environment: Environment) -> str:
    engine, version = environment.get("engine.name"), environment.get("engine.version")
    name = " ".join(part for part in (engine or "no engine known", version) if part)
    models = [fact.value for fact in environment.facts if _is_gpu_name(fact.key) and fact.value is not None]
    counted = [f"{models.count(model)} x {model}" for model in dict.fromkeys(models)]
    gpus = ", ".join(counted) or "no GPU seen"
    when = f", {environment.taken}" if environment.taken else ""
    return f"{name}; {gpus}; {environment.origin}{when}"


def _told(environment: Environment) -> list[Fact]:
    """All facts, but for those of which a log merely does not speak."""
    return [fact for fact in environment.facts if fact.value is not None or fact.reason != NOT_IN_LOG]


def _silent(environment: Environment) -> str:
    """Those, in one sentence."""
    keys = [fact.key for fact in environment.facts if fact.value is None and fact.reason == NOT_IN_LOG]
    return f"not readable, {NOT_IN_LOG}: {', '.join(map(clean.line, keys))}" if keys else ""


def _is_gpu_name(key: str) -> bool:
    parts = key.split(".")
    return len(parts) == 3 and parts[0] == "gpu" and parts[2] == "name"


def _name(fact: Fact) -> str:
    return fact.key.partition(".")[2] or fact.key


def _value(fact: Fact) -> Text:
    if fact.value is None:
        return Text(_plain(fact), style="dim")
    text = Text(clean.line(fact.value, _MOST_VALUE))
    if fact.source and fact.source not in ("installed", "NVML", "surroundings"):
        text.append(f"  ({clean.line(fact.source)})", style="dim")
    return text


def _plain(fact: Fact) -> str:
    if fact.value is None:
        return clean.line(f"not readable: {fact.reason or 'nothing tells it'}")
    return clean.line(fact.value, _MOST_VALUE)


def _grouped(checks: Sequence[Check]) -> Iterator[tuple[str, list[Check]]]:
    for standing in _TITLES:
        found = [check for check in checks if check.standing == standing]
        if found:
            yield standing, found


def _checked(check: Check) -> str:
    parts = [f"{check.key} {check.value}: {check.said}"]
    parts += [f"here: {', '.join(check.needs)}"] if check.needs else []
    parts += [f"open: {', '.join(check.open)}"] if check.open else []
    parts += [f"report {check.status}"] if check.status else []
    return clean.line("; ".join(parts), _MOST_TEXT)


def _print_checks(checks: Sequence[Check], console: Console) -> None:
    console.print()
    if not checks:
        print_trimmed(console, Text("check: no known report speaks of what is readable here", style="bold"))
        return
    for standing, found in _grouped(checks):
        print_trimmed(console, Text(f"check: {_TITLES[standing]}", style=_STYLES[standing]))
        for check in found:
            print_trimmed(console, Padding(Text(_checked(check)), (0, 0, 0, 2)))
            console.print(f"    {check.source}", style="dim", soft_wrap=True)


def _differences(found: Sequence[Difference], comparison: Comparison, *, why: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("item", no_wrap=True)
    table.add_column(clean.line(comparison.left, 60), overflow="fold")
    table.add_column(clean.line(comparison.right, 60), overflow="fold")
    if why:
        table.add_column("why it matters", overflow="fold")
    for one in found:
        row = [Text(clean.line(one.key)), Text(_side(one.left)), Text(_side(one.right))]
        if why:
            row.append(Text(one.why, style="dim"))
        table.add_row(*row)
    return table


def _side(value: str | None) -> str:
    return "not told" if value is None else clean.line(value, _MOST_VALUE)
