"""The weights of layers, as the functions that use them want them.

Names in the files: transformers' Qwen3NextForCausalLM (fused `in_proj_qkvz`, `in_proj_ba`; experts one by one) and
Qwen3_5ForCausalLM / Qwen3_5ForConditionalGeneration (separate `in_proj_qkv`, `in_proj_z`, `in_proj_b`, `in_proj_a`;
experts stacked). Matrices are stored [out, in] in the files and held [in, out] here. What feeds a sigmoid or silu
is halved at load (exact in binary), so that sigmoid(2h) = (1 + tanh h) / 2 takes fewer calls.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from culpa_lab.model.arrays import Array, BadCheckpoint
from culpa_lab.model.config import ModelConfig
from culpa_lab.model.norm import NormWeights
from culpa_lab.model.safetensors import Tensors, rounded


@dataclass(frozen=True)
class GdnWeights:
    """A gated delta net.

    Attributes:
        in_proj: [hidden, channels + values + 2 · value heads]: q, k, v | z / 2 | b / 2 | a.
        conv: [channels, kernel], halved: what comes after it is silu.
        dt_bias, decay_rate: [value heads]; decay_rate is -exp(A_log).
        query_scale: [2 · key heads, 1]: key dim for queries, 1 for keys.
        norm: the gated norm over a head's values.
        out_proj: [values, hidden].
    """

    in_proj: Array
    conv: Array
    dt_bias: Array
    decay_rate: Array
    query_scale: Array
    norm: NormWeights
    out_proj: Array
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int

    @property
    def channels(self) -> int:
        """Channels of the convolution."""
        return int(self.conv.shape[0])

    @property
    def kernel(self) -> int:
        """Taps of the convolution."""
        return int(self.conv.shape[1])


@dataclass(frozen=True)
class AttentionWeights:
    """Gated full attention.

    Attributes:
        in_proj: [hidden, ...]: all query heads | key heads | value heads | output gates / 2.
        in_bias: the bias of that, or None.
        norm: over each query and key head; its gain [query heads + key heads, head dim] holds 1 / sqrt(head dim) for
            queries.
        out_proj: [query heads · head dim, hidden]; out_bias its bias, or None.
    """

    in_proj: Array
    in_bias: Array | None
    norm: NormWeights
    out_proj: Array
    out_bias: Array | None
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int


@dataclass(frozen=True)
class DenseWeights:
    """SwiGLU. gate_up: [hidden, 2 · width], gate / 2 first; down: [width, hidden]."""

    gate_up: Array
    down: Array


@dataclass(frozen=True)
class SparseWeights:
    """A mixture of experts with one shared.

    Attributes:
        router: [hidden, experts].
        gate_up: [experts, hidden, 2 · width], gate / 2 first; down: [experts, width, hidden].
        shared: the shared expert; shared_gate: [hidden, 1], halved.
        active: experts per token; normalised: whether their weights are made to add up to 1.
    """

    router: Array
    gate_up: Array
    down: Array
    shared: DenseWeights
    shared_gate: Array
    active: int
    normalised: bool


@dataclass(frozen=True)
class LayerWeights:
    """One decoder layer; `number` counts from 0 over the whole model."""

    number: int
    input_norm: NormWeights
    mixer: GdnWeights | AttentionWeights
    post_norm: NormWeights
    mlp: DenseWeights | SparseWeights


@dataclass(frozen=True)
class HeadWeights:
    """Final norm and output projection [hidden, vocabulary]."""

    norm: NormWeights
    projection: Array


class Source:
    """A model folder's tensors by their names without the wrapper's prefix, rounded to a type."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._tensors = Tensors(folder)
        self._dtype = dtype
        rounded(np.zeros(1, np.float32), dtype)
        ends = [name for name in self._tensors.names() if name.endswith("embed_tokens.weight")]
        if not ends:
            raise BadCheckpoint(f"{folder} has no tensor embed_tokens.weight")
        self._prefix = ends[0].removesuffix("embed_tokens.weight")

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._tensors

    def array(self, name: str, *shape: int) -> Array:
        """A tensor below the model's prefix, which must have this shape."""
        return self._checked(self._prefix + name, shape)

    def matrix(self, name: str, outputs: int, inputs: int) -> Array:
        """A linear layer's weight, turned to [in, out]."""
        return np.ascontiguousarray(self.array(name, outputs, inputs).T)

    def output(self, outputs: int, inputs: int) -> Array:
        """`lm_head.weight`, turned to [in, out]; it stands beside the model or inside its wrapper."""
        for name in ("lm_head.weight", f"{self._prefix.removesuffix('model.')}lm_head.weight"):
            if name in self._tensors:
                return np.ascontiguousarray(self._checked(name, (outputs, inputs)).T)
        raise BadCheckpoint("there is no lm_head.weight, and tie_word_embeddings is not set in config.json")

    def _checked(self, name: str, shape: tuple[int, ...]) -> Array:
        tensor = self._tensors.read(name)
        if tensor.shape != shape:
            raise BadCheckpoint(f"tensor {name} has shape {tensor.shape}, and config.json asks for {shape}")
        return rounded(tensor, self._dtype)


