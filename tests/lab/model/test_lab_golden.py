"""Logits against those that transformers gave for the same random checkpoints (golden/, made by record_golden.py)."""

from pathlib import Path

import numpy as np
import pytest
from tests.lab.model.models import SEED, VARIANTS, config, prompt, relative_difference
from tests.lab.model.record_golden import DECODED, GOLDEN, LENGTH

from culpa_lab.model import random_checkpoint
from culpa_lab.model.simple import Runner


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_transformers(variant: str, tmp_path: Path) -> None:
    random_checkpoint(tmp_path, config(variant), SEED)
    runner, tokens = Runner(tmp_path), prompt(LENGTH)
    golden = np.load(GOLDEN / f"{variant}.npz")
    read = runner.prefill(tokens[:-DECODED], chunk=90, every=True)
    found = np.concatenate([read, [runner.decode(token) for token in tokens[-DECODED:]]])
    assert relative_difference(found[golden["positions"]], golden["logits"]) < 2e-5
