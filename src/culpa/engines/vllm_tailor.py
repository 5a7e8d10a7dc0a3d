"""Fits vLLM's catalogue to one launch: defaults and safe levels that depend on release, model and machine."""

from collections.abc import Callable, Mapping
from typing import Any

from culpa.engines.tables import FactorTable
from culpa.engines.vllm_setting import Setting
from culpa.layout.stages import aligned_partition, default_partition

# A fitted factor, or the reason why it is left out.
Fitted = FactorTable | str
_ARCHITECTURES_ON_V2 = (  # by default in 0.28, before V2 became the default for all
    "DeepseekV2ForCausalLM",
    "DeepseekV4ForCausalLM",
    "GraniteMoeForCausalLM",
    "Qwen2MoeForCausalLM",
)


def tailored(entry: FactorTable, setting: Setting) -> Fitted:
    """The factor as it is for this launch, or a sentence that says why it is not varied."""
    absent = _unknown_to_release(entry, setting)
    if absent is not None:
        return absent
    fit = _FITTERS.get(entry.name)
    return fit(entry, setting) if fit is not None else entry


def _unknown_to_release(entry: FactorTable, setting: Setting) -> str | None:
    release = setting.installation
    if not release.declared:
        return None
    named = [entry.flag, entry.env if entry.flag is None else None, *entry.on, *entry.off]
    if entry.json_place is not None:
        named.append(entry.json_place.flag)
    words = [
        word for word in named if word and word.startswith(("--", "VLLM_")) and not word.startswith("--no-")
    ]
    if not words or any(release.has(word) for word in words):
        return None
    return f"vLLM {release.version or 'as installed'} does not know {words[0]}"


def _changed(entry: FactorTable, **values: Any) -> FactorTable:
    return entry.model_copy(update=values)


def _execution(entry: FactorTable, setting: Setting) -> Fitted:
    now = setting.level("execution")
    if not setting.has_graphs:
        ways = {name: way for name, way in entry.levels.items() if name != "graphs"}
        return _changed(entry, levels=ways, safe=("compiled",) if now == "eager" else ("eager",))
    order = {"graphs": ("eager", "compiled"), "eager": ("graphs", "compiled")}
    return _changed(entry, safe=order.get(now, ("eager", "graphs")))


