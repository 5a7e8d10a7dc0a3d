"""Layers, states and parameters of every family, against what transformers makes of the same configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.layout.shapes import incident_config

from culpa.layout import BadLayout, read_shape
from culpa.layout.families import families

# Recorded from transformers 5.19 on the meta device: the configuration in full, and parameters of every layer.
RECORDED = json.loads((Path(__file__).parent / "data" / "transformers.json").read_text(encoding="utf-8"))
# Shared blocks of Zamba2 have low-rank adapters of their own in each layer, which are not counted.
TOLERANCE = {"zamba2": 0.03}


@pytest.mark.parametrize("name", RECORDED)
def test_layers_have_as_many_parameters_as_in_transformers(name: str) -> None:
    shape = read_shape(RECORDED[name]["config"])
    counted = [layer.parameters.total for layer in shape.layers]
    assert counted == pytest.approx(RECORDED[name]["parameters"], rel=TOLERANCE.get(name, 0.001))


@pytest.mark.parametrize("name", RECORDED)
def test_embedding_and_head_have_as_many_parameters_as_in_transformers(name: str) -> None:
    shape = read_shape(RECORDED[name]["config"])
    outside = shape.embedding_parameters * (1 if shape.tied_embeddings else 2)
    assert outside == pytest.approx(RECORDED[name]["outside"], rel=0.001)


# These checkpoints list their layers always: their rule is a last resort.
LISTED = ("granitemoehybrid", "granitemoehybrid0", "lfm2_moe", "zamba2", "nemotron_h")
RULED = [name for name in RECORDED if "layer_types" in RECORDED[name]["config"] and name not in LISTED]


@pytest.mark.parametrize("name", RULED)
def test_the_rule_of_a_family_gives_the_layers_that_a_full_configuration_lists(name: str) -> None:
    config = RECORDED[name]["config"]
    listed = read_shape(config).layer_types
    bare = {key: value for key, value in config.items() if key not in ("layer_types", "layers_block_type")}
    assert read_shape(bare).layer_types == listed


def test_every_family_of_the_table_is_known_by_each_of_its_names() -> None:
    names = [name for family in families() for name in family.model_types]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("model_type", "expected"),
    [
        ("qwen3_next", ["linear_attention"] * 3 + ["full_attention"]),
        ("qwen3_5_text", ["linear_attention"] * 3 + ["full_attention"]),
        ("jamba", ["mamba"] * 4 + ["full_attention"] + ["mamba"] * 3),
        ("falcon_h1", ["hybrid"]),
        ("gemma3_text", ["sliding_attention"] * 5 + ["full_attention"]),
        ("gemma2", ["sliding_attention", "full_attention"]),
        ("gpt_oss", ["sliding_attention", "full_attention"]),
        ("minimax", ["full_attention", "linear_attention"]),
        ("olmo_hybrid", ["linear_attention"] * 3 + ["full_attention"]),
        ("llama4_text", ["chunked_attention"] * 3 + ["full_attention"]),
        ("cohere2", ["sliding_attention"] * 3 + ["full_attention"]),
        ("deepseek_v3", ["full_attention"]),
        ("qwen3_moe", ["full_attention"]),
    ],
)
def test_one_period_of_a_family(model_type: str, expected: list[str]) -> None:
    shape = read_shape(
        {"model_type": model_type, "num_hidden_layers": 24, "hidden_size": 256, "num_attention_heads": 8}
    )
    assert list(shape.layer_types[: len(expected)]) == expected
    assert shape.period == len(expected)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"model_type": "bamba", "attn_layer_indices": [1, 3]}, "mamba full mamba full"),
        ({"model_type": "lfm2", "full_attn_idxs": [2]}, "conv conv full conv"),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*E"}, "mamba mlp full moe"),
        (
            {"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"] * 2},
            "mamba full mamba full",
        ),
        ({"model_type": "zamba2", "hybrid_layer_ids": [3]}, "mamba mamba mamba hybrid"),
        ({"model_type": "minimax_text_01", "attn_type_list": [0, 0, 0, 1]}, "linear linear linear full"),
        (
            {"model_type": "kimi_linear", "linear_attn_config": {"full_attn_layers": [4]}},
            "linear linear linear full",
        ),
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding sliding sliding sliding"),
        ({"model_type": "mistral", "sliding_window": None}, "full full full full"),
        (
            {
                "model_type": "qwen2",
                "use_sliding_window": True,
                "sliding_window": 4096,
                "max_window_layers": 2,
            },
            "full full sliding sliding",
        ),
    ],
)
def test_patterns_that_the_configuration_itself_gives(more: dict[str, Any], expected: str) -> None:
    config = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8, **more}
    kinds = [kind.removesuffix("_attention") for kind in read_shape(config).layer_types]
    assert kinds == expected.split()


def test_the_text_part_of_a_multimodal_model_is_read() -> None:
    config = {
        **incident_config(),
        "vision_config": {"hidden_size": 1152, "depth": 27, "intermediate_size": 4304},
    }
    shape = read_shape(config)
    assert (len(shape.layers), shape.period, shape.family) == (64, 4, "Qwen3.5")
    assert shape.other_parameters > 400_000_000


def test_mtp_layers_are_counted_apart() -> None:
    shape = read_shape(incident_config())
    assert len(shape.mtp_layers) == 1
    assert len(shape.layer_types) == 64


@pytest.mark.parametrize(
    ("architecture", "family"),
    [
        ("Qwen3_5ForCausalLM", "Qwen3.5"),
        ("Qwen3NextForCausalLM", "Qwen3-Next"),
        ("JambaForCausalLM", "Jamba"),
    ],
)
def test_without_a_model_type_the_architecture_tells_the_family(architecture: str, family: str) -> None:
    config = {
        "architectures": [architecture],
        "num_hidden_layers": 8,
        "hidden_size": 256,
        "num_attention_heads": 4,
    }
    assert read_shape(config).family == family


def test_an_unknown_family_is_taken_for_plain_layers_and_says_so() -> None:
    config = {"model_type": "brand_new", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
    shape = read_shape(config)
    assert set(shape.layer_types) == {"full_attention"}
    assert not shape.known_family
    assert "brand_new" in shape.notes[0]


def test_kinds_that_an_unknown_family_lists_are_taken_for_plain_layers_too() -> None:
    config = {
        "model_type": "brand_new",
        "hidden_size": 64,
        "layer_types": ["banana", "mamba", "sliding_attention"],
    }
    shape = read_shape(config)
    assert shape.layer_types == ("full_attention", "full_attention", "sliding_attention")
    assert "recurrent state" in " ".join(shape.notes)


def test_an_unknown_family_with_delta_net_keys_keeps_its_states() -> None:
    config = {
        **incident_config()["text_config"],
        "model_type": "brand_new",
        "layer_types": ["linear_attention"] * 64,
    }
    shape = read_shape(config)
    assert shape.state is not None
    assert shape.state.kind == "gdn"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ([], "no JSON object"),
        ({}, "num_hidden_layers"),
        ({"hidden_size": 64}, "num_hidden_layers"),
        ({"num_hidden_layers": 4}, "hidden_size"),
        ({"num_hidden_layers": "four", "hidden_size": 64}, "whole number"),
        ({"num_hidden_layers": True, "hidden_size": 64}, "whole number"),
        ({"num_hidden_layers": 4, "hidden_size": 64, "layer_types": ["full_attention"]}, "lists 1"),
        (
            {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "layer_types": ["banana"]},
            "banana",
        ),
        (
            {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "layer_types": ["mamba"]},
            "not known",
        ),
        ({"num_hidden_layers": 10**6, "hidden_size": 64}, "more than any model"),
        ({"model_type": "nemotron_h", "hidden_size": 64, "hybrid_override_pattern": "MX"}, "'X'"),
        ({"model_type": "nemotron_h", "hidden_size": 64}, "hybrid_override_pattern"),
    ],
)
def test_what_is_no_configuration_of_a_model_is_one_clear_line(config: Any, says: str) -> None:
    with pytest.raises(BadLayout, match=says) as error:
        read_shape(config)
    assert "\n" not in str(error.value)
