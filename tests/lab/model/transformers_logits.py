"""What transformers' own implementation says about a checkpoint: run with a Python that has torch and transformers.

    python transformers_logits.py OUT.npz FOLDER TOKENS.json [--decode 8]

TOKENS.json is a list of token ids. OUT.npz gets `logits` [tokens, vocabulary], float32: those before the last
`--decode` tokens from one prefill, the rest token by token with transformers' cache.
"""

import argparse
import json
from pathlib import Path

import numpy as np


def main() -> None:
    """Load in float32, run, save."""
    import torch
    from transformers import AutoModelForCausalLM

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--decode", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model, loading = AutoModelForCausalLM.from_pretrained(
        arguments.folder, dtype=torch.float32, output_loading_info=True
    )
    # A tensor that is not loaded would be drawn at random, and the comparison would be with another model.
    problems = {key: sorted(map(str, found)) for key, found in loading.items() if found}
    if problems:
        raise SystemExit(f"{arguments.folder} is not loaded as it is: {problems}")
    tokens = torch.tensor(json.loads(arguments.tokens.read_text()))[None]
    start = tokens.shape[1] - arguments.decode
    with torch.no_grad():
        first = model(tokens[:, :start], use_cache=True)
        found = [first.logits[0]]
        cache = first.past_key_values
        for position in range(start, tokens.shape[1]):
            step = model(tokens[:, position : position + 1], past_key_values=cache, use_cache=True)
            found.append(step.logits[0])
    np.savez_compressed(arguments.out, logits=torch.cat(found).numpy().astype(np.float32))


if __name__ == "__main__":
    main()