def _compilation_level(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.installation.at_least(0, 12) is False:
        place = entry.json_place
        return _changed(entry, json_place=place.model_copy(update={"key": "level"}) if place else None)
    return entry


def _optimization_level(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("optimization_level") == entry.default:
        return "at its default; execution, cuda_graph_mode and compilation_level vary what it sets"
    return entry


def _model_runner(entry: FactorTable, setting: Setting) -> Fitted:
    release = setting.installation
    default: str | None = None
    if release.at_least(0, 32):
        default = "V2"
    elif release.version is not None:
        default = "V2" if setting.model.architecture in _ARCHITECTURES_ON_V2 else "V1"
    if setting.level("model_runner") in ("V1", "V2"):
        return _changed(entry, default=default)
    if default is None:
        return "not set, and which one is the default can't be told: the installed release is not readable"
    return _changed(entry, default=default)


def _async_scheduling(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.given.get("async_scheduling") != entry.unmentioned:
        return entry
    if setting.level("model_runner") != "V2" and setting.size("pipeline_parallel_size") > 1:
        return "the V1 model runner does not schedule asynchronously with pipeline parallelism"
    return _changed(entry, default="off" if setting.installation.at_least(0, 14) is False else "on")


def _mamba_cache_mode(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("mamba_cache_mode") != "all":
        return "it follows prefix_caching: 'align' with it, 'none' without"
    return entry


def _mamba_ssm_cache_dtype(entry: FactorTable, setting: Setting) -> Fitted:
    now, release = setting.level("mamba_ssm_cache_dtype"), setting.installation
    # 0.28.0 kept it in the model's type (and died of it); 0.29.0 prints "Reset SSM cache type to float32".
    anyway = release.cpu_build and release.at_least(0, 29) is not False
    if now == "auto" and anyway and "avx512_bf16" in setting.cpu_flags:
        return "on this processor the CPU build keeps the state in float32 anyway"
    return entry


def _kv_cache_dtype(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("kv_cache_dtype") == "auto" and setting.model.fp8_cache:
        # The checkpoint itself asks for it, so leaving the flag out changes nothing.
        return _changed(entry, safe=("bfloat16",))
    return entry


def _max_num_batched_tokens(entry: FactorTable, setting: Setting) -> Fitted:
    default = setting.default_batch_tokens()
    text = setting.level("max_num_batched_tokens")
    now = int(text) if text.isdigit() else default
    smaller = max(1024, now // 2)
    if now != default:
        return _changed(entry, default=str(default), safe=(str(default),))
    if smaller >= now:
        return f"at the engine's default of {default}"
    return _changed(entry, default=str(default), safe=(str(smaller),))


def _max_num_seqs(entry: FactorTable, setting: Setting) -> Fitted:
    default = str(setting.default_seqs())
    return _changed(
        entry, default=default, safe=("1",) if setting.level("max_num_seqs") != "1" else (default,)
    )


def _chunked_prefill(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("chunked_prefill") == "on":
        return "vLLM does not support turning it off; max_num_batched_tokens varies the size of the chunks"
    return entry


def _pipeline_partition(entry: FactorTable, setting: Setting) -> Fitted:
    stages, layers, now = (
        setting.size("pipeline_parallel_size"),
        setting.model.layers,
        setting.level(entry.name),
    )
    split = [int(part) for part in now.split(",")] if now.replace(",", "").isdigit() else []
    if stages == 1:
        return entry
    if not split and layers is not None:
        split = list(default_partition(layers, stages))
    safe = ["default"]
    if setting.model.period is not None and len(split) == stages:
        aligned = aligned_partition(split, setting.model.period)
        if aligned is not None and list(aligned) != split:
            safe.append(",".join(map(str, aligned)))
    if now == "default" and len(safe) == 1:
        return "not set, and no split of the layers is known to be better than the default one"
    # In an arm with another number of stages the split of this launch means nothing.
    return _changed(entry, safe=tuple(safe), requires=(f"pipeline_parallel_size == {stages}",))


def _attention_backend(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("attention_backend") != "auto":
        return entry
    if setting.model.mla:
        return _changed(entry, safe=("TRITON_MLA",))
    return _changed(entry, safe=("TRITON_ATTN",))


def _gdn_prefill_backend(entry: FactorTable, setting: Setting) -> Fitted:
    if setting.level("gdn_prefill_backend") == "auto" and setting.gpus:
        sm = setting.gpus[0].sm
        if sm and sm.split(".")[0] not in ("9", "10", "11", "12"):
            return f"'auto' is already the Triton kernel on a GPU of compute capability {sm}"
    return entry


def _only_if_set(what: str) -> Callable[[FactorTable, Setting], Fitted]:
    def fit(entry: FactorTable, setting: Setting) -> Fitted:
        return f"not set: {what}" if setting.level(entry.name) == entry.unmentioned else entry

    return fit


_FITTERS: Mapping[str, Callable[[FactorTable, Setting], Fitted]] = {
    "execution": _execution,
    "compilation_level": _compilation_level,
    "optimization_level": _optimization_level,
    "model_runner": _model_runner,
    "async_scheduling": _async_scheduling,
    "mamba_cache_mode": _mamba_cache_mode,
    "mamba_ssm_cache_dtype": _mamba_ssm_cache_dtype,
    "kv_cache_dtype": _kv_cache_dtype,
    "max_num_batched_tokens": _max_num_batched_tokens,
    "max_num_seqs": _max_num_seqs,
    "pipeline_partition": _pipeline_partition,
    "attention_backend": _attention_backend,
    "gdn_prefill_backend": _gdn_prefill_backend,
    "block_size": _only_if_set("the engine chooses it"),
    "num_gpu_blocks_override": _only_if_set("the engine measures how many fit"),
    "chunked_prefill": _chunked_prefill,
    "cpu_kv_cache_space": _only_if_set("the engine measures how much fits"),
    "kv_cache_memory_bytes": _only_if_set("the engine measures how much fits"),
    "kv_layout": _only_if_set("the engine chooses it"),
    "dtype": _only_if_set("it follows the checkpoint, and another type changes the answers"),
}
