"""Random checkpoints in Hugging Face's layout, with the names that transformers gives the tensors."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.config import ModelConfig
from culpa_lab.model.safetensors import SINGLE, write
from culpa_lab.model.tokenizer import BYTE_LEVEL_SIZE, write_byte_level_tokenizer


def random_checkpoint(folder: Path, config: ModelConfig, seed: int, dtype: str = "float32") -> None:
    """Write `config.json`, `model.safetensors` (in `dtype`) and a byte-level tokenizer.

    The same configuration and seed give the same weights. They are scaled so that every layer changes the residual
    stream by about its own size and states and gates stay in their interesting range: nothing saturates, nothing is
    negligible.

    Raises:
        ValueError: if the vocabulary is too small for the byte-level tokenizer.
    """
    if config.vocab_size < BYTE_LEVEL_SIZE:
        raise ValueError(f"vocab_size must be at least {BYTE_LEVEL_SIZE} for the byte-level tokenizer")
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = {**config.to_json(), "dtype": dtype}
    (Path(folder) / "config.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    # The legacy generator: its stream is frozen, default_rng's may change with a release of NumPy.
    generator = np.random.RandomState(seed)
    tensors = {name: _drawn(generator, kind, shape) for name, kind, shape in _tensors(config)}
    write(Path(folder) / SINGLE, tensors, dtype)
    write_byte_level_tokenizer(folder)


def _drawn(generator: np.random.RandomState, kind: str, shape: tuple[int, ...]) -> Array:
    if kind == "decay":
        # exp(A_log) times softplus(a + dt): from heads that forget in a few tokens to some that keep hundreds.
        values = np.log(generator.uniform(0.005, 2.0, shape))
    elif kind == "one":
        values = 1 + 0.1 * generator.standard_normal(shape)
    elif kind == "zero":
        values = 0.1 * generator.standard_normal(shape)
    elif kind == "conv":
        values = 0.6 * generator.standard_normal(shape)
    elif kind == "embedding":
        values = generator.standard_normal(shape)
    else:
        values = generator.standard_normal(shape) / np.sqrt(shape[-1])
    return np.asarray(values, np.float32)


def _tensors(config: ModelConfig) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Name, kind and shape of every tensor, in a fixed order."""
    hidden = config.hidden_size
    yield "model.embed_tokens.weight", "embedding", (config.vocab_size, hidden)
    for number in range(config.num_hidden_layers):
        layer = f"model.layers.{number}."
        yield f"{layer}input_layernorm.weight", "zero", (hidden,)
        yield f"{layer}post_attention_layernorm.weight", "zero", (hidden,)
        yield from _gdn(config, layer) if config.is_linear(number) else _attention(config, layer)
        if config.is_sparse(number):
            yield from _sparse(config, layer)
        else:
            yield from _swiglu(f"{layer}mlp.", hidden, config.intermediate_size)
    yield "model.norm.weight", "zero", (hidden,)
    if not config.tie_word_embeddings:
        yield "lm_head.weight", "linear", (config.vocab_size, hidden)


def _gdn(config: ModelConfig, layer: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    name = f"{layer}linear_attn."
    hidden, heads = config.hidden_size, config.linear_num_value_heads
    if config.model_type.startswith("qwen3_5"):
        yield f"{name}in_proj_qkv.weight", "linear", (config.conv_dim, hidden)
        yield f"{name}in_proj_z.weight", "linear", (config.value_dim, hidden)
        yield f"{name}in_proj_b.weight", "linear", (heads, hidden)
        yield f"{name}in_proj_a.weight", "linear", (heads, hidden)
    else:
        yield f"{name}in_proj_qkvz.weight", "linear", (config.conv_dim + config.value_dim, hidden)
        yield f"{name}in_proj_ba.weight", "linear", (2 * heads, hidden)
    yield f"{name}conv1d.weight", "conv", (config.conv_dim, 1, config.linear_conv_kernel_dim)
    yield f"{name}dt_bias", "zero", (heads,)
    yield f"{name}A_log", "decay", (heads,)
    yield f"{name}norm.weight", "one", (config.linear_value_head_dim,)
    yield f"{name}out_proj.weight", "linear", (hidden, config.value_dim)


def _attention(config: ModelConfig, layer: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    name = f"{layer}self_attn."
    hidden, dim = config.hidden_size, config.head_dim
    wide = {
        "q_proj": 2 * config.num_attention_heads * dim,
        "k_proj": config.num_key_value_heads * dim,
        "v_proj": config.num_key_value_heads * dim,
    }
    for which, width in wide.items():
        yield f"{name}{which}.weight", "linear", (width, hidden)
        if config.attention_bias:
            yield f"{name}{which}.bias", "zero", (width,)
    yield f"{name}o_proj.weight", "linear", (hidden, config.num_attention_heads * dim)
    if config.attention_bias:
        yield f"{name}o_proj.bias", "zero", (hidden,)
    yield f"{name}q_norm.weight", "zero", (dim,)
    yield f"{name}k_norm.weight", "zero", (dim,)


def _swiglu(name: str, hidden: int, width: int) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    yield f"{name}gate_proj.weight", "linear", (width, hidden)
    yield f"{name}up_proj.weight", "linear", (width, hidden)
    yield f"{name}down_proj.weight", "linear", (hidden, width)


def _sparse(config: ModelConfig, layer: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    name = f"{layer}mlp."
    hidden, width = config.hidden_size, config.moe_intermediate_size
    yield f"{name}gate.weight", "linear", (config.num_experts, hidden)
    if config.model_type.startswith("qwen3_5"):
        yield f"{name}experts.gate_up_proj", "linear", (config.num_experts, 2 * width, hidden)
        yield f"{name}experts.down_proj", "linear", (config.num_experts, hidden, width)
    else:
        for expert in range(config.num_experts):
            yield from _swiglu(f"{name}experts.{expert}.", hidden, width)
    yield from _swiglu(f"{name}shared_expert.", hidden, config.shared_expert_intermediate_size)
    yield f"{name}shared_expert_gate.weight", "linear", (1, hidden)
