"""Reads a config.json, already parsed, as the shape of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from culpa.layout.dtypes import is_dtype
from culpa.layout.errors import BadLayout
from culpa.layout.families import FamilyTable, factor, family_of_architecture, find_family, number, value
from culpa.layout.parameters import attention_parameters, mlp_parameters, state_parameters
from culpa.layout.patterns import kinds_of
from culpa.layout.shape import (
    ATTENTION,
    RECURRENT,
    AttentionShape,
    LayerKind,
    LayerShape,
    ModelShape,
    Parameters,
    StateShape,
)

_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config.text_config")
_MOST_LAYERS = 4096
_MTP = "mtp_num_hidden_layers|num_nextn_predict_layers|num_mtp_modules=0"


def read_shape(config: Any) -> ModelShape:
    """The shape of the model that a config.json describes. Raises BadLayout where it describes none."""
    if not isinstance(config, dict):
        raise BadLayout("config.json holds no JSON object")
    text = next((part for key in _TEXT_PARTS if isinstance(part := value(config, key), dict)), config)
    # Older checkpoints keep a few keys only at the top.
    merged = {**{key: found for key, found in config.items() if not isinstance(found, dict)}, **text}
    model_type = str(text.get("model_type") or config.get("model_type") or "")
    architectures = config.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else None
    known = find_family(model_type) or find_family(str(config.get("model_type") or ""))
    if known is None and not model_type and architecture is not None:
        known = family_of_architecture(architecture)
    family = known or find_family("llama")
    assert family is not None
    hidden = number(merged, "hidden_size|n_embd|d_model=0")
    kinds = kinds_of(merged, family, known is not None)
    if not kinds or not hidden:
        raise BadLayout(
            "config.json gives no "
            + ("hidden_size" if kinds else "num_hidden_layers")
            + ": is it the configuration of a language model?"
        )
    if len(kinds) > _MOST_LAYERS:
        raise BadLayout(f"config.json: {len(kinds)} layers are more than any model has")
    reader = _Reader(merged, family, hidden)
    notes = []
    if known is None:
        notes.append(f"model_type {model_type or 'missing'} is not in the table of families"[:200])
        if reader.state is None and any(kind in RECURRENT for kind in kinds):
            kinds = tuple("full_attention" if kind in RECURRENT else kind for kind in kinds)
            notes.append("it lists layers with a recurrent state, whose shape is not known")
    vocab = number(merged, "vocab_size=0")
    quantization, bits = _quantization(config, text)
    tied = value(merged, "tie_word_embeddings|tie_embedding")
    return ModelShape(
        family=known.title if known else "unknown",
        model_type=model_type,
        architecture=architecture,
        layers=reader.layers(kinds),
        mtp_layers=reader.mtp_layers(number(merged, _MTP), len(kinds)),
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=vocab * hidden,
        tied_embeddings=tied if isinstance(tied, bool) else family.tied,
        embeds=family.embeds,
        head=family.head,
        other_parameters=_tower(config),
        context_tokens=number(
            merged, "max_position_embeddings|model_max_length|max_seq_len|n_positions|seq_length=0"
        )
        or None,
        dtype=_dtype(merged),
        quantization=quantization,
        quantization_bits=bits,
        fp8_cache=_fp8_cache(config),
        mamba_chunk=number(merged, "mamba_chunk_size|chunk_size=2048"),
        known_family=known is not None,
        pipeline=family.pipeline,
        removed=family.removed,
        source=family.source if known else "",
        notes=tuple(notes),
    )


class _Reader:
    """What all layers of one configuration have in common."""

    def __init__(self, config: Mapping[str, Any], family: FamilyTable, hidden: int) -> None:
        self.config = config
        self.family = family
        self.hidden = hidden
        self.attention = self._attention()
        self.state = self._state()

    def layers(self, kinds: Sequence[LayerKind]) -> tuple[LayerShape, ...]:
        """All decoder layers in order. What later layers share with earlier ones is counted once."""
        made = [self.layer(kind, index) for index, kind in enumerate(kinds)]
        if self.family.shared_blocks and self.state is not None:
            shared = number(self.config, self.family.shared_blocks)
            own = state_parameters(self.config, self.state, self.hidden)
            behind = Parameters(linear=self.hidden * self.hidden)
            hybrids = [index for index, kind in enumerate(kinds) if kind == "hybrid"]
            for turn, index in enumerate(hybrids):
                whole = made[index].parameters if turn < shared else own
                made[index] = replace(made[index], parameters=whole + behind)
        return tuple(made)

    def layer(self, kind: LayerKind, index: int) -> LayerShape:
        parameters = mlp_parameters(self.config, self.family, kind, index, self.hidden)
        attention = self.attention if kind in ATTENTION else None
        state = self.state if kind in RECURRENT else None
        if kind in RECURRENT and state is None:
            raise BadLayout(
                f"config.json lists a {kind} layer, and the shape of its state is not known for model_type "
                f"{self.config.get('model_type') or 'missing'}"
            )
        if attention is not None:
            parameters += attention_parameters(self.config, self.family, attention, self.hidden)
        if state is not None:
            parameters += state_parameters(self.config, state, self.hidden)
        parameters += Parameters(other=2 * self.hidden)
        return LayerShape(
            kind=kind,
            parameters=parameters,
            attention=attention,
            window=self._window() if kind == "sliding_attention" else None,
            chunk=number(self.config, self.family.chunk or "attention_chunk_size=8192")
            if kind == "chunked_attention"
            else None,
            state=state,
        )

    def mtp_layers(self, count: int, first: int) -> tuple[LayerShape, ...]:
        """Layers that only draft: one full attention layer each, with a projection in front."""
        if count > 64:
            raise BadLayout(f"config.json: {count} MTP layers are more than any model has")
        made = []
        for index in range(count):
            layer = self.layer("full_attention", first + index)
            projection = Parameters(linear=2 * self.hidden * self.hidden)
            made.append(LayerShape("full_attention", layer.parameters + projection, layer.attention))
        return tuple(made)

    def _attention(self) -> AttentionShape:
        config = self.config
        heads = number(config, "num_attention_heads|n_head|n_heads=0")
        if heads == 0:
            return AttentionShape(1, 1, self.hidden)
        width = self.hidden * self.family.attention.hidden_factor
        spec = self.family.head_dim or "head_dim|attention_head_dim|kv_channels=@head_dim"
        if self.family.attention.hidden_factor > 1:
            spec = "attention_head_dim=@head_dim"
        head_dim = number(config, spec, {"head_dim": width // heads}) or width // heads
        if head_dim == 0:
            raise BadLayout(
                f"config.json: {heads} attention heads are more than the hidden size {width} holds"
            )
        if self.family.attention.mla or value(config, "kv_lora_rank"):
            latent = number(config, "kv_lora_rank=512") + number(config, "qk_rope_head_dim=64")
            return AttentionShape(heads, 1, latent, latent=True)
        kv_heads = number(config, "num_key_value_heads|num_kv_heads=0") or heads
        return AttentionShape(heads, kv_heads, head_dim)

    def _state(self) -> StateShape | None:
        table = self.family.state
        if table is None:
            return self._linear_state()
        derived = {
            "heads": self.attention.heads,
            "hidden": self.hidden,
            "head_dim": self.attention.head_dim,
            "three_quarters": int(0.75 * self.hidden / max(1, self.attention.heads)),
        }
        found: dict[str, int] = {}
        specs = table.numbers()
        if table.kind in ("mamba1", "mamba2"):
            found["inner"] = self._inner(specs)
            heads = number(self.config, specs["heads"], derived) if "heads" in specs else 1
            derived["inner_per_head"] = found["inner"] // max(1, heads)
        for name, spec in specs.items():
            if name in ("inner", "expand"):
                continue
            found[name] = number(self.config, spec, derived)
            if name == "key_dim":
                derived["twice_key"] = 2 * found[name]
        dtype = value(self.config, self.family.state_dtype) if self.family.state_dtype else None
        if not (isinstance(dtype, str) and is_dtype(dtype)):
            dtype = self.family.state_dtype_default or None
        return StateShape(table.kind, tuple(found.items()), dtype)

    def _inner(self, specs: Mapping[str, str]) -> int:
        """Channels of a mamba layer: given, or the expanded hidden size, or heads times their size."""
        if "inner" in specs and value(self.config, specs["inner"].partition("=")[0]) is not None:
            return number(self.config, specs["inner"])
        if "expand" in specs:
            return int(factor(self.config, specs["expand"]) * self.hidden)
        return number(self.config, specs["heads"]) * number(self.config, specs["head_dim"])

    def _linear_state(self) -> StateShape | None:
        """An unknown family with the keys of Gated DeltaNet: those are unmistakable."""
        keys = {
            "key_heads": "linear_num_key_heads", "value_heads": "linear_num_value_heads",
            "key_dim": "linear_key_head_dim", "value_dim": "linear_value_head_dim",
            "kernel": "linear_conv_kernel_dim",
        }  # fmt: skip
        if not all(isinstance(self.config.get(key), int) for key in keys.values()):
            return None
        dtype = self.config.get("mamba_ssm_dtype")
        return StateShape(
            "gdn",
            tuple((name, number(self.config, key)) for name, key in keys.items()),
            dtype if isinstance(dtype, str) and is_dtype(dtype) else None,
        )

    def _window(self) -> int:
        window = number(self.config, self.family.window or "sliding_window=4096")
        return window or number(self.config, "sliding_window_size|window_size=4096")


def _dtype(config: Mapping[str, Any]) -> str:
    dtype = str(value(config, "dtype|torch_dtype") or "bfloat16").removeprefix("torch.")
    # vLLM serves float32 checkpoints in half precision unless it is told otherwise.
    return "bfloat16" if dtype in ("float32", "float64") or not is_dtype(dtype) else dtype


def _quantization(config: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[str | None, float | None]:
    found = config.get("quantization_config") or text.get("quantization_config")
    if not isinstance(found, dict):
        return None, None
    method = str(found.get("quant_method") or found.get("quant_algo") or "unknown").lower()
    bits = found.get("bits") or found.get("w_bit") or value(found, "weight_bits")
    groups = found.get("config_groups")
    if isinstance(groups, dict):
        widths = [value(group, "weights.num_bits") for group in groups.values() if isinstance(group, dict)]
        bits = next((width for width in widths if isinstance(width, int)), bits)
    return method, float(bits) if isinstance(bits, int | float) and 0 < bits <= 32 else None


def _fp8_cache(config: Mapping[str, Any]) -> bool:
    found = config.get("quantization_config")
    return isinstance(found, dict) and bool(found.get("kv_cache_scheme") or found.get("kv_cache_quant_algo"))


def _tower(config: Mapping[str, Any]) -> int:
    """Parameters of a vision tower, roughly: twelve squares of its width a block, as in any ViT."""
    vision = config.get("vision_config")
    if not isinstance(vision, dict):
        return 0
    width = number(vision, "hidden_size|embed_dim|width=0")
    blocks = number(vision, "depth|num_hidden_layers|layers=0")
    inner = number(vision, "intermediate_size=0") or 4 * width
    if width > 1 << 16 or blocks > 512:
        return 0
    return blocks * (4 * width * width + 2 * width * inner)
