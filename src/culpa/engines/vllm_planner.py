"""Asks vLLM itself: the same numbers through the engine's own planning code, and every difference from ours.

One process plans any number of cases. A case is a dictionary of plain numbers: the layers with their kind, the
attention and state shapes, partition, ranks, dtypes, mode, memory for each stage. The child computes stages,
block size, pages, groups and capacity with vLLM's functions; `differences` compares them with a plan.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from culpa.layout import Plan
from culpa.layout.engine import find_backend
from culpa.layout.pages import Entry, cache_dtype, drafting_layers, mamba_mode, model_dtype
from culpa.layout.settings import DEFAULT_BATCH_TOKENS, DEFAULT_BLOCK
from culpa.layout.shape import LayerShape
from culpa.layout.storage import placements, shared_tensors

_TIMEOUT = 600.0


class NoEngine(Exception):
    """vLLM can't be asked; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the engine said of one plan. `differences` is empty where both agree."""

    engine_version: str
    differences: tuple[str, ...]


def verify(plans: Sequence[Plan], python: str) -> list[Verification]:
    """Plan all of them with the vLLM of this Python. Raises NoEngine where that can't be done."""
    cases = [case_of(plan, index) for index, plan in enumerate(plans)]
    answer = ask(cases, python)
    results = {result["id"]: result for result in answer["results"]}
    return [
        Verification(answer["version"], tuple(differences(plan, results[index])))
        for index, plan in enumerate(plans)
    ]


