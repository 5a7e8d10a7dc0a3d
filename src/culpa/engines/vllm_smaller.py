"""The same launch with a smaller model of the same kind: for faults that do not lie in the answers.

vLLM fills a model with random weights under `--load-format dummy`, and `--hf-overrides` changes its configuration
(https://docs.vllm.ai/en/latest/cli/serve/): fewer layers, in whole periods of the pattern of their kinds.
"""

import json

from culpa.engines.vllm_model import ModelFacts

PARTITION = "VLLM_PP_LAYER_PARTITION"


def smaller_options(
    facts: ModelFacts, stages: int, partitioned: bool
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Options to add, each set with a few words: the smallest model first, at last only other weights.

    Every stage keeps a whole period. With a partition of the user's own the number of layers is not changed.
    """
    dummy = ("--load-format", "dummy")
    found = []
    period = facts.period or 1
    if facts.layers is not None and not partitioned:
        for periods in (stages, 2 * stages):
            layers = period * periods
            if layers < facts.layers:
                overrides: dict[str, object] = {"num_hidden_layers": layers}
                if facts.layer_types:
                    overrides["layer_types"] = list(facts.layer_types[:layers])
                words = (*dummy, "--hf-overrides", json.dumps(overrides))
                found.append((f"{layers} of {facts.layers} layers, random weights", words))
    return (*found, ("random weights", dummy))
