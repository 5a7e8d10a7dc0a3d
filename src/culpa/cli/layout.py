"""`culpa layout`: what a partition does to a model's layers, caches and memory, before anything is launched."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culpa.engines.vllm_layout import LayoutInput
    from culpa.layout import Explanation, Finding, Plan, Settings

_HELP = """What a launch does to a model's layers and caches, before anything is launched.

MODEL is a folder or a config.json (no weights are needed), followed by flags as vLLM spells them: -pp, -tp,
--max-model-len, --block-size, --mamba-cache-mode, --kv-cache-dtype, --speculative-config and so on. Behind -- a whole
launch command is read instead. `culpa layout compare MODEL --partition A --partition B` puts splits side by side.

Exit code: 0 nothing stands against the launch, 1 the engine would refuse it or die (or its own code differs), 2 bad
input.
"""


def layout(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[compare] MODEL [FLAGS]... | -- COMMAND...",
            help="The model and vLLM's flags, or the command that starts the engine.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N,...",
            help="Layers of each pipeline stage; auto: the engine's own; aligned: whole periods. Repeat to compare.",
        ),
    ] = None,
    gpu_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Memory of a GPU (24GB, 80GiB), or one for each stage with commas."
        ),
    ] = None,
    kv_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Memory for the cache on each GPU, or one for each stage with commas."
        ),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of cache blocks, as the engine printed it or is told."),
    ] = None,
    overhead: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="What activations and graphs take.", show_default="2GiB"),
    ] = None,
    capacity: Annotated[
        list[int] | None,
        typer.Option(
            metavar="TOKENS",
            help="With compare: a capacity that the engine printed, one for each split, explained.",
        ),
    ] = None,
    prompt_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="A prompt of this length: does it fit?", min=1)
    ] = None,
    engine_version: Annotated[
        str | None,
        typer.Option(
            metavar="X.Y.Z", help="The vLLM release to plan for.", show_default="the launch's, or 0.32.0"
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify-with-engine", help="Ask vLLM's own planning code too, and report every difference."
        ),
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="The Python that has vLLM.", show_default="the launch's, or this one"
        ),
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the picture as SVG.")] = None,
    language: Annotated[Literal["en", "zh"], typer.Option("--lang", help="Language of the labels.")] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, schema culpa.layout/1.")] = False,
) -> int:
    from culpa.cli.errors import bad_layout

    with bad_layout():
        given = list(words or ())
        comparing = bool(given) and given[0] == "compare"
        found = _input(given[1:] if comparing else given)
        changes = _memory(gpu_memory, kv_memory, blocks, overhead)
        if prompt_tokens is not None:
            changes["prompt_tokens"] = prompt_tokens
        if engine_version is not None:
            changes["engine_version"] = _version(engine_version)
        settings = replace(found.settings, **_consistent(found.settings, changes))
        splits = partition or []
        _check_use(comparing, splits, capacity or [])
        plans, findings = _plans(found, settings, splits, comparing)
        explanation = _explained(plans, capacity or [])
        answers, verified = _verification(plans, verify, python, found)
        if svg is not None:
            _write_svg(svg, plans, findings, explanation, language)
        _show(plans, findings, explanation, verified, language, as_json)
        grave = any(finding.level == "error" for each in findings for finding in each)
        return 1 if grave or any(answers) else 0


layout.__doc__ = _HELP


def _input(words: "Sequence[str]") -> "LayoutInput":
    """The model and its settings, from a model with flags or from a launch command."""
    from culpa.engines import parse_command
    from culpa.engines.vllm_command import find_server
    from culpa.engines.vllm_layout import flag_settings, launch_input, model_input
    from culpa.engines.vllm_model import is_hub_name
    from culpa.layout import BadLayout

    if not words:
        raise typer.BadParameter("give a MODEL (a folder or config.json), or a launch command behind --")
    if len(words) > 1 and not words[0].startswith("-") and not Path(words[0]).exists():
        launch = parse_command(tuple(words))
        if find_server(launch.argv) is not None or launch.env:
            return launch_input(launch)
        if not is_hub_name(words[0]):
            raise BadLayout(f"{words[0]}: no folder, no config.json, and no launch of vLLM's server")
    if words[0].startswith("-"):
        raise typer.BadParameter(f"{words[0]}: name the MODEL before the engine's flags")
    return model_input(words[0], flag_settings(words[1:], os.environ, strict=True))


def _memory(gpu: str | None, kv: str | None, blocks: int | None, overhead: str | None) -> dict[str, Any]:
    from culpa.cli.sizes import sizes

    changes: dict[str, Any] = {}
    if gpu is not None:
        changes["gpu_memory"] = sizes("--gpu-memory", gpu)
    if kv is not None:
        changes["kv_memory"] = sizes("--kv-memory", kv)
    if blocks is not None:
        changes["blocks"] = blocks
    if overhead is not None:
        taken = sizes("--overhead", overhead)
        if len(taken) > 1:
            raise typer.BadParameter(f"--overhead {overhead}: give one size for all stages")
        changes["overhead"] = taken[0]
    return changes


def _consistent(settings: "Settings", changes: dict[str, Any]) -> dict[str, Any]:
    """What the command line says of memory replaces what the launch says of it, where both can't hold."""
    if "blocks" in changes and "kv_memory" not in changes and settings.kv_memory is not None:
        return {**changes, "kv_memory": None}
    if "kv_memory" in changes and "blocks" not in changes and settings.blocks is not None:
        return {**changes, "blocks": None}
    return changes


def _version(text: str) -> tuple[int, ...]:
    parts = text.removeprefix("v").split(".")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() and len(part) < 6 for part in parts):
        raise typer.BadParameter(f"--engine-version {text}: give a release such as 0.32.0")
    return tuple(int(part) for part in parts)


