"""A layout as SVG: what the terminal shows, to be put into a report or turned into a PNG."""

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from unicodedata import east_asian_width

from culpa.layout import Explanation, Finding, Plan, Stage
from culpa.layout.stages import cut_boundaries
from culpa.layout.words import percent, size
from culpa.report import clean
from culpa.report.layout_labels import Language, kind_name, kind_words, label, layer_label

_FONTS = (
    "Inter, 'Segoe UI', 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', 'Noto Sans CJK SC', 'Source Han Sans SC', "
    "'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei', sans-serif"
)
_WIDTH = 1200
_LEFT = 150
_CELL = 26
_ROW = _CELL + 13
_PER_LINE = 24
_BAR_LEFT = 800
_BAR = 372
_INK, _DIM, _LINE, _PAPER = "#1c2430", "#5d6875", "#cfd6de", "#ffffff"
_LEVELS = {"error": "#c62828", "warning": "#b26a00", "note": "#2f6f9f"}
_WEIGHTS, _CACHE, _OVERHEAD, _OUTSIDE = "#64748b", "#4caf7d", "#d5dbe3", "#94a3b8"
_MOST_FINDINGS = 8


def layout_svg(plan: Plan, findings: Sequence[Finding], language: Language = "en") -> str:
    """The picture of one plan, 1200 units wide and as high as it needs to be."""
    drawing = _Drawing()
    y = _head(drawing, plan, language)
    y = _stages(drawing, plan, y, language)
    if plan.groups:
        y = _groups(drawing, plan, y + 22, language)
    y = _sums(drawing, plan, y + 12, language)
    y = _list_findings(drawing, findings, y + 14, language)
    return drawing.finished(y + 18)


def comparison_svg(plans: Sequence[Plan], explanation: Explanation | None, language: Language = "en") -> str:
    """Several plans of one model, one below the other at one scale, and two capacities explained."""
    drawing = _Drawing()
    y = _head(drawing, plans[0], language, alone=False)
    scale = _scale(plans)
    for plan in plans:
        _memory_legend(drawing, plan, y, language)
        words = ",".join(map(str, plan.partition))
        if plan.capacity_tokens is not None:
            words += f"   {label('tokens', language, count=f'{plan.capacity_tokens:,}')}"
            words += f" = {plan.num_blocks:,} {label('block_count', language)}"
        drawing.text(24, y + 4, words, big=15, bold=True)
        y += 20
        for stage in plan.stages:
            y = _stage(drawing, plan, stage, y, scale, language) + 8
        y += 24
    for sentence in explanation.sentences if explanation is not None else ():
        for line in wrap(clean.line(sentence), 165, break_on_hyphens=False):
            drawing.text(24, y, line, big=12.5)
            y += 17
    return drawing.finished(y + 6)


