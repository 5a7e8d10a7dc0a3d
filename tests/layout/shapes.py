"""Configurations that tests share."""

import json
from pathlib import Path
from typing import Any

from culpa.layout import ModelShape, Plan, Settings, make_plan, read_shape

ROOT = Path(__file__).parent.parent.parent
INCIDENT = ROOT / "examples" / "incident-model"


def incident_config() -> dict[str, Any]:
    """64 layers, GDN state 48 x 128 x 128 in float32, 4 key-value heads x 256."""
    config = json.loads((INCIDENT / "config.json").read_text(encoding="utf-8"))
    assert isinstance(config, dict)
    return config


def incident() -> ModelShape:
    return read_shape(incident_config())


def incident_plan(partition: tuple[int, ...] | None = (23, 23, 18), **settings: Any) -> Plan:
    """The incident's launch: three stages, 131,072 tokens, prefix caching on."""
    given = {"pipeline_parallel_size": 3, "max_model_len": 131072, **settings}
    return make_plan(incident(), Settings(partition=partition, **given))


def dense_config(layers: int = 32, **more: Any) -> dict[str, Any]:
    """A Llama with sizes of the 8B one."""
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        **more,
    }


def dense(layers: int = 32, **more: Any) -> ModelShape:
    return read_shape(dense_config(layers, **more))
