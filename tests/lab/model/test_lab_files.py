"""What model folders may hold, and what is said of those that can't be used."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.model.models import BASE, VARIANTS, config, prompt

from culpa_lab.model import (
    BadCheckpoint,
    ModelConfig,
    load_embedding,
    load_head,
    load_layers,
    random_checkpoint,
)
from culpa_lab.model.safetensors import (
    INDEX,
    SINGLE,
    Tensors,
    from_bfloat16_bits,
    rounded,
    to_bfloat16_bits,
    write,
)
from culpa_lab.model.simple import Runner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random_checkpoint(tmp_path, config(), seed=1)
    return tmp_path


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_written_config_is_read_back(variant: str, tmp_path: Path) -> None:
    random_checkpoint(tmp_path, config(variant), seed=1)
    assert ModelConfig.load(tmp_path) == config(variant)


def test_a_wrapper_s_text_config_counts() -> None:
    wrapper = {
        "model_type": "qwen3_5",
        "tie_word_embeddings": True,
        "text_config": {**BASE, "model_type": "qwen3_5_text"},
        "vision_config": {"hidden_size": 1},
    }
    read = ModelConfig.read(wrapper)
    assert (read.hidden_size, read.model_type, read.tie_word_embeddings) == (32, "qwen3_5_text", True)


def test_layer_types_follow_from_the_interval() -> None:
    raw = {key: value for key, value in BASE.items() if key != "layer_types"}
    read = ModelConfig.read({**raw, "num_hidden_layers": 8, "full_attention_interval": 4})
    assert [layer for layer in range(8) if not read.is_linear(layer)] == [3, 7]


def test_older_files_have_the_rotary_settings_at_the_top() -> None:
    raw = {key: value for key, value in BASE.items() if key != "rope_parameters"}
    read = ModelConfig.read({**raw, "rope_theta": 5000, "partial_rotary_factor": 0.25, "rope_scaling": None})
    assert (read.rope_theta, read.rotary_dim) == (5000.0, 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "llama"}, "model_type 'llama' is not one of"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu' is not supported"),
        ({"hidden_size": 0}, "hidden_size must be at least 1"),
        ({"num_hidden_layers": 3}, "layer_types has 4 entries for 3 layers"),
        ({"layer_types": ["linear_attention"] * 3 + ["mamba"]}, "layer type 'mamba' is not supported"),
        ({"num_key_value_heads": 3}, "multiple of num_key_value_heads"),
        ({"linear_num_value_heads": 3}, "multiple of linear_num_key_heads"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type 'yarn' is not supported"),
        ({"vocab_size": None}, "config.json: "),
        ({"num_experts": 2, "num_experts_per_tok": 3}, "num_experts_per_tok must be between"),
    ],
)
def test_a_config_that_can_t_be_used_is_said_in_one_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadCheckpoint, match=r"config\.json") as caught:
        ModelConfig.read({**BASE, **change})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def not_json(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def without_weights(folder: Path) -> None:
    (folder / SINGLE).unlink()


def cut_off(folder: Path) -> None:
    whole = (folder / SINGLE).read_bytes()
    (folder / SINGLE).write_bytes(whole[:-1000])


def no_header(folder: Path) -> None:
    (folder / SINGLE).write_bytes(b"\xff" * 64)


def other_width(folder: Path) -> None:
    raw = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**raw, "intermediate_size": 49}))


def other_type(folder: Path) -> None:
    whole = (folder / SINGLE).read_bytes()
    (folder / SINGLE).write_bytes(whole.replace(b'"F32"', b'"I32"'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without_config, "has no config.json"),
        (not_json, "can't be read as JSON"),
        (without_weights, f"has neither {SINGLE} nor {INDEX}"),
        (cut_off, "damaged"),
        (no_header, "not a safetensors file"),
        (other_width, "has shape (48, 32), and config.json asks for (49, 32)"),
        (other_type, "is I32, and only F64, F32, F16, BF16 can be read"),
    ],
)
def test_a_folder_that_can_t_be_used_is_said_in_one_line(
    folder: Path, damage: Callable[[Path], None], said: str
) -> None:
    damage(folder)
    with pytest.raises(BadCheckpoint) as caught:
        Runner(folder)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_head_is_said(folder: Path) -> None:
    tensors = Tensors(folder)
    kept = {name: tensors.read(name) for name in tensors.names() if name != "lm_head.weight"}
    write(folder / SINGLE, kept)
    with pytest.raises(BadCheckpoint, match=r"no lm_head\.weight"):
        load_head(folder, config())


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        random_checkpoint(tmp_path / name, config("experts"), seed=8)
    for file in ("config.json", SINGLE, "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_shards_and_a_wrapper_s_prefix_are_read(folder: Path) -> None:
    expected = Runner(folder).prefill(prompt(30))
    tensors = Tensors(folder)
    names = {name.replace("model.", "model.language_model.", 1): name for name in tensors.names()}
    shards: dict[str, dict[str, Any]] = {"a.safetensors": {}, "b.safetensors": {}}
    weight_map = {}
    for number, (name, old) in enumerate(names.items()):
        shard = sorted(shards)[number % 2]
        shards[shard][name] = tensors.read(old)
        weight_map[name] = shard
    for shard, held in shards.items():
        write(folder / shard, held)
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    (folder / SINGLE).unlink()
    np.testing.assert_array_equal(Runner(folder).prefill(prompt(30)), expected)


def test_only_the_layers_asked_for_are_loaded(folder: Path) -> None:
    tensors = Tensors(folder)
    kept = {name: tensors.read(name) for name in tensors.names() if ".layers.0." not in name}
    write(folder / SINGLE, kept)
    assert [layer.number for layer in load_layers(folder, config(), 1, 3)] == [1, 2]
    with pytest.raises(BadCheckpoint, match=r"has no tensor model\.layers\.0"):
        load_layers(folder, config(), 0, 1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_weights_are_rounded_at_load_as_in_the_file(tmp_path: Path, dtype: str) -> None:
    for name, stored, loaded in (("stored", dtype, "float32"), ("loaded", "float32", dtype)):
        random_checkpoint(tmp_path / name, config(), seed=2, dtype=stored)
        found = load_embedding(tmp_path / name, config(), loaded)
        np.testing.assert_array_equal(found, rounded(found, dtype))
    assert ModelConfig.load(tmp_path / "stored").dtype == dtype
    one, two = (Runner(tmp_path / name, dtype).prefill(prompt(40)) for name in ("stored", "loaded"))
    np.testing.assert_array_equal(one, two)


def test_an_unknown_dtype_is_said(folder: Path) -> None:
    with pytest.raises(BadCheckpoint, match="dtype 'int8' is not one of float32, float16, bfloat16"):
        load_embedding(folder, config(), "int8")


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_is_the_nearest(value: float) -> None:
    original = np.array([value], np.float32)
    bits = to_bfloat16_bits(original)
    found = from_bfloat16_bits(bits)
    if not np.isfinite(found[0]):
        assert abs(value) > 3.38e38
        return
    neighbours = [np.array([(int(bits[0]) + step) & 0xFFFF], np.uint16) for step in (-1, 1)]
    for other in map(from_bfloat16_bits, neighbours):
        if np.isfinite(other[0]):
            near = np.abs(found.astype(np.float64) - original)
            assert (near <= np.abs(other.astype(np.float64) - original)).all()


def test_bfloat16_keeps_nan_and_infinity() -> None:
    kept = from_bfloat16_bits(to_bfloat16_bits(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)))
    np.testing.assert_array_equal(kept, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32))
