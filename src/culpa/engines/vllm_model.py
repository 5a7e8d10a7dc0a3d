"""What can be known of a model from its folder: its layers and their period, its kinds, its weights' size."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts that decide which factors make sense. None and empty mean "not known", never "no".

    `layer_types` is in layer order. `weight_bytes` is the sum over all files of the weights.
    """

    folder: Path | None = None
    architecture: str | None = None
    layers: int | None = None
    layer_types: tuple[str, ...] = ()
    linear_family: str | None = None  # "gdn", "mamba", "linear"
    experts: int | None = None
    multimodal: bool = False
    mla: bool = False
    context_tokens: int | None = None
    dtype: str | None = None
    heads: int | None = None
    fp8_cache: bool = False  # the checkpoint itself asks for an fp8 KV cache
    weight_bytes: int | None = None

    @property
    def known(self) -> bool:
        """Whether the model's configuration could be read at all."""
        return self.architecture is not None

    @property
    def hybrid(self) -> bool:
        """Whether some layers keep a recurrent state instead of a KV cache."""
        return self.linear_family is not None

    @property
    def period(self) -> int | None:
        """The smallest n after which the pattern of layer kinds repeats, or None where it does not."""
        types = self.layer_types
        for size in range(1, len(types) // 2 + 1):
            if all(kind == types[index % size] for index, kind in enumerate(types)):
                return size
        return None


def find_model_folder(model: str, cwd: str | None, environment: Mapping[str, str]) -> Path | None:
    """The folder of a model: itself, or the newest snapshot of a hub name in the local cache."""
    path = Path(cwd or ".") / Path(model).expanduser()
    if path.is_dir():
        return path
    if not _HUB_NAME.fullmatch(model):
        return None
    home = environment.get("HF_HOME") or str(
        Path(environment.get("HOME", "~")).expanduser() / ".cache/huggingface"
    )
    cache = Path(environment.get("HF_HUB_CACHE") or Path(home) / "hub")
    snapshots = list((cache / f"models--{model.replace('/', '--')}" / "snapshots").glob("*/config.json"))
    return max(snapshots, key=lambda file: file.stat().st_mtime).parent if snapshots else None


def is_hub_name(model: str) -> bool:
    """Whether this can be the name of a model on a hub (`org/name`) rather than a path."""
    return _HUB_NAME.fullmatch(model) is not None


def read_model(folder: Path | None) -> ModelFacts:
    """The facts of a model folder; empty facts where there is no folder or no readable config.json."""
    if folder is None:
        return ModelFacts()
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ModelFacts(folder=folder, weight_bytes=_weight_bytes(folder))
    if not isinstance(config, dict):
        return ModelFacts(folder=folder, weight_bytes=_weight_bytes(folder))
    text = next(
        (config[key] for key in ("text_config", "llm_config") if isinstance(config.get(key), dict)), config
    )
    architectures = config.get("architectures")
    types = _layer_types(text)
    dtype = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    return ModelFacts(
        folder=folder,
        architecture=architectures[0] if isinstance(architectures, list) and architectures else None,
        layers=_integer(text, "num_hidden_layers", "n_layer"),
        layer_types=types,
        linear_family=_linear_family(text, types),
        experts=_integer(text, "num_experts", "n_routed_experts", "num_local_experts"),
        multimodal="vision_config" in config or "audio_config" in config,
        mla=_integer(text, "kv_lora_rank") is not None,
        context_tokens=_integer(text, "max_position_embeddings"),
        dtype=dtype if isinstance(dtype, str) else None,
        heads=_integer(text, "num_attention_heads"),
        fp8_cache=_asks_for_fp8_cache(config),
        weight_bytes=_weight_bytes(folder),
    )


def _asks_for_fp8_cache(config: Mapping[str, Any]) -> bool:
    quantization = config.get("quantization_config")
    if not isinstance(quantization, dict):
        return False
    return bool(quantization.get("kv_cache_scheme") or quantization.get("kv_cache_quant_algo"))


def _integer(config: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _layer_types(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The kind of every layer, as the configuration lists it or as its interval implies."""
    listed = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(listed, list) and all(isinstance(kind, str) for kind in listed):
        return tuple(listed)
    layers, interval = _integer(config, "num_hidden_layers"), _integer(config, "full_attention_interval")
    if layers is not None and interval is not None:
        return tuple(
            "full_attention" if (index + 1) % interval == 0 else "linear_attention" for index in range(layers)
        )
    return ()


def _linear_family(config: Mapping[str, Any], types: tuple[str, ...]) -> str | None:
    if "linear_attention" in types:
        # Gated DeltaNet layers have key and value heads of their own.
        return "gdn" if "linear_num_value_heads" in config else "linear"
    mamba = any("mamba" in kind for kind in types) or any(
        key.startswith(("mamba_", "ssm_")) for key in config
    )
    return "mamba" if mamba else None


def _weight_bytes(folder: Path) -> int | None:
    """Bytes of all weights: as the index of the shards says, else the sizes of the files themselves."""
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        return int(index["metadata"]["total_size"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        pass  # no index, or one without a total: the files' sizes say it too
    for pattern in ("*.safetensors", "*.bin", "*.gguf"):
        sizes = [file.stat().st_size for file in folder.glob(pattern)]
        if sizes:
            return sum(sizes)
    return None