def load_layers(
    folder: Path, config: ModelConfig, first: int, last: int, dtype: str = "float32"
) -> list[LayerWeights]:
    """Layers first..last-1 and nothing else, their weights rounded to `dtype` and held as float32.

    Raises:
        BadCheckpoint: if a tensor is missing or has another shape than `config.json` says.
    """
    source = Source(folder, dtype)
    return [_layer(source, config, number) for number in range(first, last)]


def load_embedding(folder: Path, config: ModelConfig, dtype: str = "float32") -> Array:
    """[vocabulary, hidden]."""
    return Source(folder, dtype).array("embed_tokens.weight", config.vocab_size, config.hidden_size)


def load_head(folder: Path, config: ModelConfig, dtype: str = "float32") -> HeadWeights:
    """Final norm and output projection, which is the embedding if they are tied."""
    source = Source(folder, dtype)
    shape = (config.vocab_size, config.hidden_size)
    norm = NormWeights.zero_centred(source.array("norm.weight", config.hidden_size), config.rms_norm_eps)
    tied = config.tie_word_embeddings
    return HeadWeights(norm, source.matrix("embed_tokens.weight", *shape) if tied else source.output(*shape))


def _layer(source: Source, config: ModelConfig, number: int) -> LayerWeights:
    name = f"layers.{number}."
    hidden, eps = config.hidden_size, config.rms_norm_eps
    mixer = _gdn(source, config, name) if config.is_linear(number) else _attention(source, config, name)
    mlp = (
        _sparse(source, config, f"{name}mlp.")
        if config.is_sparse(number)
        else _dense(source, f"{name}mlp.", hidden, config.intermediate_size)
    )
    norms = [
        NormWeights.zero_centred(source.array(f"{name}{which}.weight", hidden), eps)
        for which in ("input_layernorm", "post_attention_layernorm")
    ]
    return LayerWeights(number, norms[0], mixer, norms[1], mlp)


def _gdn(source: Source, config: ModelConfig, layer: str) -> GdnWeights:
    name = f"{layer}linear_attn."
    heads, values = config.linear_num_value_heads, config.value_dim
    if f"{name}in_proj_qkvz.weight" in source:
        qkv, z, b, a = _unfused(source, config, name)
    else:
        qkv = source.matrix(f"{name}in_proj_qkv.weight", config.conv_dim, config.hidden_size)
        z = source.matrix(f"{name}in_proj_z.weight", values, config.hidden_size)
        b = source.matrix(f"{name}in_proj_b.weight", heads, config.hidden_size)
        a = source.matrix(f"{name}in_proj_a.weight", heads, config.hidden_size)
    half = np.float32(0.5)
    conv = (
        half * source.array(f"{name}conv1d.weight", config.conv_dim, 1, config.linear_conv_kernel_dim)[:, 0]
    )
    scale = np.repeat([config.linear_key_head_dim, 1], config.linear_num_key_heads)
    return GdnWeights(
        in_proj=np.concatenate([qkv, half * z, half * b, a], axis=1),
        conv=conv,
        dt_bias=source.array(f"{name}dt_bias", heads),
        decay_rate=-np.exp(source.array(f"{name}A_log", heads)),
        query_scale=scale.astype(np.float32)[:, None],
        norm=NormWeights.plain(
            source.array(f"{name}norm.weight", config.linear_value_head_dim), config.rms_norm_eps
        ),
        out_proj=source.matrix(f"{name}out_proj.weight", config.hidden_size, values),
        key_heads=config.linear_num_key_heads,
        value_heads=heads,
        key_dim=config.linear_key_head_dim,
        value_dim=config.linear_value_head_dim,
    )