def _check_use(comparing: bool, splits: "Sequence[str]", capacities: "Sequence[int]") -> None:
    if comparing and len(splits) < 2:
        raise typer.BadParameter("compare takes two or more --partition")
    if not comparing and len(splits) > 1:
        raise typer.BadParameter("several --partition: say culpa layout compare MODEL ...")
    if capacities and (not comparing or len(capacities) != 2 or len(splits) != 2):
        raise typer.BadParameter("--capacity is given twice, with compare and two --partition")


def _plans(
    found: "LayoutInput", settings: "Settings", splits: "Sequence[str]", comparing: bool
) -> "tuple[list[Plan], list[tuple[Finding, ...]]]":
    from culpa.layout import find, make_plan, read_shape

    shape = read_shape(found.config)
    if not splits:
        plans = [make_plan(shape, settings, found.tensors)]
    else:
        stages = _stages(splits, settings)
        wanted = [_split(text, len(shape.layers), stages, shape.period) for text in splits]
        plans = [
            make_plan(shape, replace(settings, pipeline_parallel_size=stages, partition=split), found.tensors)
            for split in wanted
        ]
    assert comparing or len(plans) == 1
    return plans, [find(plan) for plan in plans]


def _stages(splits: "Sequence[str]", settings: "Settings") -> int:
    """The number of stages: as the launch says, or as the splits have parts."""
    from culpa.layout import BadLayout, parse_partition

    lengths = {len(parse_partition(text)) for text in splits if text not in ("auto", "aligned")}
    if settings.pipeline_parallel_size > 1 or not lengths:
        return settings.pipeline_parallel_size
    if len(lengths) > 1:
        raise BadLayout(
            f"the partitions have {' and '.join(map(str, sorted(lengths)))} stages: say which with -pp"
        )
    return lengths.pop()


def _split(text: str, layers: int, stages: int, period: int | None) -> tuple[int, ...] | None:
    from culpa.layout import BadLayout, parse_partition
    from culpa.layout.stages import aligned_partition, default_partition

    if text == "auto":
        return None
    if text == "aligned":
        split = aligned_partition(default_partition(layers, stages), period or 1)
        if split is None:
            raise BadLayout("--partition aligned: the layers have no period that the stages could begin at")
        return split
    return parse_partition(text)


def _explained(plans: "Sequence[Plan]", capacities: "Sequence[int]") -> "Explanation | None":
    from culpa.layout import explain

    return explain(plans[0], plans[1], (capacities[0], capacities[1])) if capacities else None


def _verification(
    plans: "Sequence[Plan]", wanted: bool, python: str | None, found: "LayoutInput"
) -> tuple[list[tuple[str, ...]], list[dict[str, Any]]]:
    """Differences of each plan, and what is said of the check."""
    from culpa.layout.engine import checked_versions

    versions = " and ".join(checked_versions())
    closed = f"closed form, checked against the planning code of vLLM {versions}"
    if not wanted:
        return [], [{"engine": None, "differences": [], "text": closed} for _ in plans]
    from culpa.engines.vllm_planner import NoEngine, choose_python, verify

    try:
        answers = verify(plans, choose_python(python, found.python))
    except NoEngine as error:
        if python is not None:
            raise typer.BadParameter(
                f"{error}; give the Python that has vLLM, or leave --python out"
            ) from None
        text = f"vLLM was not asked ({error}): {closed}"
        return [], [{"engine": None, "differences": [], "text": text} for _ in plans]
    said = []
    for plan, answer in zip(plans, answers, strict=True):
        count = len(answer.differences)
        same = "no difference" if not count else f"{count} difference{'s' if count > 1 else ''}"
        text = f"vLLM {answer.engine_version}'s own planning code was asked for the same numbers: {same}"
        if count and not answer.engine_version.startswith(plan.settings.version_text):
            text += f" (the plan is for {plan.settings.version_text}: see --engine-version)"
        said.append({"engine": answer.engine_version, "differences": list(answer.differences), "text": text})
    return [answer.differences for answer in answers], said


def _write_svg(
    path: Path,
    plans: "Sequence[Plan]",
    findings: "Sequence[Sequence[Finding]]",
    explanation: "Explanation | None",
    language: Literal["en", "zh"],
) -> None:
    from culpa.report.layout_svg import comparison_svg, layout_svg
    from culpa.written import write_whole

    if len(plans) > 1:
        picture = comparison_svg(plans, explanation, language)
    else:
        picture = layout_svg(plans[0], findings[0], language)
    try:
        write_whole(path, picture)
    except OSError as error:
        raise typer.BadParameter(f"--svg {path}: can't be written: {error.strerror}") from None


def _show(
    plans: "Sequence[Plan]",
    findings: "Sequence[Sequence[Finding]]",
    explanation: "Explanation | None",
    verified: "Sequence[dict[str, Any]]",
    language: Literal["en", "zh"],
    as_json: bool,
) -> None:
    if as_json:
        from culpa.report.layout_document import comparison_document, layout_document, layout_json

        documents = [layout_document(*each) for each in zip(plans, findings, verified, strict=True)]
        sys.stdout.write(
            layout_json(documents[0] if len(plans) == 1 else comparison_document(documents, explanation))
        )
        return
    from culpa.report.console import plain_console
    from culpa.report.layout_terminal import print_comparison, print_layout, print_verification

    console = plain_console(sys.stdout)
    if len(plans) == 1:
        print_layout(plans[0], findings[0], console, language)
    else:
        print_comparison(plans, findings, explanation, console, language)
    print_verification(verified, console)
