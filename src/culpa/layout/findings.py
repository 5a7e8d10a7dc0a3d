"""What is worth knowing of a plan before it is launched: each with a level, the reason and the arithmetic."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from culpa.layout import words
from culpa.layout.engine import version_note
from culpa.layout.finding import Finding, Level
from culpa.layout.plan import Plan, make_plan
from culpa.layout.setting_rules import SETTING_RULES
from culpa.layout.stages import aligned_partition, cut_boundaries
from culpa.layout.words import percent, plural, size

_UNBALANCED, _BADLY_UNBALANCED = 0.10, 0.25
_WASTE = 0.20
_TIGHT = 0.03
_BEFORE = (0, 28, 0)  # the last release with the older shape that was looked at
_INCIDENT = "https://github.com/vllm-project/vllm/issues/63505"
_ORDER: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}


def find(plan: Plan) -> tuple[Finding, ...]:
    """All findings of a plan, the gravest first; those of one level in the order of the rules."""
    found = [finding for rule in (*_RULES, *SETTING_RULES) for finding in rule(plan)]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.level]))


def _unknown_family(plan: Plan) -> Iterator[Finding]:
    if plan.shape.notes:
        yield Finding(
            "unknown_family",
            "warning",
            f"{'; '.join(plan.shape.notes)}: its layers are taken to be plain ones ({_kinds(plan)}), so "
            "sizes are estimates",
        )


def _kinds(plan: Plan) -> str:
    return words.listing(f"{count} {kind}" for kind, count in plan.shape.counts.items())


def _empty_stage(plan: Plan) -> Iterator[Finding]:
    for stage in plan.stages:
        part = plan.partition[stage.index]
        if part < 1:
            yield Finding(
                "empty_stage",
                "error",
                f"stage {stage.index} gets {part} layers of partition {words.partition(plan.partition)}. "
                "vLLM checks only the number of parts and their sum, so it accepts that and dies later, "
                "in the stage's process",
                ("pipeline_partition",),
            )
    if plan.groups:
        for stage in plan.stages:
            if plan.partition[stage.index] > 0 and not stage.bytes_per_block:
                yield Finding(
                    "stage_without_cache",
                    "error",
                    f"stage {stage.index} ({words.first_last(stage.layers)}) has no layer with a cache: "
                    "vLLM's planner "
                    "divides its memory by zero bytes per block and ends with ZeroDivisionError",
                    ("pipeline_partition",),
                )


def _unbalanced(plan: Plan) -> Iterator[Finding]:
    if len(plan.stages) < 2:
        return
    held = [stage.weights.total for stage in plan.stages]
    most, least = max(held), min(held)
    gap = 1 - least / most if most else 0.0
    if gap < _UNBALANCED:
        return
    heavy, light = held.index(most), held.index(least)
    extra = plan.stages[heavy].weights
    outside = extra.embedding + extra.head + extra.tower
    beside = f" ({size(outside)} of it beside its layers)" if outside else ""
    yield Finding(
        "unbalanced_stage",
        "warning" if gap >= _BADLY_UNBALANCED else "note",
        f"stage {heavy} holds {size(most)} of weights{beside}, stage {light} {size(least)}: "
        f"{percent(gap)} less. "
        "All stages get as many cache blocks as the fullest one has room for, and a step takes as long as its "
        f"layers do ({plural(len(plan.stages[heavy].layers), 'layer')} against "
        f"{len(plan.stages[light].layers)})",
        ("pipeline_partition",),
    )


def _cut_period(plan: Plan) -> Iterator[Finding]:
    period = plan.shape.period
    cut = cut_boundaries(plan.partition, period)
    if not cut:
        return
    assert period is not None
    aligned = aligned_partition(plan.partition, period) if min(plan.partition) > 0 else None
    offer = f"; {words.partition(aligned)} would begin every stage at a whole one" if aligned else ""
    yield Finding(
        "boundary_inside_period",
        "note",
        f"layers repeat every {period}, and {plural(len(cut), 'boundary').replace('boundarys', 'boundaries')} "
        f"({words.listing(f'layer {layer}' for layer in cut)}) "
        f"{'cut' if len(cut) > 1 else 'cuts'} into a period{offer}. That is legal: groups are formed over "
        "the whole model. "
        "In vLLM issue 63505 aligning the split (23,23,18 to 24,24,16) did not help, so this is no "
        f"evidence ({_INCIDENT})",
    )


def _empty_group(plan: Plan) -> Iterator[Finding]:
    for stage in plan.stages:
        empty = [index for index, width in enumerate(stage.group_widths) if not width]
        if empty and stage.bytes_per_block:
            names = words.listing(f"{index} ({plan.groups[index].first.kind})" for index in empty)
            yield Finding(
                "empty_group",
                "warning",
                f"stage {stage.index} ({words.first_last(stage.layers)}) has no layer of cache group "
                f"{names}: the group "
                "keeps its place and its blocks there, and code that takes a group's first layer meets "
                "an empty list",
                ("pipeline_partition",),
            )


def _padding(plan: Plan) -> Iterator[Finding]:
    pages = plan.pages
    if pages.state_padding > _WASTE:
        yield Finding(
            "page_padding",
            "warning",
            f"a state of {pages.state_bytes:,} bytes is kept in a page of {plan.page_bytes:,} bytes (a "
            "block of "
            f"{plan.block_size} tokens of attention): {percent(pages.state_padding)} of it is padding",
            ("block_size",),
        )
    for stage in plan.stages:
        if stage.padding > _WASTE and stage.bytes_per_block:
            places = stage.bytes_per_block // plan.page_bytes * len(plan.groups) if plan.page_bytes else 0
            filled = sum(stage.group_widths)
            yield Finding(
                "group_padding",
                "warning",
                f"stage {stage.index}: its widest group has {max(stage.group_widths)} layers, so its "
                "blocks have "
                f"{places} places ({len(plan.groups)} groups), and {filled} layers fill them (widths "
                f"{words.partition(stage.group_widths)}): {percent(stage.padding)} of the cache there "
                "holds nothing",
                ("pipeline_partition",),
            )


def _too_small(plan: Plan) -> Iterator[Finding]:
    if plan.refusal is not None and not plan.groups:
        yield Finding("no_cache", "error", plan.refusal)
        return
    if plan.refusal is None or "zero" in plan.refusal:
        return  # a stage without a cache has findings of its own
    if "can't be divided" in plan.refusal:
        yield Finding(
            "tensor_parallel", "error", f"{plan.refusal}: vLLM refuses to start", ("tensor_parallel_size",)
        )
        return
    yield Finding(
        "capacity_below_request",
        "error",
        f"{plan.refusal}. vLLM ends at start-up: lower --max-model-len or give the cache more memory",
        ("max_model_len", "gpu_memory_utilization"),
    )
    if plan.settings.newer_shape:
        older = replace(plan.settings, engine_version=_BEFORE)
        if make_plan(plan.shape, older).refusal is None:
            note = version_note("null_block")
            yield Finding(
                "version_null_block",
                "note",
                f"releases before {note.before} would have started with this: {note.newer} ({note.source})",
                ("engine_version",),
            )


def _prompt(plan: Plan) -> Iterator[Finding]:
    prompt = plan.settings.prompt_tokens
    if prompt is None:
        return
    if prompt > plan.max_model_len:
        yield Finding(
            "prompt_cannot_fit",
            "error",
            f"a prompt of {prompt:,} tokens is longer than max_model_len, {plan.max_model_len:,}: vLLM "
            "answers 400",
            ("max_model_len",),
        )
    elif plan.capacity_tokens is not None and prompt > plan.capacity_tokens:
        yield Finding(
            "prompt_cannot_fit",
            "error",
            f"a prompt of {prompt:,} tokens is longer than the cache holds, {plan.capacity_tokens:,} tokens "
            f"({plural(plan.num_blocks or 0, 'block')} / {plan.blocks_per_request} x {plan.max_model_len:,})",
            ("max_model_len",),
        )


def _memory(plan: Plan) -> Iterator[Finding]:
    settings = plan.settings
    if settings.gpu_memory is None:
        return
    for stage in plan.stages:
        memory = settings.gpu_memory[stage.index if len(settings.gpu_memory) > 1 else 0]
        usable = int(memory * settings.share)
        left = usable - stage.weights.total - settings.overhead
        sum_text = (
            f"{size(usable)} usable ({size(memory)} x {settings.share:g}) - "
            f"{size(stage.weights.total)} of weights "
            f"- {size(settings.overhead)} for activations and graphs = {size(left)} for the cache"
        )
        if left <= 0:
            yield Finding(
                "oom_likely",
                "error",
                f"stage {stage.index}: {sum_text}. Out of memory is to be expected, which is no memory fault",
                ("gpu_memory_utilization", "pipeline_partition"),
            )
        elif left < _TIGHT * memory:
            yield Finding(
                "oom_likely",
                "warning",
                f"stage {stage.index}: {sum_text}, less than {percent(_TIGHT)} of the GPU: an allocation "
                "may fail when it is "
                "busy, which is no memory fault",
                ("gpu_memory_utilization",),
            )
        if settings.blocks is not None and settings.blocks * stage.bytes_per_block > left > 0:
            yield Finding(
                "blocks_exceed_memory",
                "error",
                f"stage {stage.index}: {settings.blocks:,} blocks of {stage.bytes_per_block:,} bytes are "
                f"{size(settings.blocks * stage.bytes_per_block)}, and {sum_text}: out of memory is to be "
                "expected",
                ("gpu_memory_utilization",),
            )
    if not plan.weights.measured:
        yield Finding(
            "memory_estimated",
            "note",
            f"weights are counted from the configuration, and {size(settings.overhead)} (--overhead) "
            "stand for activations "
            "and graphs: the engine measures both, so its number of blocks will differ by a few percent",
        )


_RULES: tuple[Callable[[Plan], Iterator[Finding]], ...] = (
    _unknown_family,
    _empty_stage,
    _too_small,
    _prompt,
    _memory,
    _unbalanced,
    _cut_period,
    _empty_group,
    _padding,
)
