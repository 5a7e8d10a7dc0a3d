"""Reads what a layout needs out of a vLLM launch, or out of a model and flags spelled like those of a launch."""

import difflib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from culpa.engines.arguments import Grammar, mentions
from culpa.engines.catalogue import embedded_catalogue
from culpa.engines.checkpoint import tensor_sizes
from culpa.engines.errors import BadLaunch
from culpa.engines.simple_yaml import NotSimple
from culpa.engines.vllm_command import find_model, find_server, with_config_file
from culpa.engines.vllm_install import find_installation, find_interpreter
from culpa.engines.vllm_machine import cpu_flags
from culpa.engines.vllm_model import find_model_folder
from culpa.layout import BadLayout, Settings, parse_partition
from culpa.layout.weights import TensorSize
from culpa.model import Launch

_MOST_BYTES = 64 << 20
_CPU_BLOCK = 128
_SUFFIXES = {"k": 1000, "m": 1000**2, "g": 1000**3, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# Flags that change the plan and are not computed here.
_NOT_MODELLED = (
    "--decode-context-parallel-size", "-dcp", "--prefill-context-parallel-size", "-pcp", "--cpu-offload-gb",
    "--hf-overrides", "--hf-config-path", "--kv-transfer-config", "--kv-cache-dtype-skip-layers",
)  # fmt: skip
_SWITCHES = {
    "--enable-prefix-caching": ("prefix_caching", True),
    "--no-enable-prefix-caching": ("prefix_caching", False),
    "--disable-hybrid-kv-cache-manager": ("hybrid_manager", False),
    "--no-disable-hybrid-kv-cache-manager": ("hybrid_manager", True),
    "--async-scheduling": ("async_scheduling", True),
    "--no-async-scheduling": ("async_scheduling", False),
}


@dataclass(frozen=True, slots=True)
class LayoutInput:
    """What a layout is computed from: the parsed config.json, sizes of tensors if the weights are here, settings."""

    config: Any
    settings: Settings
    origin: str
    tensors: Mapping[str, TensorSize] | None = None
    python: Path | None = None


def launch_input(launch: Launch, surrounding: Mapping[str, str] | None = None) -> LayoutInput:
    """What the launch of a vLLM server says. Raises BadLaunch or BadLayout."""
    program = find_server(launch.argv)
    if program is None:
        raise BadLaunch(
            f"{launch.argv[0]}: layout reads launches of vLLM's server (vllm serve MODEL ...), and models"
        )
    start = program.arguments
    try:
        launch = with_config_file(launch, start)
    except NotSimple as error:
        raise BadLaunch(f"{error}: not understood here; give its settings as flags") from None
    environment = launch.environment(surrounding if surrounding is not None else os.environ)
    model = find_model(launch.argv, start, _grammar())
    if model is None:
        raise BadLaunch("the launch names no model (vllm serve MODEL, or --model MODEL)")
    settings = flag_settings(launch.argv[start:], environment)
    installation = find_installation(launch.argv[:start], environment)
    version = _version(installation.version)
    if version is not None:
        settings = replace(settings, engine_version=version)
    if installation.cpu_build:
        settings = _on_cpu(settings, environment)
    found = model_input(model, settings, launch.cwd, environment)
    return replace(found, python=find_interpreter(launch.argv[:start], environment))


def model_input(
    model: str,
    settings: Settings,
    cwd: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> LayoutInput:
    """A folder, a config.json, or a hub name that lies in the local cache. Raises BadLaunch or BadLayout."""
    surrounding = environment if environment is not None else os.environ
    path = Path(cwd or ".") / Path(model).expanduser()
    if path.is_file():
        return LayoutInput(_read_json(path, model), settings, str(path))
    folder = find_model_folder(model, cwd, surrounding)
    if folder is None:
        raise BadLaunch(f"model {model}: no such folder or config.json (nor a model in the local hub cache)")
    file = folder / "config.json"
    if not file.is_file():
        raise BadLaunch(f"model {model}: the folder has no config.json")
    return LayoutInput(_read_json(file, model), settings, str(file), tensors=tensor_sizes(folder))


def flag_settings(words: Sequence[str], environment: Mapping[str, str], strict: bool = False) -> Settings:
    """Settings from flags as vLLM spells them, and from its variables.

    With `strict` a word that is no flag of a layout is refused; in a launch it is somebody else's. Raises
    BadLayout for a value that is none.
    """
    if strict:
        _refuse_unknown(words)
    grammar = _grammar()
    changes: dict[str, Any] = {}
    for flags, (name, convert) in _VALUED.items():
        found = mentions(words, 0, grammar, valued=flags)
        if found:
            changes[name] = convert(flags[0], found[-1].value)
    found_switches = mentions(words, 0, grammar, switches=_SWITCHES)
    for mention in found_switches:
        name, state = _SWITCHES[grammar.spelled(mention.flag)]
        changes[name] = state
    changes.update(_speculative(words, grammar))
    changes.update(_variables(environment, changes))
    beyond = [
        mention.flag
        for mention in mentions(words, 0, grammar, valued=_NOT_MODELLED)
        if mention.value not in (None, "0", "1")
    ]
    layout = environment.get("VLLM_KV_CACHE_LAYOUT", "")
    if layout.startswith("B"):
        beyond.append(f"VLLM_KV_CACHE_LAYOUT={layout}")
    return Settings(**changes, not_modelled=tuple(dict.fromkeys(beyond)))


def _on_cpu(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """What vLLM's build for machines without a GPU makes of the same settings (its `platforms/cpu.py`)."""
    space = environment.get("VLLM_CPU_KVCACHE_SPACE", "")
    memory = (int(space) << 30,) if space.isdigit() and int(space) else settings.kv_memory
    # Where the processor can, states of Gated DeltaNet are kept in float32 unless something else was asked for.
    fast = "avx512_bf16" in cpu_flags()
    ssm = settings.mamba_ssm_cache_dtype
    return replace(
        settings,
        default_block=_CPU_BLOCK,
        mamba_ssm_cache_dtype="float32" if fast and ssm == "auto" else ssm,
        attention_backend=settings.attention_backend or "CPU_ATTN",
        async_scheduling=False,
        v2_runner=False,
        kv_memory=memory if settings.blocks is None else None,
    )


def _variables(environment: Mapping[str, str], flags: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if partition := environment.get("VLLM_PP_LAYER_PARTITION"):
        found["partition"] = parse_partition(partition)
    runner = environment.get("VLLM_USE_V2_MODEL_RUNNER")
    if runner in ("0", "1"):
        found["v2_runner"] = runner == "1"
    backend = environment.get("VLLM_ATTENTION_BACKEND")
    if backend and "attention_backend" not in flags:
        found["attention_backend"] = backend
    return found


def _speculative(words: Sequence[str], grammar: Grammar) -> dict[str, Any]:
    found = mentions(words, 0, grammar, valued=("--speculative-config", "-sc"))
    if not found or not found[-1].value:
        return {}
    try:
        config = json.loads(found[-1].value)
    except (ValueError, RecursionError):
        raise BadLayout(f"--speculative-config {found[-1].value[:80]}: give a JSON object") from None
    if not isinstance(config, dict):
        raise BadLayout("--speculative-config: give a JSON object")
    tokens = config.get("num_speculative_tokens", 1)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise BadLayout("--speculative-config: num_speculative_tokens should be a whole number")
    return {"speculative_tokens": tokens, "speculative_method": str(config.get("method") or "draft_model")}


def whole(flag: str, text: str | None) -> int:
    """`4096`, or `128k` and `128K` as vLLM takes them. Raises BadLayout."""
    number, unit = (text[:-1], _SUFFIXES[text[-1]]) if text and text[-1] in _SUFFIXES else (text or "", 1)
    try:
        value = float(number) * unit if unit > 1 else int(number)
    except ValueError:
        raise BadLayout(f"{flag} {text}: give a whole number") from None
    if value != int(value) or abs(value) > 1 << 62:
        raise BadLayout(f"{flag} {text}: give a whole number")
    return int(value)


def _length(flag: str, text: str | None) -> int:
    return -1 if text in ("auto", "-1") else whole(flag, text)


def _share(flag: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise BadLayout(f"{flag} {text}: give a number between 0 and 1") from None


def _text(flag: str, text: str | None) -> str:
    if not text:
        raise BadLayout(f"{flag}: a value is missing")
    return text


def _mode(flag: str, text: str | None) -> str:
    if text not in ("none", "all", "align"):
        raise BadLayout(f"{flag} {text}: give none, all or align")
    return text


def _memory(flag: str, text: str | None) -> tuple[int, ...]:
    return (whole(flag, text),)


_VALUED: dict[tuple[str, ...], tuple[str, Callable[[str, str | None], Any]]] = {
    ("--pipeline-parallel-size", "-pp"): ("pipeline_parallel_size", whole),
    ("--tensor-parallel-size", "-tp"): ("tensor_parallel_size", whole),
    ("--max-model-len",): ("max_model_len", _length),
    ("--block-size",): ("block_size", whole),
    ("--attention-backend",): ("attention_backend", _text),
    ("--dtype",): ("dtype", _text),
    ("--quantization", "-q"): ("quantization", _text),
    ("--kv-cache-dtype",): ("kv_cache_dtype", _text),
    ("--mamba-cache-dtype",): ("mamba_cache_dtype", _text),
    ("--mamba-ssm-cache-dtype",): ("mamba_ssm_cache_dtype", _text),
    ("--mamba-cache-mode",): ("mamba_cache_mode", _mode),
    ("--max-num-batched-tokens",): ("max_num_batched_tokens", whole),
    ("--num-gpu-blocks-override",): ("blocks", whole),
    ("--kv-cache-memory-bytes", "--kv-cache-memory"): ("kv_memory", _memory),
    ("--gpu-memory-utilization",): ("utilization", _share),
}


def _grammar() -> Grammar:
    engine = embedded_catalogue("vllm").engine
    flags = [flag for names in _VALUED for flag in names]
    return Grammar(engine.equals, engine.underscores, frozenset({*engine.valued, *flags, *_NOT_MODELLED}))


def _refuse_unknown(words: Sequence[str]) -> None:
    grammar = _grammar()
    valued = {flag for names in _VALUED for flag in names} | {"--speculative-config", "-sc", *_NOT_MODELLED}
    index = 0
    while index < len(words):
        flag, glued = grammar.split(words[index])
        if flag in valued:
            index += 1 if glued is not None else 2
        elif flag in _SWITCHES:
            index += 1
        elif flag.startswith("-"):
            near = difflib.get_close_matches(flag, [*valued, *_SWITCHES], n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise BadLayout(f"{flag}: no option of culpa layout{hint}; see culpa layout --help")
        else:
            raise BadLayout(f"{words[index]}: one model at a time; a launch command goes behind --")


def _version(text: str | None) -> tuple[int, ...] | None:
    numbers = (text or "").split("+")[0].split(".")[:3]
    return (
        tuple(int(part) for part in numbers) if numbers and all(part.isdigit() for part in numbers) else None
    )


def _read_json(path: Path, name: str) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadLaunch(f"model {name}: {path.name} is too large for a configuration")
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise BadLaunch(f"model {name}: {path.name} is no JSON, so no configuration of a model") from None
    except OSError as error:
        raise BadLaunch(f"model {name}: {path.name} can't be read: {error.strerror}") from None
