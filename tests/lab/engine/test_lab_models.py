"""Models of other shapes than the one that ships run in the engine as they do alone."""

from pathlib import Path

import numpy as np
import pytest
from tests.lab.engine.engines import Answered, drain, prompt, request
from tests.lab.model.models import BASE, VARIANTS

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.uniproc_executor import uniproc_engine
from culpa_lab.model import ModelConfig, random_checkpoint
from culpa_lab.model.simple import Runner

SHAPES = {
    **{name: dict(variant) for name, variant in VARIANTS.items()},
    "full attention alone": {"layer_types": ["full_attention"] * 4},
    "gated delta nets alone": {"layer_types": ["linear_attention"] * 4},
    "more attention": {
        "layer_types": ["full_attention", "full_attention", "full_attention", "linear_attention"]
    },
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_a_model_answers_in_the_engine_as_alone(name: str, eager: bool, tmp_path: Path) -> None:
    shape = ModelConfig.read({**BASE, **SHAPES[name]})
    random_checkpoint(tmp_path, shape, seed=3)
    core = uniproc_engine(
        EngineConfig(
            model=tmp_path,
            served_model_name="shape",
            partition=(1, 3),
            max_model_len=256,
            block_size=16,
            max_num_batched_tokens=40,
            max_num_seqs=3,
            num_gpu_blocks_override=120,
            capture_sizes=(1, 2, 4),
            enforce_eager=eager,
        )
    )
    prompts = [prompt(70, seed=1), prompt(20, seed=2), prompt(70, seed=1)]
    answers = {str(index): Answered() for index in range(len(prompts))}
    for index, asked in enumerate(prompts):
        core.add(request(str(index), asked))
    drain(core, answers)
    runner = Runner(tmp_path)
    for index, asked in enumerate(prompts):
        runner.reset()
        scores = runner.prefill(asked)
        for one in answers[str(index)].sampled:
            best = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
            assert one.logprobs is not None
            assert one.logprobs.logprob == pytest.approx(float(best[one.token]), abs=2e-3)
            assert best[one.token] == pytest.approx(float(best.max()), abs=2e-3)
            scores = runner.decode(one.token)