def ask(cases: Sequence[Mapping[str, Any]], python: str) -> dict[str, Any]:
    """The child's answer for these cases. Raises NoEngine."""
    script = resources.files("culpa.engines").joinpath("vllm_planner_child.py")
    environment = {name: text for name, text in os.environ.items() if name != "VLLM_PP_LAYER_PARTITION"}
    with resources.as_file(script) as path:
        # -P: modules that lie beside the script are ours, not the engine's.
        command = [python, "-P", str(path)]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(list(cases)),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                env=environment,
                check=False,
            )
        except OSError as error:
            raise NoEngine(f"{python}: can't be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise NoEngine(f"{python}: vLLM did not answer within {_TIMEOUT:.0f} seconds") from None
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        if re.search(r"No module named '?vllm", last):
            raise NoEngine(f"{python}: vLLM can't be imported there")
        raise NoEngine(f"{python}: vLLM's planner could not be asked: {last.strip()[:300]}")
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def choose_python(asked: str | None, launch_python: Path | None) -> str:
    """The Python to ask: the one that was named, that of the launch, or the one that runs culpa."""
    if asked is not None:
        found = shutil.which(asked)
        if found is None:
            raise NoEngine(f"--python {asked}: no such program")
        return found
    return str(launch_python) if launch_python is not None else sys.executable


def case_of(plan: Plan, number: int) -> dict[str, Any]:
    """The plan's inputs as the child takes them."""
    shape, settings = plan.shape, plan.settings
    attention = shape.attention
    state = shape.state
    tp = settings.tensor_parallel_size
    backend = find_backend(settings.attention_backend)
    sizes = [(DEFAULT_BLOCK, True)]
    if backend is not None:
        sizes = [(backend.multiple, True)] if backend.multiple else [(size, False) for size in backend.sizes]
    ssm = settings.mamba_ssm_cache_dtype
    if ssm == "auto" and state is not None and state.dtype is not None:
        ssm = state.dtype  # the model's own default, as its configuration class sets it
    v2 = settings.v2_runner if settings.v2_runner is not None else settings.newer_shape
    stages = settings.pipeline_parallel_size
    asynchronous = settings.async_scheduling if settings.async_scheduling is not None else (v2 or stages == 1)
    keys = cache_dtype(shape, settings)
    return {
        "id": number,
        "layers": [_layer(layer, index) for index, layer in enumerate(shape.layers)],
        "drafting": [
            _layer(layer, len(shape.layers) + index)
            for index, layer in enumerate(drafting_layers(shape, settings))
        ],
        "attention": None
        if attention is None
        else {
            "kv_heads": 1 if attention.latent else max(1, attention.kv_heads // tp),
            "head_dim": attention.head_dim,
            "latent": attention.latent,
        },
        "state": None if state is None else {"kind": state.kind, "numbers": dict(state.numbers)},
        "pipeline": stages,
        "partition": ",".join(map(str, settings.partition)) if settings.partition is not None else None,
        "tensor_parallel": tp,
        "dtype": model_dtype(shape, settings),
        "kv_cache_dtype": settings.kv_cache_dtype
        if settings.kv_cache_dtype != "auto" or not shape.fp8_cache
        else keys,
        "mamba_cache_dtype": settings.mamba_cache_dtype,
        "mamba_ssm_cache_dtype": ssm,
        "mamba_chunk": shape.mamba_chunk,
        "block_size": plan.pages.asked_block,
        "kernel_blocks": sizes,
        "mode": mamba_mode(settings) if shape.hybrid else "none",
        "speculative_tokens": settings.speculative_tokens,
        "blocks": settings.blocks,
        "memory": [stage.available if stage.available is not None else 1 << 50 for stage in plan.stages],
        "max_model_len": shape.context_tokens if settings.max_model_len == -1 else plan.max_model_len,
        "fit_length": settings.max_model_len == -1,
        "hybrid_manager": settings.hybrid_manager,
        "max_num_batched_tokens": settings.max_num_batched_tokens or DEFAULT_BATCH_TOKENS,
        "async_scheduling": asynchronous,
        "v2_runner": v2,
    }


def _layer(layer: LayerShape, index: int) -> dict[str, Any]:
    kind = None
    if layer.attention is not None:
        kind = "latent" if layer.attention.latent else "full"
        kind = {"sliding_attention": "sliding", "chunked_attention": "chunked"}.get(layer.kind, kind)
    return {
        "index": index,
        "attention": kind,
        "window": layer.window or layer.chunk,
        "state": layer.state is not None,
    }


def differences(plan: Plan, result: Mapping[str, Any]) -> list[str]:
    """Where the engine's result differs from the plan, each as a sentence."""
    error = result.get("error")
    if error is not None:
        return [] if plan.refusal is not None else [f"the engine refuses ({error}), the plan does not"]
    if plan.refusal is not None:
        return [f"the plan is refused ({plan.refusal}), the engine takes it"]
    found: list[str] = []

    def compare(what: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            found.append(f"{what}: {ours} here, {theirs} in the engine")

    compare("stages", [[stage.layers.start, stage.layers.stop] for stage in plan.stages], result["stages"])
    compare("block size", plan.block_size, result["block_size"])
    compare("max_model_len", plan.max_model_len, result["max_model_len"])
    compare("groups", _groups(plan), result["groups"])
    # A group whose layers differ in their pages is counted by one of them.
    compare("pages", [group.first.page_bytes for group in plan.groups], result["pages"])
    compare("blocks per request", list(plan.per_group), result["per_request"])
    if any(stage.available is not None for stage in plan.stages) or plan.settings.blocks is not None:
        compare("blocks", plan.num_blocks, result["num_blocks"])
        compare("capacity", plan.capacity_tokens, result["capacity"])
        compare("storage", _storage(plan), result["storage"])
    return found


def _storage(plan: Plan) -> list[list[list[Any]]]:
    """Where the cache of each stage lies, in the shape of the plan's release."""
    if plan.settings.newer_shape:
        return [
            [
                [_names(p.entries), p.layer_stride, p.block_stride, p.offset, p.size]
                for p in placements(plan, stage)
            ]
            for stage in plan.stages
        ]
    return [
        [[_names(tensor.shared_by), tensor.size] for tensor in shared_tensors(plan, stage)]
        for stage in plan.stages
    ]


def _groups(plan: Plan) -> list[list[list[str]]]:
    """Names of the layers of each group on each stage."""
    last = len(plan.stages) - 1
    return [
        [_names(group.on(stage.layers, stage.index == last)) for group in plan.groups]
        for stage in plan.stages
    ]


def _names(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.layer}.{'state' if entry.kind == 'state' else 'attention'}" for entry in entries]
