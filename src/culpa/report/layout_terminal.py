"""A layout for a terminal: layers as coloured cells, stages as rows, cache groups below, then numbers and findings."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from culpa.layout import Explanation, Finding, Plan, Stage
from culpa.layout.words import percent, size
from culpa.report import clean
from culpa.report.console import print_trimmed
from culpa.report.layout_labels import Language, kind_name, kind_words, label, layer_label

_LEVELS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_WIDEST_SQUARES = 16
_ROW_LABEL = 24
_ROW_END = 11
_EMPTY = "·"
_FULL = "■"


def print_layout(
    plan: Plan, findings: Sequence[Finding], console: Console, language: Language = "en"
) -> None:
    """Print the whole picture of one plan."""
    print_trimmed(console, Text(clean.line(_title(plan, language)), style="bold"))
    console.print()
    for stage in plan.stages:
        print_trimmed(console, _stage_row(plan, stage, console.width, language, _longest([plan])))
    print_trimmed(console, Padding(_legend(plan, language), (0, 0, 0, 2)))
    console.print()
    if plan.groups:
        print_trimmed(console, _group_table(plan, console.width, language))
        console.print()
    for sentence in _numbers(plan, language):
        print_trimmed(console, Padding(Text(sentence), (0, 0, 0, 2)))
    print_trimmed(console, Padding(_capacity(plan, language), (0, 0, 0, 2)))
    _print_findings(findings, console, language)


def print_comparison(
    plans: Sequence[Plan],
    findings: Sequence[Sequence[Finding]],
    explanation: Explanation | None,
    console: Console,
    language: Language = "en",
) -> None:
    """Print plans side by side: each one's stages, then a table of what differs."""
    print_trimmed(console, Text(clean.line(_title(plans[0], language)), style="bold"))
    for plan in plans:
        console.print()
        print_trimmed(console, Text(_name(plan), style="bold"))
        for stage in plan.stages:
            print_trimmed(console, _stage_row(plan, stage, console.width, language, _longest(plans)))
    print_trimmed(console, Padding(_legend(plans[0], language), (0, 0, 0, 2)))
    console.print()
    print_trimmed(console, _comparison_table(plans, findings, language))
    if explanation is not None:
        console.print()
        for sentence in explanation.sentences:
            print_trimmed(console, Padding(Text(sentence), (0, 0, 0, 2)))


def _longest(plans: Sequence[Plan]) -> int:
    return max((len(stage.layers) for plan in plans for stage in plan.stages), default=0)


def _title(plan: Plan, language: Language) -> str:
    shape = plan.shape
    kinds = ", ".join(f"{count} {kind_name(kind, language)}" for kind, count in shape.counts.items())
    period = label("period", language, period=shape.period) if shape.period else label("no_period", language)
    name = shape.architecture or shape.model_type or "model"
    parts = [f"{shape.family} ({name})", f"{label('layers', language, count=len(shape.layers))}: {kinds}"]
    if shape.period != 1:
        parts.append(period)
    settings = plan.settings
    parts.append(f"PP {settings.pipeline_parallel_size}, TP {settings.tensor_parallel_size}")
    return ", ".join(parts)


def _name(plan: Plan) -> str:
    return ",".join(map(str, plan.partition))


