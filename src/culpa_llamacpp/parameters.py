"""Sets options on the parameter object of the xllamacpp wheel."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from culpa_llamacpp.options import FALSE, TRUE, BadArgument, Setting

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
# One thread: on shared or busy cores two of llama.cpp's threads wait for each other by spinning, and a token
# that takes 30 ms with one thread was seen to take 5.6 s with two. A user's -t wins.
THREADS = 1
VERBOSE = 2**31 - 1


def set_defaults(params: Any, model: Path | None) -> None:
    """What llama-server sets, where the wheel's own defaults differ from it, and the embedded model."""
    params.n_parallel = -1
    params.port = 8080
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    if model is not None:
        params.model.path = str(model)


def apply_settings(params: Any, settings: Iterable[Setting], library: Any) -> None:
    """Sets every option on `xllamacpp.CommonParams`; `library` is the module. Raises BadArgument."""
    batch_threads_given = False
    for setting in settings:
        option = setting.option
        try:
            value = _KINDS[option.kind](setting.text, library)
        except (ValueError, ZeroDivisionError, OSError) as error:
            raise BadArgument(f'error while handling argument "{setting.word}": {error}') from None
        for target in option.target.split():
            _set(params, target, value)
        batch_threads_given |= option.target == "cpuparams_batch.n_threads"
        if option.target == "cpuparams.n_threads" and not batch_threads_given:
            params.cpuparams_batch.n_threads = value  # as llama-server: same as --threads unless given


def _set(params: Any, target: str, value: Any) -> None:
    *path, last = target.split(".")
    for part in path:
        params = getattr(params, part)
    setattr(params, last, value)


def _integer(text: str, library: Any) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f'invalid value: "{text}"') from None


def _float(text: str, library: Any) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'invalid value: "{text}"') from None


def _cache_type(text: str, library: Any) -> Any:
    if text not in CACHE_TYPES:
        raise ValueError(f"Unsupported cache type: {text}")
    return getattr(library.ggml_type, f"GGML_TYPE_{text.upper()}")


def _flash_attn(text: str, library: Any) -> Any:
    lowered = text.lower()
    if lowered in TRUE:
        name = "ENABLED"
    elif lowered in FALSE:
        name = "DISABLED"
    elif lowered in ("auto", "-1"):
        name = "AUTO"
    else:
        raise ValueError(f"error: unknown value for --flash-attn: '{text}'")
    return getattr(library.llama_flash_attn_type, f"LLAMA_FLASH_ATTN_TYPE_{name}")


def _on_off(text: str, library: Any) -> bool:
    lowered = text.lower()
    if lowered not in TRUE | FALSE:
        raise ValueError(f"error: unknown value for --fit: '{text}'")
    return lowered in TRUE


def _gpu_layers(text: str, library: Any) -> int:
    return {"auto": -1, "all": -2}.get(text) or _integer(text, library)


def _parallel(text: str, library: Any) -> int:
    value = _integer(text, library)
    if value == 0 or value < -1:
        raise ValueError("error: invalid value for n_parallel")
    return value


def _spec_types(text: str, library: Any) -> list[Any]:
    types: list[Any] = []
    for name in text.split(","):
        member = f"COMMON_SPECULATIVE_TYPE_{name.strip().upper().replace('-', '_')}"
        if member.endswith("_COUNT") or not hasattr(library.common_speculative_type, member):
            raise ValueError(f"unknown speculative type: {name}")
        types.append(getattr(library.common_speculative_type, member))
    return types


def _member(enumeration: str, prefix: str, **names: str) -> Callable[[str, Any], Any]:
    def convert(text: str, library: Any) -> Any:
        if text not in names:
            raise ValueError("invalid value")
        return getattr(getattr(library, enumeration), f"{prefix}_{names[text]}")

    return convert


_KINDS: dict[str, Callable[[str, Any], Any]] = {
    "text": lambda text, library: text,
    "ignored": lambda text, library: text,
    "int": _integer,
    "float": _float,
    "reciprocal": lambda text, library: 1.0 / _float(text, library),
    "seed": lambda text, library: _integer(text, library) % 2**32,
    "threads": _integer,
    "verbose": lambda text, library: VERBOSE,
    "file": lambda text, library: Path(text).read_text(encoding="utf-8"),
    "list": lambda text, library: text.split(","),
    "set": lambda text, library: set(text.split(",")),
    "switch": lambda text, library: text == "on",
    "inverse": lambda text, library: text != "on",
    "on_off": _on_off,
    "cache_type": _cache_type,
    "flash_attn": _flash_attn,
    "gpu_layers": _gpu_layers,
    "parallel": _parallel,
    "spec_types": _spec_types,
    "load_mode": _member(
        "llama_load_mode",
        "LLAMA_LOAD_MODE",
        **{
            "auto": "AUTO",
            "none": "NONE",
            "mmap": "MMAP",
            "mlock": "MLOCK",
            "mmap+mlock": "MMAP_MLOCK",
            "dio": "DIRECT_IO",
        },
    ),
    "split_mode": _member(
        "llama_split_mode", "LLAMA_SPLIT_MODE", none="NONE", layer="LAYER", row="ROW", tensor="TENSOR"
    ),
    "rope_scaling": _member(
        "llama_rope_scaling_type", "LLAMA_ROPE_SCALING_TYPE", none="NONE", linear="LINEAR", yarn="YARN"
    ),
    "pooling": _member(
        "llama_pooling_type",
        "LLAMA_POOLING_TYPE",
        none="NONE",
        mean="MEAN",
        cls="CLS",
        last="LAST",
        rank="RANK",
    ),
    "numa": _member(
        "ggml_numa_strategy",
        "GGML_NUMA_STRATEGY",
        distribute="DISTRIBUTE",
        isolate="ISOLATE",
        numactl="NUMACTL",
    ),
    "reasoning": _member(
        "common_reasoning_format",
        "COMMON_REASONING_FORMAT",
        **{"none": "NONE", "auto": "AUTO", "deepseek": "DEEPSEEK", "deepseek-legacy": "DEEPSEEK_LEGACY"},
    ),
}
