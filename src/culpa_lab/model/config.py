"""`config.json` of the Qwen3-Next and Qwen3.5 text architecture.

Names and defaults are those of Hugging Face transformers, models/qwen3_next/configuration_qwen3_next.py and
models/qwen3_5/configuration_qwen3_5.py.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from culpa_lab.model.arrays import BadCheckpoint

LayerType = Literal["linear_attention", "full_attention"]
LAYER_TYPES = ("linear_attention", "full_attention")
_ARCHITECTURES = {
    "qwen3_next": "Qwen3NextForCausalLM",
    "qwen3_5": "Qwen3_5ForConditionalGeneration",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
}
MODEL_TYPES = tuple(_ARCHITECTURES)


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a model. Field names are those of `config.json`."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    layer_types: tuple[LayerType, ...]
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    model_type: str = "qwen3_next"
    linear_conv_kernel_dim: int = 4
    partial_rotary_factor: float = 0.25
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    max_position_embeddings: int = 32768
    attention_bias: bool = False
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    shared_expert_intermediate_size: int = 0
    norm_topk_prob: bool = True
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()
    eos_token_ids: tuple[int, ...] = ()
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise BadCheckpoint(f"config.json: {problem}")

    def _problems(self) -> list[str]:
        found = []
        positive = (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
            "head_dim", "intermediate_size", "linear_num_key_heads", "linear_num_value_heads",
            "linear_key_head_dim", "linear_value_head_dim", "max_position_embeddings",
        )  # fmt: skip
        found += [f"{name} must be at least 1" for name in positive if getattr(self, name) < 1]
        if found:
            return found
        if len(self.layer_types) != self.num_hidden_layers:
            found.append(
                f"layer_types has {len(self.layer_types)} entries for {self.num_hidden_layers} layers"
            )
        unknown = sorted({kind for kind in self.layer_types if kind not in LAYER_TYPES})
        if unknown:
            found.append(f"layer type {unknown[0]!r} is not supported, only {' and '.join(LAYER_TYPES)}")
        if self.num_attention_heads % self.num_key_value_heads:
            found.append("num_attention_heads must be a multiple of num_key_value_heads")
        if self.linear_num_value_heads % self.linear_num_key_heads:
            found.append("linear_num_value_heads must be a multiple of linear_num_key_heads")
        if self.linear_conv_kernel_dim < 2:
            found.append("linear_conv_kernel_dim must be at least 2")
        if self.rotary_dim % 2 or self.rotary_dim > self.head_dim:
            found.append("head_dim * partial_rotary_factor must be even and no more than head_dim")
        if self.num_experts and not 1 <= self.num_experts_per_tok <= self.num_experts:
            found.append("num_experts_per_tok must be between 1 and num_experts")
        return found

    @property
    def rotary_dim(self) -> int:
        """Leading dimensions of a head that are rotated."""
        return int(self.head_dim * self.partial_rotary_factor)

    @property
    def key_dim(self) -> int:
        """Width of all key (or query) heads of a gated delta net."""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_dim(self) -> int:
        """Width of all value heads of a gated delta net."""
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def conv_dim(self) -> int:
        """Channels of the short convolution: queries, keys and values."""
        return 2 * self.key_dim + self.value_dim

    @property
    def conv_state_shape(self) -> tuple[int, int]:
        """(channels, kernel - 1): the convolution's latest inputs of one request, oldest first."""
        return self.conv_dim, self.linear_conv_kernel_dim - 1

    @property
    def recurrent_state_shape(self) -> tuple[int, int, int]:
        """(value heads, key dim, value dim): the delta rule's associative memory of one request."""
        return self.linear_num_value_heads, self.linear_key_head_dim, self.linear_value_head_dim

    @property
    def kv_shape_per_token(self) -> tuple[int, int]:
        """(key/value heads, head dim): the shape of a token's key, and of its value."""
        return self.num_key_value_heads, self.head_dim

    def is_linear(self, layer: int) -> bool:
        """Whether a layer is a gated delta net, else full attention."""
        return self.layer_types[layer] == "linear_attention"

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has a mixture of experts (Qwen3NextDecoderLayer)."""
        return (
            self.num_experts > 0
            and layer not in self.mlp_only_layers
            and (layer + 1) % self.decoder_sparse_step == 0
        )

    @classmethod
    def load(cls, folder: Path) -> "ModelConfig":
        """Read `config.json` of a model folder.

        Raises:
            BadCheckpoint: if it is missing, not JSON, of another architecture, or not consistent.
        """
        path = Path(folder) / "config.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadCheckpoint(f"{folder} has no config.json: is it the folder of a model?") from None
        except (OSError, ValueError) as error:
            raise BadCheckpoint(f"{path} can't be read as JSON: {error}") from None
        if not isinstance(raw, dict):
            raise BadCheckpoint(f"{path} is not a JSON object")
        return cls.read(raw)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "ModelConfig":
        """From the parsed `config.json`; a multimodal wrapper's `text_config` is what counts."""
        text: dict[str, Any] = dict(raw)
        if isinstance(raw.get("text_config"), Mapping):
            text = {
                **{key: raw[key] for key in ("tie_word_embeddings", "dtype") if key in raw},
                **raw["text_config"],
            }
        model_type = str(text.get("model_type", raw.get("model_type", "")))
        if model_type not in MODEL_TYPES:
            raise BadCheckpoint(
                f"config.json: model_type {model_type!r} is not one of {', '.join(MODEL_TYPES)}"
            )
        if text.get("hidden_act", "silu") != "silu":
            raise BadCheckpoint(f"config.json: hidden_act {text['hidden_act']!r} is not supported, only silu")
        try:
            return cls(**_fields(text, raw, model_type))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, BadCheckpoint):
                raise
            what = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            raise BadCheckpoint(f"config.json: {what}") from None

    def to_json(self) -> dict[str, Any]:
        """What `config.json` of a Qwen3-Next (or Qwen3.5 text) checkpoint says, as transformers 5 writes it."""
        eos: int | list[int] | None = list(self.eos_token_ids) or None
        if len(self.eos_token_ids) == 1:
            eos = self.eos_token_ids[0]
        plain = (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
            "head_dim", "intermediate_size", "linear_num_key_heads", "linear_num_value_heads",
            "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "rms_norm_eps",
            "tie_word_embeddings", "max_position_embeddings", "attention_bias", "dtype", "model_type",
        )  # fmt: skip
        sparse = (
            "num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
            "norm_topk_prob", "decoder_sparse_step",
        )  # fmt: skip
        names = plain if self.model_type == "qwen3_5_text" else (*plain, *sparse)
        written: dict[str, Any] = {name: getattr(self, name) for name in names}
        written |= {
            "architectures": [_ARCHITECTURES[self.model_type]],
            "layer_types": list(self.layer_types),
            "hidden_act": "silu",
            "eos_token_id": eos,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": self.rope_theta,
                "partial_rotary_factor": self.partial_rotary_factor,
            },
        }
        if self.model_type != "qwen3_5_text":
            written["mlp_only_layers"] = list(self.mlp_only_layers)
        return written


