"""Small random models for tests."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from culpa_lab.model import Array, ModelConfig

BASE: Mapping[str, Any] = {
    "model_type": "qwen3_next",
    "vocab_size": 260,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 48,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "eos_token_id": 256,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    "num_experts": 0,
}

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "dense": {},
    "experts": {
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 24,
        "mlp_only_layers": [1],
    },
    "one-kv-head": {
        "num_key_value_heads": 1,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
        "head_dim": 8,
        "tie_word_embeddings": True,
    },
    "bias": {"attention_bias": True, "num_key_value_heads": 4, "linear_num_key_heads": 4},
    "qwen3.5": {"model_type": "qwen3_5_text"},
    "qwen3.5-experts": {
        "model_type": "qwen3_5_moe_text",
        "num_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 24,
    },
}


def config(variant: str = "dense") -> ModelConfig:
    """The configuration of a variant."""
    return ModelConfig.read({**BASE, **VARIANTS[variant]})


SEED = 11


def prompt(length: int) -> list[int]:
    """Token ids without a pattern, the same every time."""
    return [int(token) for token in np.random.RandomState(1).randint(0, 256, length)]


def relative_difference(found: Array, expected: Array) -> float:
    """The largest difference between logits, in units of the largest logit."""
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    return float(np.abs(found - expected).max() / np.abs(expected).max())
