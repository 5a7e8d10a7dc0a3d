"""Incidents in words: what each class of failure is called, and settings and load as a person says them."""

from collections.abc import Iterable

from culpa.model import Gpu, Incident, Reading, XidSeen
from culpa.model.diagnosis import SettingValue
from culpa.report.words import listing

SYMPTOMS = {
    "cuda_illegal_access": "a GPU kernel used memory that it must not (illegal memory access)",
    "cuda_misaligned_address": "a GPU kernel used a misaligned address",
    "cuda_launch_failure": "a GPU kernel failed (launch failure or illegal instruction)",
    "cuda_error": "a CUDA call failed",
    "device_side_assert": "a GPU kernel found a value out of bounds (device-side assert)",
    "cublas_error": "a matrix library call failed (cuBLAS)",
    "cuda_oom": "GPU memory ran out",
    "host_oom_kill": "the host's kernel killed a process for its memory",
    "host_out_of_memory": "host memory ran out",
    "kv_cache_too_small": "the cache is too small for what was asked",
    "startup_memory": "too little memory is free at start",
    "hang_timeout": "the engine hangs",
    "startup_hang": "the engine hangs at start",
    "nccl_timeout": "a collective operation never ended",
    "nccl_error": "the communication between ranks failed (NCCL)",
    "triton_smem": "a Triton kernel does not fit this GPU's shared memory",
    "triton_compile": "a Triton kernel does not compile",
    "ptxas_fatal": "the GPU assembler failed (ptxas)",
    "weights_load": "the weights can't be loaded",
    "segfault": "a process crashed (segmentation fault)",
    "abort": "a process aborted",
    "gpu_hw_ecc": "GPU memory failed (uncorrectable ECC error)",
    "gpu_hw_lost": "a GPU was lost or halted",
    "gsp_timeout": "a GPU's system processor stopped answering (GSP)",
    "nan_logits": "the model computes NaN",
    "gibberish": "the output is gibberish",
    "silent_death": "a process died and said nothing",
    "engine_dead": "the engine died; why is not in this log",
    "assertion": "the program found itself in a state that it excludes",
    "exception": "a process ended with an exception",
    "startup_error": "the engine failed to start",
    "error_exit": "the engine ended with an error",
    "bad_argument": "the engine refuses an argument",
    "request_failed": "a request failed",
    "peer_gone": "a process lost its peer; why is not in this log",
}
_SETTINGS = {
    "tp": "tensor parallel {}",
    "pp": "pipeline parallel {}",
    "dp": "data parallel {}",
    "partition": "partition {}",
    "nnodes": "{} nodes",
    "spec_tokens": "{} speculative tokens",
    "kv_cache_dtype": "cache {}",
    "quantization": "quantisation {}",
    "attention_backend": "attention {}",
    "moe_backend": "MoE {}",
    "mamba_cache_mode": "mamba cache {}",
    "max_model_len": "context {}",
    "max_num_seqs": "up to {} sequences",
    "max_num_batched_tokens": "up to {} batched tokens",
    "memory_fraction": "memory fraction {}",
    "kv_cache_tokens": "cache for {} tokens",
    "cudagraph_mode": "graphs {}",
    "gpu_arch": "compute capability {}",
    "devices": "{} devices",
    "dtype": "{}",
    "executor": "executor {}",
    "split_mode": "split {}",
    "gpu_layers": "{} layers on GPUs",
    "flash_attention": "flash attention {}",
    "architecture": "{}",
}
_SWITCHES = {
    "prefix_caching": ("prefix caching on", "prefix caching off"),
    "eager": ("eager", "graphs on"),
    "spec_decode": ("speculative decoding on", "no speculative decoding"),
    "chunked_prefill": ("chunked prefill on", "chunked prefill off"),
    "async_scheduling": ("async scheduling on", "async scheduling off"),
    "expert_parallel": ("expert parallel", ""),
    "model_runner_v2": ("V2 model runner", "V1 model runner"),
    "launch_blocking": ("blocking launches", ""),
    "v1": ("", "V0 engine"),
    "lora": ("LoRA", ""),
    "hierarchical_cache": ("hierarchical cache", ""),
    "kv_transfer": ("cache connector", ""),
    "custom_all_reduce": ("", "no custom all-reduce"),
}
_LOAD = {
    "requests_running": "{} requests running",
    "requests_waiting": "{} waiting",
    "tokens_in_step": "{} tokens in the last step",
    "longest_context_tokens": "longest context {} tokens",
    "cache_usage_percent": "cache {}% full",
    "prefix_hit_percent": "prefix hits {}%",
    "prefill_tokens": "{} tokens of prefill",
    "cached_tokens": "{} of them cached",
}
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM", "tgi": "TGI"}
_MOST_LINES = 8


