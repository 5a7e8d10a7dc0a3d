"""From the command line to the engine's settings: defaults, and what can't be, in one clear line."""

import argparse
import json
import random
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culpa_lab.cli import SHIPPED
from culpa_lab.engine.cache_groups import default_partition
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.planning import unified_block_size
from culpa_lab.faults.registry import FAULTS, configured
from culpa_lab.guard import check_switch
from culpa_lab.model import ModelConfig

PARTITION_VARIABLE = "VLLM_PP_LAYER_PARTITION"
_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_LARGEST_MODEL_LENGTH = 32768


def resolve(
    arguments: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[EngineConfig, ModelConfig]:
    """The settings of a launch and the model's shape. Raises BadLaunch or BadCheckpoint."""
    if arguments.model_tag and arguments.model and arguments.model_tag != arguments.model:
        raise BadLaunch("the model is given twice: as an argument and with --model")
    folder = Path(arguments.model or arguments.model_tag or SHIPPED)
    model = ModelConfig.load(folder)
    for flag, least in (
        ("pipeline_parallel_size", 1), ("max_num_seqs", 1), ("block_size", 16), ("build", 1),
        ("max_num_batched_tokens", 1), ("max_model_len", 1), ("num_gpu_blocks_override", 2),
    ):  # fmt: skip
        value = getattr(arguments, flag)
        if value is not None and value < least:
            raise BadLaunch(f"--{flag.replace('_', '-')} must be at least {least}, not {value}")
    if arguments.build > 64:
        raise BadLaunch(f"--build must be at most 64, not {arguments.build}")
    if arguments.block_size % 16:
        raise BadLaunch(f"--block-size must be a multiple of 16, not {arguments.block_size}")
    if not 0 < arguments.gpu_memory_utilization <= 1:
        raise BadLaunch(
            f"--gpu-memory-utilization must be above 0 and at most 1, not {arguments.gpu_memory_utilization}"
        )
    if arguments.kernel_log:
        try:
            Path(arguments.kernel_log).open("a").close()
        except OSError as error:
            raise BadLaunch(
                f"--kernel-log {arguments.kernel_log} can't be written: {error.strerror}"
            ) from None
    longest = model.max_position_embeddings
    length = arguments.max_model_len or min(_LARGEST_MODEL_LENGTH, longest)
    if length > longest:
        raise BadLaunch(
            f"--max-model-len {length} is more than the model's max_position_embeddings ({longest})"
        )
    mode, sizes = _graphs(arguments)
    prefix = bool(arguments.enable_prefix_caching)
    if arguments.mamba_cache_mode == "align" and not prefix:
        raise BadLaunch(
            "--mamba-cache-mode align keeps states for the prefix cache: it needs --enable-prefix-caching"
        )
    faults = _faults(arguments.fault)
    check_switch(environment)
    config = EngineConfig(
        model=folder,
        served_model_name=arguments.served_model_name or (folder.name if folder != SHIPPED else "culpa-lab"),
        partition=_partition(model, arguments.pipeline_parallel_size, environment),
        dtype="float32" if arguments.dtype == "auto" else arguments.dtype,
        max_model_len=length,
        enforce_eager=arguments.enforce_eager,
        cudagraph_mode="NONE" if arguments.enforce_eager else mode,
        capture_sizes=sizes,
        enable_prefix_caching=prefix,
        mamba_cache_mode=arguments.mamba_cache_mode or ("align" if prefix else "none"),
        max_num_batched_tokens=_batched_tokens(arguments, length),
        max_num_seqs=arguments.max_num_seqs,
        block_size=unified_block_size(model, arguments.block_size),
        num_gpu_blocks_override=arguments.num_gpu_blocks_override,
        gpu_memory_utilization=arguments.gpu_memory_utilization,
        async_scheduling=arguments.async_scheduling,
        enable_chunked_prefill=arguments.enable_chunked_prefill,
        seed=arguments.seed,
        enable_prompt_tokens_details=arguments.enable_prompt_tokens_details,
        faults=faults,
        armed=_armed(faults, arguments.seed),
        build=arguments.build,
        kernel_log=Path(arguments.kernel_log).absolute() if arguments.kernel_log else None,
        launch_blocking=environment.get("CULPA_LAUNCH_BLOCKING", "0") not in ("", "0"),
    )
    return configured(config), model


def _partition(model: ModelConfig, stages: int, environment: Mapping[str, str]) -> tuple[int, ...]:
    layers = model.num_hidden_layers
    if stages > layers:
        raise BadLaunch(f"--pipeline-parallel-size {stages} is more than the model's {layers} layers")
    given = environment.get(PARTITION_VARIABLE, "")
    if not given:
        return default_partition(layers, stages)
    try:
        counts = tuple(int(part) for part in given.split(","))
    except ValueError:
        raise BadLaunch(f"{PARTITION_VARIABLE}={given!r} is no list of numbers such as 23,23,18") from None
    if len(counts) != stages:
        raise BadLaunch(
            f"{PARTITION_VARIABLE}={given} has {len(counts)} parts, --pipeline-parallel-size is {stages}"
        )
    if min(counts) < 1:
        raise BadLaunch(f"{PARTITION_VARIABLE}={given}: every stage needs at least one layer")
    if sum(counts) != layers:
        raise BadLaunch(
            f"{PARTITION_VARIABLE}={given} adds up to {sum(counts)}, and the model has {layers} layers"
        )
    return counts


def _graphs(arguments: argparse.Namespace) -> tuple[str, tuple[int, ...]]:
    """The mode of captured execution and the batch sizes of captured decode steps."""
    given: Any = {}
    if arguments.compilation_config:
        try:
            given = json.loads(arguments.compilation_config)
        except ValueError as error:
            raise BadLaunch(f"--compilation-config is no JSON: {error}") from None
        if not isinstance(given, dict):
            raise BadLaunch("--compilation-config must be a JSON object")
    known = {"cudagraph_mode", "cudagraph_capture_sizes"}
    if set(given) - known:
        raise BadLaunch(
            f"--compilation-config: {sorted(set(given) - known)[0]} is unknown here, only {', '.join(sorted(known))}"
        )
    mode = str(given.get("cudagraph_mode", "FULL_AND_PIECEWISE")).upper()
    if mode not in _MODES:
        raise BadLaunch(
            f"--compilation-config: cudagraph_mode must be one of {', '.join(_MODES)}, not {mode}"
        )
    sizes = arguments.cuda_graph_sizes or given.get("cudagraph_capture_sizes")
    if sizes is None:
        sizes = [size for size in (1, 2, 4, *range(8, 65, 8)) if size < arguments.max_num_seqs]
        sizes.append(min(arguments.max_num_seqs, 64))
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise BadLaunch(f"sizes of captured steps must be numbers of at least 1, not {sizes}")
    return mode, tuple(sorted({size for size in sizes if size <= arguments.max_num_seqs}))


def _batched_tokens(arguments: argparse.Namespace, length: int) -> int:
    if arguments.enable_chunked_prefill:
        return int(arguments.max_num_batched_tokens or 2048)
    given = arguments.max_num_batched_tokens or length
    if given < length:
        raise BadLaunch(
            f"max_num_batched_tokens ({given}) is smaller than max_model_len ({length}): without chunked prefill "
            "a prompt must fit into one step. Raise one, lower the other, or use --enable-chunked-prefill"
        )
    return int(given)


def _faults(given: list[str]) -> tuple[tuple[str, float], ...]:
    found = []
    for text in given:
        name, _, rate = text.partition(":")
        if name not in FAULTS:
            raise BadLaunch(f"--fault {name}: there is no such fault. `culpa-lab faults` lists them")
        try:
            share = float(rate) if rate else 1.0
        except ValueError:
            raise BadLaunch(f"--fault {text}: {rate!r} is no number") from None
        if not 0 <= share <= 1:
            raise BadLaunch(f"--fault {text}: the rate must be between 0 and 1")
        found.append((name, share))
    return tuple(found)


def _armed(faults: tuple[tuple[str, float], ...], seed: int | None) -> tuple[str, ...]:
    """Which faults this launch has: drawn once, from --seed or from the machine's randomness."""
    draw = random.Random(secrets.randbits(64) if seed is None else seed)
    return tuple(name for name, rate in faults if draw.random() < rate)