def _unfused(source: Source, config: ModelConfig, name: str) -> tuple[Array, Array, Array, Array]:
    """Qwen3-Next stores q, k, v, z (and b, a) together for each key head (fix_query_key_value_ordering)."""
    groups, each = config.linear_num_key_heads, config.linear_num_value_heads // config.linear_num_key_heads
    keys, values = config.linear_key_head_dim, config.linear_value_head_dim * each
    hidden = config.hidden_size
    qkvz = source.matrix(f"{name}in_proj_qkvz.weight", groups * 2 * (keys + values), hidden)
    ba = source.matrix(f"{name}in_proj_ba.weight", groups * 2 * each, hidden)
    by_group = qkvz.reshape(hidden, groups, 2 * (keys + values))
    q, k, v, z = np.split(by_group, [keys, 2 * keys, 2 * keys + values], axis=2)
    b, a = np.split(ba.reshape(hidden, groups, 2 * each), 2, axis=2)
    qkv = np.concatenate([part.reshape(hidden, -1) for part in (q, k, v)], axis=1)
    return qkv, z.reshape(hidden, -1), b.reshape(hidden, -1), a.reshape(hidden, -1)


def _attention(source: Source, config: ModelConfig, layer: str) -> AttentionWeights:
    name = f"{layer}self_attn."
    hidden, dim = config.hidden_size, config.head_dim
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    biased = config.attention_bias

    def columns(which: str, wide: int) -> Array:
        """A projection [hidden + 1, wide]: the last row is the bias."""
        matrix = source.matrix(f"{name}{which}.weight", wide, hidden)
        bias = source.array(f"{name}{which}.bias", wide) if biased else np.zeros(wide, np.float32)
        return np.concatenate([matrix, bias[None]])

    # Each query head is followed by its output gate.
    q, gate = np.split(columns("q_proj", 2 * heads * dim).reshape(hidden + 1, heads, 2 * dim), 2, axis=2)
    k, v = columns("k_proj", kv_heads * dim), columns("v_proj", kv_heads * dim)
    flat = (hidden + 1, heads * dim)
    joined = np.concatenate([q.reshape(flat), k, v, np.float32(0.5) * gate.reshape(flat)], axis=1)
    norm_q = NormWeights.zero_centred(source.array(f"{name}q_norm.weight", dim), config.rms_norm_eps)
    norm_k = NormWeights.zero_centred(source.array(f"{name}k_norm.weight", dim), config.rms_norm_eps)
    gain_q = norm_q.gain / np.float32(np.sqrt(dim))
    gain = np.concatenate([np.tile(gain_q, (heads, 1)), np.tile(norm_k.gain, (kv_heads, 1))])
    return AttentionWeights(
        in_proj=np.ascontiguousarray(joined[:-1]),
        in_bias=joined[-1].copy() if biased else None,
        norm=NormWeights(gain, norm_q.epsilon),
        out_proj=source.matrix(f"{name}o_proj.weight", hidden, heads * dim),
        out_bias=source.array(f"{name}o_proj.bias", hidden) if biased else None,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=dim,
        rotary_dim=config.rotary_dim,
    )


def _dense(source: Source, name: str, hidden: int, width: int) -> DenseWeights:
    gate = source.matrix(f"{name}gate_proj.weight", width, hidden)
    up = source.matrix(f"{name}up_proj.weight", width, hidden)
    return DenseWeights(
        np.concatenate([np.float32(0.5) * gate, up], axis=1),
        source.matrix(f"{name}down_proj.weight", hidden, width),
    )


def _sparse(source: Source, config: ModelConfig, name: str) -> SparseWeights:
    hidden, width, experts = config.hidden_size, config.moe_intermediate_size, config.num_experts
    if f"{name}experts.gate_up_proj" in source:
        stored = source.array(f"{name}experts.gate_up_proj", experts, 2 * width, hidden)
        gate_up = np.ascontiguousarray(stored.transpose(0, 2, 1))
        gate_up[:, :, :width] *= np.float32(0.5)
        down = source.array(f"{name}experts.down_proj", experts, hidden, width).transpose(0, 2, 1)
    else:
        each = [_dense(source, f"{name}experts.{expert}.", hidden, width) for expert in range(experts)]
        gate_up = np.stack([one.gate_up for one in each])
        down = np.stack([one.down for one in each])
    return SparseWeights(
        router=source.matrix(f"{name}gate.weight", experts, hidden),
        gate_up=gate_up,
        down=np.ascontiguousarray(down),
        shared=_dense(source, f"{name}shared_expert.", hidden, config.shared_expert_intermediate_size),
        shared_gate=np.float32(0.5) * source.matrix(f"{name}shared_expert_gate.weight", 1, hidden),
        active=config.num_experts_per_tok,
        normalised=config.norm_topk_prob,
    )