def what_broke(incident: Incident) -> str:
    """The class of the failure in words."""
    return SYMPTOMS.get(incident.symptom, incident.symptom.replace("_", " "))


def engine(name: str | None, version: str | None) -> str:
    """`vLLM 0.25.0`, or as much of it as is known."""
    known = _ENGINES.get(name or "", name or "")
    return " ".join(part for part in (known, version) if part)


def configuration(values: Iterable[tuple[str, SettingValue]]) -> str:
    """The settings as one line; parallel sizes of 1 and what is off by default are left out."""
    parts = [str(value) for name, value in values if name == "model"]
    for name, value in values:
        if name in ("tp", "pp", "dp") and value == 1:
            continue
        if name == "spec_decode" and isinstance(value, str):
            parts.append(f"speculative decoding ({value})")
        elif name in _SWITCHES and isinstance(value, bool):
            parts.append(_SWITCHES[name][0 if value else 1])
        elif name in _SETTINGS:
            parts.append(_SETTINGS[name].format(_number(value)))
    return ", ".join(part for part in parts if part)


def load(values: Iterable[tuple[str, int | float]]) -> str:
    """The work under way, as one line."""
    return ", ".join(_LOAD[name].format(_number(value)) for name, value in values if name in _LOAD)


def gpu(found: Gpu) -> str:
    """A GPU by bus, with what else is known of it, and how it was found."""
    known = [found.pci_bus, f"index {found.index}" if found.index is not None else None, found.uuid]
    text = ", ".join(part for part in known if part)
    return f"{text} ({found.why})" if found.why else text


def xids(found: Iterable[XidSeen]) -> list[tuple[str, list[XidSeen]]]:
    """Messages of the kernel that say the same, together: what they say, and the messages."""
    groups: dict[tuple[int, str, bool, str], list[XidSeen]] = {}
    for xid in found:
        groups.setdefault((xid.code, xid.pci_bus, xid.stale, xid.detail), []).append(xid)
    told = []
    for (code, bus, stale, detail), members in groups.items():
        kind = "stale, " if stale else "teardown, " if members[0].teardown else ""
        told.append(
            (f"{code} on {bus}: {kind}{members[0].means}" + (f"; {detail}" if detail else ""), members)
        )
    return told


def lines(numbers: Iterable[int]) -> str:
    """`line 9`, `lines 9, 17 and 18`, `lines 1 to 3`, cut where there are many."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = [f"{first}" if first == last else f"{first} to {last}" for first, last in spans[:_MOST_LINES]]
    if len(spans) > _MOST_LINES:
        shown.append(f"{len(spans) - _MOST_LINES} more places")
    noun = "line" if len(spans) == 1 and spans[0][0] == spans[0][1] else "lines"
    return f"{noun} {listing(shown)}"


def located(reading: Reading, numbers: Iterable[int]) -> list[str]:
    """Lines by file: with one file only the lines, else each file with its own."""
    by_file: dict[str, list[int]] = {}
    for number in numbers:
        name, line = reading.locate(number)
        by_file.setdefault(name, []).append(line)
    if len(reading.files) < 2:
        return [lines(found) for found in by_file.values()]
    return [f"{name}: {lines(found)}" for name, found in by_file.items()]


def _number(value: SettingValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
