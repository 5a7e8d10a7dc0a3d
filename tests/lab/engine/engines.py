"""Engines on a small random model within the test's process, and what the model alone says."""

import atexit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.core import EngineCore
from culpa_lab.engine.request import NewRequest
from culpa_lab.engine.steps import Sampled, Sampling
from culpa_lab.engine.uniproc_executor import uniproc_engine
from culpa_lab.model import ModelConfig, random_checkpoint
from culpa_lab.model.simple import Runner

LAYERS = 8
END = 256
BLOCK = 16

Prompt = tuple[int, ...]


@cache
def checkpoint() -> Path:
    """A random model: eight layers, three GDN and one of full attention in turn."""
    folder = Path(mkdtemp(prefix="culpa-lab-test-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    shape = ModelConfig(
        vocab_size=258,
        hidden_size=32,
        num_hidden_layers=LAYERS,
        layer_types=("linear_attention", "linear_attention", "linear_attention", "full_attention") * 2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=48,
        linear_num_key_heads=1,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        eos_token_ids=(END,),
    )
    random_checkpoint(folder, shape, 1)
    return folder


@cache
def _runner() -> Runner:
    return Runner(checkpoint())


def prompt(length: int, seed: int = 0) -> Prompt:
    """Token ids without a pattern."""
    return tuple(int(token) for token in np.random.RandomState(seed).randint(0, 256, length))


@dataclass(frozen=True, slots=True)
class Expected:
    """What the model says without an engine: tokens, their log-probabilities, and how near the next best was."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    margins: tuple[float, ...]


@cache
def expected(asked: Prompt, length: int) -> Expected:
    """The greedy continuation of a prompt, not ended by the end token."""
    runner = _runner()
    runner.reset()
    scores = runner.prefill(asked)
    tokens, logprobs, margins = [], [], []
    for _ in range(length):
        normal = scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
        best = np.sort(normal)[::-1]
        tokens.append(int(normal.argmax()))
        logprobs.append(float(best[0]))
        margins.append(float(best[0] - best[1]))
        scores = runner.decode(tokens[-1])
    return Expected(tuple(tokens), tuple(logprobs), tuple(margins))


def engine(**settings: Any) -> EngineCore:
    """An engine in this process; settings are those of `EngineConfig`, small by default."""
    small: Mapping[str, Any] = {
        "model": checkpoint(),
        "served_model_name": "small",
        "partition": (LAYERS,),
        "max_model_len": 256,
        "block_size": BLOCK,
        "max_num_batched_tokens": 32,
        "max_num_seqs": 4,
        "num_gpu_blocks_override": 160,
        "capture_sizes": (1, 2, 4),
    }
    if settings.get("enable_prefix_caching") is False:
        settings.setdefault("mamba_cache_mode", "none")
    return uniproc_engine(EngineConfig(**{**small, **settings}))


@dataclass
class Answered:
    """What came of a request."""

    sampled: list[Sampled] = field(default_factory=list)
    finish: str | None = None
    cached: int = 0

    @property
    def tokens(self) -> tuple[int, ...]:
        """The answer's tokens."""
        return tuple(one.token for one in self.sampled)


def request(name: str, asked: Prompt, length: int = 8, **fields: Any) -> NewRequest:
    """A greedy request for exactly that many tokens."""
    sampling = fields.pop("sampling", Sampling(temperature=0, logprobs=1))
    return NewRequest(name, asked, length, sampling, frozenset([END]), ignore_eos=True, **fields)


def answer(core: EngineCore, rounds: Sequence[Sequence[Prompt]], length: int = 8) -> list[Answered]:
    """Rounds one after the other, the prompts of a round at once; answers in the order of the prompts."""
    found: list[Answered] = []
    for asked in rounds:
        names = [f"{len(found) + index}" for index in range(len(asked))]
        found += [Answered() for _ in asked]
        for name, one in zip(names, asked, strict=True):
            core.add(request(name, one, length))
        drain(core, {name: found[int(name)] for name in names})
    return found


def drain(core: EngineCore, answers: Mapping[str, Answered]) -> None:
    """Step until nothing is left to do."""
    for _ in range(2000):
        if not core.busy:
            return
        for output in core.step():
            assert output.sampled is not None
            one = answers[output.request]
            one.sampled.append(output.sampled)
            one.finish, one.cached = output.finish, output.cached
    raise AssertionError("the engine does not come to an end")


def deviation(found: Answered, asked: Prompt) -> float:
    """The largest difference of a log-probability from what the model says; infinite for another answer.

    Where the model itself is all but undecided between two tokens, either is right, and the comparison ends.
    """
    truth = expected(asked, len(found.sampled))
    largest = 0.0
    for one, token, logprob, margin in zip(
        found.sampled, truth.tokens, truth.logprobs, truth.margins, strict=True
    ):
        if one.token != token:
            return largest if margin < 1e-3 else float("inf")
        assert one.logprobs is not None
        if not np.isfinite(one.logprobs.logprob):
            return float("inf")
        largest = max(largest, abs(one.logprobs.logprob - logprob))
    return largest


TOLERANCE = 2e-3
"""Of a log-probability in float32, whatever the order of additions."""


def right(found: Sequence[Answered], rounds: Sequence[Sequence[Prompt]]) -> bool:
    """Whether all answers are what the model says."""
    asked = [one for several in rounds for one in several]
    return all(deviation(one, prompt) < TOLERANCE for one, prompt in zip(found, asked, strict=True))
