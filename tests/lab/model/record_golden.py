"""Record what transformers says about the random models of `models.py`, for tests that run without torch.

    CULPA_VLLM_PYTHON=/path/to/python python -m tests.lab.model.record_golden

Writes golden/VARIANT.npz: `positions` [kept] and `logits` [kept, vocabulary] of the prompt `models.prompt`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tests.lab.model.models import SEED, VARIANTS, config, prompt

from culpa_lab.model import Array, random_checkpoint

GOLDEN = Path(__file__).with_name("golden")
LENGTH = 200
DECODED = 8


def transformers_logits(python: str, folder: Path, tokens: list[int], decode: int) -> Array:
    """Logits [tokens, vocabulary] of transformers, in a process of its own."""
    script = Path(__file__).with_name("transformers_logits.py")
    (folder / "tokens.json").write_text(json.dumps(tokens))
    command = [python, str(script), "out.npz", ".", "tokens.json", "--decode", str(decode)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return np.asarray(np.load(folder / "out.npz")["logits"], np.float32)


def main() -> None:
    """Record all variants: the chunk edges of prefill, some between, and all that are decoded."""
    python = os.environ.get("CULPA_VLLM_PYTHON", sys.executable)
    positions = sorted({*range(0, LENGTH, 13), 63, 64, 127, 128, *range(LENGTH - DECODED - 1, LENGTH)})
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as name:
            random_checkpoint(Path(name), config(variant), SEED)
            logits = transformers_logits(python, Path(name), prompt(LENGTH), DECODED)
        np.savez_compressed(GOLDEN / f"{variant}.npz", positions=positions, logits=logits[positions])
        print(variant, logits.shape)


if __name__ == "__main__":
    main()
