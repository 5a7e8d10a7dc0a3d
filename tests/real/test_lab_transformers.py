"""The reference engine's model against transformers, run now and not recorded, on longer prompts and in bfloat16."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.lab.model.models import VARIANTS, config, prompt, relative_difference
from tests.lab.model.record_golden import transformers_logits

import culpa_lab
from culpa_lab.model import Tokenizer, random_checkpoint
from culpa_lab.model.simple import Runner

pytestmark = pytest.mark.engine
LENGTH, DECODED = 1500, 16


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("variant", "dtype"),
    [*((variant, "float32") for variant in VARIANTS), ("dense", "bfloat16"), ("qwen3.5-experts", "bfloat16")],
)
def test_logits_are_those_of_transformers(vllm: str, variant: str, dtype: str, tmp_path: Path) -> None:
    random_checkpoint(tmp_path, config(variant), seed=5, dtype=dtype)
    tokens = prompt(LENGTH)
    expected = transformers_logits(vllm, tmp_path, tokens, DECODED)
    for chunk in (LENGTH, 256, 100):
        runner = Runner(tmp_path)
        read = runner.prefill(tokens[:-DECODED], chunk=chunk, every=True)
        found = np.concatenate([read, [runner.decode(token) for token in tokens[-DECODED:]]])
        assert relative_difference(found, expected) < 1e-4


@pytest.mark.timeout(600)
def test_the_checkpoint_that_ships_is_the_same_model_in_transformers(vllm: str, tmp_path: Path) -> None:
    shutil.copytree(Path(culpa_lab.__file__).parent / "checkpoint", tmp_path, dirs_exist_ok=True)
    tokenizer = Tokenizer.load(tmp_path)
    question = tokenizer.apply_chat_template([{"role": "user", "content": "2+2=?"}])
    tokens = tokenizer.encode("Some words of a long text, and 12 more. " * 60)[:LENGTH] + question
    expected = transformers_logits(vllm, tmp_path, tokens, DECODED)
    runner = Runner(tmp_path)
    read = runner.prefill(tokens[:-DECODED], chunk=256, every=True)
    found = np.concatenate([read, [runner.decode(token) for token in tokens[-DECODED:]]])
    assert relative_difference(found, expected) < 1e-3
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