def _fields(text: Mapping[str, Any], raw: Mapping[str, Any], model_type: str) -> dict[str, Any]:
    layers = int(text["num_hidden_layers"])
    # transformers 5 gathers what concerns the rotary embedding; older files have it at the top.
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "mrope"):
        raise BadCheckpoint(f"config.json: rope_type {kind!r} is not supported, only default")
    types = text.get("layer_types")
    if types is None:
        interval = int(text.get("full_attention_interval", 4))
        types = [LAYER_TYPES[(layer + 1) % interval == 0] for layer in range(layers)]
    eos = text.get("eos_token_id", raw.get("eos_token_id"))
    integers = (
        "vocab_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "linear_num_key_heads",
        "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
    )  # fmt: skip
    optional = {
        "linear_conv_kernel_dim": int, "rms_norm_eps": float, "tie_word_embeddings": bool,
        "max_position_embeddings": int, "attention_bias": bool, "num_experts": int, "num_experts_per_tok": int,
        "moe_intermediate_size": int, "shared_expert_intermediate_size": int, "norm_topk_prob": bool,
        "decoder_sparse_step": int,
    }  # fmt: skip
    fields: dict[str, Any] = {name: int(text[name]) for name in integers}
    fields |= {name: kind(text[name]) for name, kind in optional.items() if text.get(name) is not None}
    heads = fields["num_attention_heads"]
    # A mixture of experts on every layer has no dense width (Qwen3.5 MoE): any will do.
    fields["intermediate_size"] = int(text.get("intermediate_size") or text["moe_intermediate_size"])
    return fields | {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "layer_types": cast("tuple[LayerType, ...]", tuple(types)),
        "head_dim": int(text.get("head_dim") or fields["hidden_size"] // heads),
        "rope_theta": float(rope.get("rope_theta", text.get("rope_theta", 10000.0))),
        "partial_rotary_factor": float(
            rope.get("partial_rotary_factor", text.get("partial_rotary_factor", 0.25))
        ),
        "mlp_only_layers": tuple(text.get("mlp_only_layers") or ()),
        "eos_token_ids": tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),),
        "dtype": str(text.get("dtype") or text.get("torch_dtype") or "float32"),
    }