def _stage_row(plan: Plan, stage: Stage, width: int, language: Language, longest: int) -> Table:
    """`stage 0  layers 0-22  LLLF...  20.1 GB`, cells folded where the terminal is too narrow."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=_ROW_LABEL - 1, no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    layers = list(stage.layers)
    if not layers:
        where = label("none", language)
    elif len(layers) == 1:
        where = label("one", language, first=layers[0])
    else:
        where = label("range", language, first=layers[0], last=layers[-1])
    head = Text.assemble(f"  {label('stage', language, index=stage.index)}  ", (where, "dim"))
    room = max(8, width - _ROW_LABEL - _ROW_END)
    cell = 2 if longest * 2 <= room else 1
    fold = room // cell
    period = plan.shape.period or 1
    if longest > fold and period <= fold:
        fold = fold // period * period
    lines = [layers[start : start + fold] for start in range(0, len(layers), fold)] or [[]]
    for number, line in enumerate(lines):
        cells = Text()
        for layer in line:
            cells.append(_cell(plan, layer, cell))
        pad = min(longest, fold) * cell - cells.cell_len
        cells.append(" " * max(0, pad))
        weight = Text(f"{size(stage.weights.total):>9}") if number == 0 else Text("")
        table.add_row(head if number == 0 else Text(""), cells, weight)
    return table


def _cell(plan: Plan, layer: int, width: int) -> Text:
    shown = layer_label(plan.shape.layers[layer].kind)
    style = Style(color="#ffffff" if shown.letter in "FHE" else "#1a1a1a", bgcolor=shown.colour)
    return Text(shown.letter.ljust(width), style=style)


def _legend(plan: Plan, language: Language) -> Text:
    legend = Text()
    for kind in plan.shape.counts:
        shown = layer_label(kind)
        if legend:
            legend.append("   ")
        style = Style(color="#ffffff" if shown.letter in "FHE" else "#1a1a1a", bgcolor=shown.colour)
        legend.append(f"{shown.letter} ", style=style)
        legend.append(f" {kind_words(kind, language)}", style="dim")
    return legend


def _group_table(plan: Plan, width: int, language: Language) -> Table:
    """Groups as rows, stages as columns, a square for each layer; pages and memory of a stage below."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(f"  {label('groups', language)}", no_wrap=True)
    table.add_column(label("per_request", language), justify="right")
    for stage in plan.stages:
        name = label("stage", language, index=stage.index)
        table.add_column(name if len(plan.stages) <= 6 else str(stage.index), no_wrap=True)
    widest = max((max(stage.group_widths, default=0) for stage in plan.stages), default=0)
    squares = widest <= _WIDEST_SQUARES and len(plan.stages) * (max(8, widest) + 2) + 44 <= max(width, 80)
    for index, (group, per) in enumerate(zip(plan.groups, plan.per_group, strict=True)):
        kind = group.first.type
        widths = [stage.group_widths[index] for stage in plan.stages]
        row = [
            _squares(count, stage, layer_label(kind).colour, squares)
            for count, stage in zip(widths, plan.stages, strict=True)
        ]
        table.add_row(f"  {index} {kind_name(kind, language)}", f"{per:,}", *row)
    table.add_row(
        f"  {label('bytes_per_block', language)}", "", *[size(stage.bytes_per_block) for stage in plan.stages]
    )
    padding = [percent(max(0.0, stage.padding)) for stage in plan.stages]
    table.add_row(f"  {label('padding', language)}", "", *padding)
    if any(stage.available is not None for stage in plan.stages):
        free = [size(stage.available) if stage.available is not None else "" for stage in plan.stages]
        table.add_row(f"  {label('free', language)}", "", *free)
        table.add_row(
            f"  {label('blocks', language)}", "", *[_blocks(plan, stage, language) for stage in plan.stages]
        )
    return table


def _squares(count: int, stage: Stage, colour: str, drawn: bool) -> Text:
    """As many squares as layers, and points for places that stay empty on this stage."""
    places = max(stage.group_widths, default=0)
    if not drawn:
        return Text(f"{count}/{places}", style="" if count == places else "yellow")
    return Text.assemble((_FULL * count, colour), (_EMPTY * (places - count), "dim"))


def _blocks(plan: Plan, stage: Stage, language: Language) -> str:
    if stage.num_blocks is None:
        return ""
    mark = (
        f" ({label('limiting', language)})"
        if stage.index == plan.limiting_stage and len(plan.stages) > 1
        else ""
    )
    return f"{stage.num_blocks:,}{mark}"


def _numbers(plan: Plan, language: Language) -> list[str]:
    """Pages and what drafts, as sentences."""
    pages = plan.pages
    lines = []
    if pages.token_bytes:
        lines.append(
            label(
                "page",
                language,
                bytes=f"{plan.page_bytes:,}",
                block=plan.block_size,
                token=f"{pages.token_bytes:,}",
            )
        )
        if pages.state_bytes:
            state = label(
                "state_page", language, state=f"{pages.state_bytes:,}", share=percent(pages.state_padding)
            )
            lines[-1] += f"; {state}; {label('mode', language, mode=pages.mode)}"
    elif pages.state_bytes:
        lines.append(label("state_only", language, state=f"{pages.state_bytes:,}"))
    if any(entry.drafting for entry in pages.entries):
        lines.append(label("drafting", language, count=sum(entry.drafting for entry in pages.entries)))
    return lines