class _Drawing:
    """Elements in the order of drawing."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, big: float = 13, colour: str = _INK, bold: bool = False,
        anchor: str = "start",
    ) -> None:  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        place = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{big:g}" fill="{colour}"{weight}{place}>'
            f"{escape(clean.line(words))}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, colour: str, *, round_by: float = 3,
        stroke: str | None = None, dashed: bool = False,
    ) -> None:  # fmt: skip
        edge = f' stroke="{stroke}"' if stroke else ""
        dash = ' stroke-dasharray="3 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{max(0.0, width):g}" height="{height:g}" rx="{round_by:g}" '
            f'fill="{colour}"{edge}{dash}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, *, thick: float = 1) -> None:
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{thick:g}"/>'
        )

    def finished(self, height: float) -> str:
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:g}" '
            f'viewBox="0 0 {_WIDTH} {height:g}" font-family="{escape(_FONTS, quote=True)}">\n'
            f'<rect width="{_WIDTH}" height="{height:g}" fill="{_PAPER}"/>\n{body}\n</svg>\n'
        )


def _head(drawing: _Drawing, plan: Plan, language: Language, alone: bool = True) -> float:
    """Title, what the layers are, and the legend; returns where the next part begins."""
    shape, settings = plan.shape, plan.settings
    name = f"{shape.family} · {shape.architecture or shape.model_type}"
    drawing.text(24, 38, name, big=20, bold=True)
    facts = [label("layers", language, count=len(shape.layers))]
    if shape.period != 1:
        facts.append(
            label("period", language, period=shape.period) if shape.period else label("no_period", language)
        )
    split = f" ({','.join(map(str, plan.partition))})" if alone else ""
    facts.append(f"PP {settings.pipeline_parallel_size}{split}")
    facts.append(f"TP {settings.tensor_parallel_size}")
    facts.append(f"vLLM {settings.version_text}")
    drawing.text(24, 60, " · ".join(facts), colour=_DIM)
    x = 24.0
    for kind, count in shape.counts.items():
        shown = layer_label(kind)
        drawing.box(x, 76, 18, 18, shown.colour)
        drawing.text(x + 9, 89.5, shown.letter, big=11, colour=_on(shown.letter), bold=True, anchor="middle")
        words = f"{count} × {kind_words(kind, language)}"
        drawing.text(x + 25, 90, words, big=12.5)
        x += 25 + _wide(words) * 6.6 + 26
    if not alone or cut_boundaries(plan.partition, shape.period):
        drawing.line(x + 4, 77, x + 4, 94, _LEVELS["error"], thick=2.5)
        drawing.text(x + 14, 90, label("boundary", language), big=12.5)
    return 118


def _on(letter: str) -> str:
    return "#ffffff" if letter in "FHES" else "#2a2a2a"


def _stages(drawing: _Drawing, plan: Plan, top: float, language: Language) -> float:
    drawing.text(24, top + 4, label("stages", language), big=15, bold=True)
    _memory_legend(drawing, plan, top, language)
    scale = _scale([plan])
    y = top + 20
    for stage in plan.stages:
        y = _stage(drawing, plan, stage, y, scale, language) + 12
    return y


def _memory_legend(drawing: _Drawing, plan: Plan, top: float, language: Language) -> None:
    x = float(_BAR_LEFT)
    known = any(stage.available is not None for stage in plan.stages)
    shown = [("weights", _WEIGHTS), ("beside", _OUTSIDE)]
    if known:
        shown.append(("cache", _CACHE))
    if plan.settings.gpu_memory is not None:
        shown.append(("overhead", _OVERHEAD))
    for name, colour in shown:
        drawing.box(x, top - 7, 11, 11, colour, round_by=2)
        words = label(name, language)
        drawing.text(x + 15, top + 3, words, big=11, colour=_DIM)
        x += 15 + _wide(words) * 5.9 + 14


def _scale(plans: Sequence[Plan]) -> float:
    """Units of length for a byte, so that the fullest stage fits its bar."""
    most = max((_bar_bytes(plan, stage) for plan in plans for stage in plan.stages), default=0)
    return _BAR / most if most else 0.0


def _bar_bytes(plan: Plan, stage: Stage) -> int:
    over = plan.settings.overhead if plan.settings.gpu_memory is not None else 0
    return stage.weights.total + max(0, _cache_bytes(plan, stage)) + over


def _cache_bytes(plan: Plan, stage: Stage) -> int:
    if stage.available is not None:
        return stage.available
    return (plan.num_blocks or 0) * stage.bytes_per_block


def _stage(
    drawing: _Drawing, plan: Plan, stage: Stage, top: float, scale: float, language: Language
) -> float:
    layers = list(stage.layers)
    period = plan.shape.period or 1
    fold = _PER_LINE // period * period if period <= _PER_LINE else _PER_LINE
    lines = (
        [layers[start : start + fold] for start in range(0, len(layers), fold)]
        if len(layers) > _PER_LINE
        else [layers]
    )
    height = max(1, len(lines)) * _ROW + 17
    drawing.box(16, top, _WIDTH - 32, height, "#f6f8fa", round_by=8, stroke=_LINE)
    drawing.text(28, top + 24, label("stage", language, index=stage.index), big=14, bold=True)
    drawing.text(28, top + 42, _range(layers, language), big=11.5, colour=_DIM)
    if stage.index == plan.limiting_stage and len(plan.stages) > 1:
        drawing.text(
            _LEFT - 14,
            top + 24,
            label("limiting", language),
            big=11.5,
            bold=True,
            anchor="end",
            colour="#2e7d54",
        )
    step = period if period > 1 else 8
    y = top + 10
    for line in lines:
        for place, layer in enumerate(line):
            x = _LEFT + place * _CELL
            shown = layer_label(plan.shape.layers[layer].kind)
            drawing.box(x, y, _CELL - 3, _CELL - 2, shown.colour)
            drawing.text(
                x + (_CELL - 3) / 2,
                y + 16.5,
                shown.letter,
                big=12,
                colour=_on(shown.letter),
                bold=True,
                anchor="middle",
            )
            if layer % step == 0 or layer in (layers[0], layers[-1]):
                drawing.text(
                    x + (_CELL - 3) / 2, y + _CELL + 8, str(layer), big=8.5, colour=_DIM, anchor="middle"
                )
        y += _ROW
    if stage.index and layers and period > 1 and layers[0] % period:
        # The stage begins in the middle of a period.
        drawing.line(_LEFT - 6, top + 8, _LEFT - 6, top + 8 + _CELL + 2, _LEVELS["error"], thick=2.5)
    _bar(drawing, plan, stage, top + 10, scale, language)
    return top + height


def _range(layers: Sequence[int], language: Language) -> str:
    if not layers:
        return label("none", language)
    if len(layers) == 1:
        return label("one", language, first=layers[0])
    return label("range", language, first=layers[0], last=layers[-1])


def _bar(drawing: _Drawing, plan: Plan, stage: Stage, top: float, scale: float, language: Language) -> None:
    held = stage.weights
    cache = max(0, _cache_bytes(plan, stage))
    over = plan.settings.overhead if plan.settings.gpu_memory is not None else 0
    x = float(_BAR_LEFT)
    inside = held.layers + held.drafting
    for count, colour in (
        (inside, _WEIGHTS),
        (held.total - inside, _OUTSIDE),
        (cache, _CACHE),
        (over, _OVERHEAD),
    ):
        drawing.box(x, top, count * scale, 16, colour, round_by=0)
        x += count * scale
    words = f"{label('weights_of', language, size=size(held.total))}"
    if cache:
        words += f" · {label('cache', language)} {size(cache)}"
        if stage.num_blocks is not None:
            words += f" = {stage.num_blocks:,} {label('block_count', language)}"
    drawing.text(_BAR_LEFT, top + 31, words, big=11.5)


def _groups(drawing: _Drawing, plan: Plan, top: float, language: Language) -> float:
    """Groups as rows, stages as columns; a square is a page of one layer in every block."""
    drawing.text(24, top + 4, label("groups", language), big=15, bold=True)
    widest = max((max(stage.group_widths, default=0) for stage in plan.stages), default=1)
    column = (_WIDTH - 330) / max(1, len(plan.stages))
    square = min(16.0, max(2.0, (column - 24) / max(1, widest) - 2))
    drawing.text(300, top + 4, label("per_request", language), big=11.5, colour=_DIM, anchor="end")
    for stage in plan.stages:
        x = 330 + stage.index * column
        drawing.text(x, top + 4, label("stage", language, index=stage.index), big=12, bold=True)
    y = top + 16
    for index, (group, per) in enumerate(zip(plan.groups, plan.per_group, strict=True)):
        kind = group.first.type
        drawing.text(28, y + 13, f"{index}  {kind_name(kind, language)}", big=12.5)
        drawing.text(300, y + 13, f"{per:,}", big=12.5, anchor="end")
        for stage in plan.stages:
            places = max(stage.group_widths, default=0)
            for place in range(places):
                x = 330 + stage.index * column + place * (square + 2)
                if place < stage.group_widths[index]:
                    drawing.box(x, y + 1, square, 15, layer_label(kind).colour, round_by=2)
                else:
                    drawing.box(
                        x + 0.5, y + 1.5, square - 1, 14, "#ffffff", round_by=2, stroke="#9aa3ad", dashed=True
                    )
        y += 21
    drawing.line(24, y + 2, _WIDTH - 24, y + 2, _LINE)
    y += 8
    for stage in plan.stages:
        words = f"{label('bytes_per_block', language)} {size(stage.bytes_per_block)}"
        words += f", {label('padding', language)} {percent(max(0.0, stage.padding))}"
        drawing.text(330 + stage.index * column, y + 10, words, big=11, colour=_DIM)
    return y + 20


def _sums(drawing: _Drawing, plan: Plan, top: float, language: Language) -> float:
    pages = plan.pages
    y = top + 6
    if pages.token_bytes:
        words = label(
            "page",
            language,
            bytes=f"{plan.page_bytes:,}",
            block=plan.block_size,
            token=f"{pages.token_bytes:,}",
        )
        if pages.state_bytes:
            share = percent(pages.state_padding)
            words += "; " + label("state_page", language, state=f"{pages.state_bytes:,}", share=share)
            words += "; " + label("mode", language, mode=pages.mode)
        drawing.text(24, y, words, big=12.5, colour=_DIM)
    elif pages.state_bytes:
        drawing.text(
            24, y, label("state_only", language, state=f"{pages.state_bytes:,}"), big=12.5, colour=_DIM
        )
    values = {"per": f"{plan.blocks_per_request:,}", "length": f"{plan.max_model_len:,}"}
    y += 28
    if plan.capacity_tokens is None:
        drawing.text(24, y, label("unknown", language, **values), big=14)
        return y
    words = label(
        "capacity", language, tokens=f"{plan.capacity_tokens:,}", blocks=f"{plan.num_blocks:,}", **values
    )
    drawing.text(24, y, words, big=17, bold=True)
    drawing.text(
        24,
        y + 20,
        label("concurrency", language, count=f"{plan.concurrency or 0:.2f}"),
        big=12.5,
        colour=_DIM,
    )
    return y + 20


def _list_findings(drawing: _Drawing, findings: Sequence[Finding], top: float, language: Language) -> float:
    """Errors and warnings first, as they come; what does not fit is counted."""
    y = top + 16
    drawing.text(24, y, label("findings", language), big=15, bold=True)
    if not findings:
        drawing.text(120, y, label("no_findings", language), colour=_DIM)
    for finding in findings[:_MOST_FINDINGS]:
        y += 20
        drawing.text(
            28, y, label(finding.level, language), big=11.5, colour=_LEVELS[finding.level], bold=True
        )
        lines = wrap(clean.line(finding.text), 170, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            y += 15 if number else 0
            drawing.text(92, y, line, big=11.5)
    if len(findings) > _MOST_FINDINGS:
        y += 18
        drawing.text(92, y, f"+ {len(findings) - _MOST_FINDINGS}", big=11.5, colour=_DIM)
    return y


def _wide(words: str) -> int:
    """Columns that the words take, wide characters as two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in words)
