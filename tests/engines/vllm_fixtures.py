"""What the tests of the vLLM adapter share: fake machines, model folders, installations, cut log lines."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from culpa.engines.catalogue import embedded_catalogue
from culpa.engines.command import parse_command
from culpa.engines.vllm import VllmAdapter
from culpa.host import Gpu, Machine
from culpa.model import Launch

GIB = 1 << 30
NO_GPU = Machine(gpus=(), cpus=2, memory_bytes=24 * GIB, without_gpu_reason="no NVML")


def gpus(count: int, gib: int = 24, name: str = "NVIDIA GeForce RTX 3090", sm: str = "8.6") -> Machine:
    """A machine with so many equal GPUs."""
    return Machine(
        gpus=tuple(Gpu(index, name, gib * GIB, f"0000:0{index}:00.0", sm) for index in range(count)),
        cpus=16,
        memory_bytes=128 * GIB,
    )


def model_folder(
    parent: Path, name: str = "Qwen3.8-27B", weights: int = 54_000_000_000, **changes: object
) -> Path:
    """A model folder without weights: 64 layers, every fourth with full attention, 24 heads, bf16."""
    folder = parent / name
    folder.mkdir(parents=True)
    config = {
        "architectures": ["Qwen3_5ForCausalLM"],
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "linear_num_value_heads": 48,
        "num_attention_heads": 24,
        "max_position_embeddings": 262144,
        "dtype": "bfloat16",
        **changes,
    }
    (folder / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if value is not None})
    )
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": weights}}))
    return folder


def installation(
    parent: Path, version: str = "0.32.0", distribution: str = "vllm", without: Sequence[str] = ()
) -> Path:
    """A Python environment with a `vllm` of that version, as far as its files are looked at. Gives its bin folder."""
    packages = parent / "lib" / "python3.12" / "site-packages"
    info = packages / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {distribution}\nVersion: {version}\n")
    (packages / "vllm" / "engine").mkdir(parents=True)
    (packages / "vllm" / "__init__.py").touch()
    factors = embedded_catalogue("vllm").factors
    names = {
        flag for factor in factors for flag in (factor.flag, factor.env, *factor.on, *factor.off) if flag
    }
    names |= {factor.json_place.flag for factor in factors if factor.json_place is not None}
    words = [f'"{name}"' for name in sorted({*names, "--enable-prompt-tokens-details"} - set(without))]
    (packages / "vllm" / "engine" / "arg_utils.py").write_text("\n".join(words))
    binaries = parent / "bin"
    binaries.mkdir()
    python = binaries / "python"
    python.touch(mode=0o755)
    script = binaries / "vllm"
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    return binaries


def launch_in(folder: Path, text: str) -> Launch:
    """The launch of a command line, run in a folder."""
    launch = parse_command([text])
    return Launch(launch.argv, launch.env, str(folder))


def adapter(binaries: Path, environment: Mapping[str, str] | None = None) -> VllmAdapter:
    """An adapter that looks for programs in that folder only."""
    return VllmAdapter(embedded_catalogue("vllm"), {"PATH": str(binaries), **(environment or {})})


def init_line(
    version: str = "0.32.0",
    mode: str = "VLLM_COMPILE: 3",
    graphs: str = "FULL_AND_PIECEWISE: (2, 1)",
    **changes: str,
) -> str:
    """vLLM's line with its whole configuration, cut to the parts that are read."""
    said = {
        "model": "'/models/m'",
        "speculative_config": "None",
        "dtype": "torch.bfloat16",
        "max_seq_len": "32768",
        "tensor_parallel_size": "1",
        "pipeline_parallel_size": "3",
        "data_parallel_size": "1",
        "disable_custom_all_reduce": "False",
        "quantization": "None",
        "enforce_eager": "False",
        "kv_cache_dtype": "auto",
        "device_config": "cuda",
        "structured_outputs_config": "StructuredOutputsConfig(backend='auto', reasoning_parser='')",
        "enable_prefix_caching": "True",
        "enable_chunked_prefill": "True",
        **changes,
    }
    pairs = ", ".join(f"{name}={value}" for name, value in said.items())
    return (
        f"(EngineCore pid=8001) INFO 12-01 05:36:29 [core.py:133] Initializing a V1 LLM engine (v{version}) with "
        f"config: {pairs}, compilation_config={{'mode': <CompilationMode.{mode}>, 'backend': 'inductor', "
        f"'custom_ops': ['none'], 'cudagraph_mode': <CUDAGraphMode.{graphs}>, "
        "'pass_config': {'fuse_allreduce_rms': False}}"
    )