def _capacity(plan: Plan, language: Language) -> Text:
    """How many tokens fit, or what has to be given to know it; and whether the engine would start at all."""
    values = {"per": f"{plan.blocks_per_request:,}", "length": f"{plan.max_model_len:,}"}
    if plan.capacity_tokens is None:
        text = Text("" if plan.refusal else label("unknown", language, **values))
    else:
        tokens, blocks = f"{plan.capacity_tokens:,}", f"{plan.num_blocks:,}"
        text = Text(label("capacity", language, tokens=tokens, blocks=blocks, **values), style="bold")
        text.append(
            f"\n{label('concurrency', language, count=f'{plan.concurrency or 0:.2f}')}", style="not bold"
        )
    if plan.refusal is not None:
        text.append(("\n" if text else "") + label("refused", language), style="bold red")
    return text


def _print_findings(findings: Sequence[Finding], console: Console, language: Language) -> None:
    console.print()
    console.print(Text(label("findings", language), style="bold"))
    if not findings:
        console.print(Text(f"  {label('no_findings', language)}"))
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        table.add_row(
            Text(f"  {label(finding.level, language)}", style=_LEVELS[finding.level]),
            Text(clean.line(finding.text)),
        )
    print_trimmed(console, table)


def _comparison_table(
    plans: Sequence[Plan], findings: Sequence[Sequence[Finding]], language: Language
) -> Table:
    """One column a plan."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("  ", no_wrap=True)
    for plan in plans:
        table.add_column(_name(plan), no_wrap=len(plans) <= 3)

    def row(name: str, cells: Sequence[str], **values: object) -> None:
        table.add_row(f"  {label(name, language, **values)}", *cells)

    several = max(len(plan.stages) for plan in plans)
    for stage in range(several):
        row("compare_kinds", [_kinds(plan, stage) for plan in plans], index=stage)
    for stage in range(several):
        row("compare_weights", [_of(plan, stage, "weights") for plan in plans], index=stage)
    for stage in range(several):
        row("compare_widths", [_of(plan, stage, "widths") for plan in plans], index=stage)
    row("compare_block_bytes", [f"{plan.bytes_per_block:,}" for plan in plans])
    row("compare_block_size", [f"{plan.block_size:,}" for plan in plans])
    row("per_request", [f"{plan.blocks_per_request:,}" for plan in plans])
    if any(plan.num_blocks is not None for plan in plans):
        row("blocks", [_count(plan.num_blocks) for plan in plans])
        row("compare_capacity", [_count(plan.capacity_tokens) for plan in plans])
        limits = [
            "" if p.limiting_stage is None else label("stage", language, index=p.limiting_stage)
            for p in plans
        ]
        row("compare_limited", limits)
    row("findings", [_grave(found) or label("no_findings", language) for found in findings])
    return table


def _kinds(plan: Plan, index: int) -> str:
    if index >= len(plan.stages):
        return ""
    stage = plan.stages[index]
    return f"{stage.full_attention} + {len(stage.layers) - stage.full_attention}"


def _of(plan: Plan, index: int, what: str) -> str:
    if index >= len(plan.stages):
        return ""
    stage = plan.stages[index]
    return size(stage.weights.total) if what == "weights" else " ".join(map(str, stage.group_widths))


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _grave(findings: Sequence[Finding]) -> str:
    """The findings that are more than notes, by name."""
    names = dict.fromkeys(finding.id for finding in findings if finding.level != "note")
    return ", ".join(names)


def print_verification(verified: Sequence[dict[str, Any]], console: Console) -> None:
    """Print what the engine's own code said, or that it was not asked."""
    console.print()
    for text in dict.fromkeys(each["text"] for each in verified):
        print_trimmed(console, Text(clean.line(text), style="dim"))
    for each in verified:
        for difference in each["differences"]:
            print_trimmed(console, Padding(Text(clean.line(difference), style="red"), (0, 0, 0, 2)))
