"""How fast the reference engine's model is on one core: prefill by context, decode eager against captured, in one run.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.lab_model [--context 8192] [--layers 64] [--rounds 3] [--json]

The model is random, in the shape of the one that ships, unless `--model` names a folder; every fourth layer is full
attention, the others are gated delta nets. Seconds are the process's own (CPU time), so that waiting does not count.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# Before NumPy is loaded: one core is what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from culpa_lab.model import (
    GdnState,
    KeyValueCache,
    ModelConfig,
    Rotary,
    Tape,
    Tokenizer,
    Workspace,
    decode_layer,
    embed,
    logits,
    random_checkpoint,
)
from culpa_lab.model.simple import Runner

WORDS = (
    "the",
    "of",
    "in",
    "and",
    "record",
    "value",
    "number",
    "report",
    "invoice",
    "city",
    "river",
    "12",
    "question",
)


def shape(layers: int, heads: int) -> ModelConfig:
    """64 wide, 3 of 4 layers gated delta nets, as the model that ships."""
    return ModelConfig(
        vocab_size=512,
        hidden_size=64,
        num_hidden_layers=layers,
        layer_types=tuple(
            "linear_attention" if (layer + 1) % 4 else "full_attention" for layer in range(layers)
        ),
        num_attention_heads=heads,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=40,
        linear_num_key_heads=1,
        linear_num_value_heads=heads,
        linear_key_head_dim=16,
        linear_value_head_dim=20,
        partial_rotary_factor=0.125,
    )


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


class Step:
    """A decode step of one request after the runner's prompt, eager or captured."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._rotary = Rotary(runner.config)
        self._workspace = Workspace()
        self._tokens = np.zeros(1, np.int64)
        self._positions = np.full(1, runner.position, np.int64)
        self._x = np.zeros((1, runner.config.hidden_size), np.float32)
        self._out = np.zeros((1, runner.config.vocab_size), np.float32)
        self._rope = self._rotary.empty(1)
        self._caches: list[GdnState | list[KeyValueCache]] = [
            GdnState(cache.conv[None], cache.recurrent[None]) if isinstance(cache, GdnState) else [cache]
            for cache in runner.caches
        ]
        self._tape = Tape()
        self._run(self._tape)

    def _run(self, tape: Tape | None) -> None:
        launch = {} if tape is None else {"launch": tape}
        (tape or _at_once)(self._rotary.fill, self._positions, self._rope)
        embed(self._tokens, self._runner.embedding, self._x, **launch)
        for weights, cache in zip(self._runner.layers, self._caches, strict=True):
            decode_layer(self._x, weights, cache, self._rope, self._workspace, **launch)
        logits(self._x, self._runner.head, self._out, self._workspace, **launch)

    def eager(self) -> None:
        """One step."""
        self._run(None)

    def captured(self) -> None:
        """The same step, replayed."""
        self._tape.replay()


def _at_once(kernel: Callable[..., object], /, *arguments: object) -> None:
    kernel(*arguments)


def words(folder: Path, context: int) -> list[int]:
    """Token ids of a text without a meaning: what attention may skip depends on what it reads."""
    draw = np.random.RandomState(0)
    text = " ".join(WORDS[number] for number in draw.randint(0, len(WORDS), 2 * context))
    return Tokenizer.load(folder).encode(text)[:context]


def measure(runner: Runner, tokens: list[int], chunk: int, rounds: int) -> dict[str, float]:
    """Tokens a second, and the ratio of captured to eager."""
    figures: dict[str, list[float]] = {"prefill": [], "eager": [], "captured": [], "captured_to_eager": []}
    runner.reset()
    runner.prefill(tokens[:chunk])
    for _ in range(rounds):
        runner.reset()
        figures["prefill"].append(len(tokens) / seconds(lambda: runner.prefill(tokens, chunk)))
        step = Step(runner)
        one = [[seconds(step.eager), seconds(step.captured)] for _ in range(20)]
        eager, captured = (statistics.median(column) for column in zip(*one, strict=True))
        figures["eager"].append(1 / eager)
        figures["captured"].append(1 / captured)
        figures["captured_to_eager"].append(eager / captured)
    return {name: statistics.median(values) for name, values in figures.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--context", type=int, nargs="+", default=[512, 8192])
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--heads", type=int, default=1, help="query heads and value heads, on one key head")
    parser.add_argument("--model", type=Path, help="a model's folder, instead of random weights")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.model or Path(name)
        if not arguments.model:
            random_checkpoint(folder, shape(arguments.layers, arguments.heads), 1)
        runner = Runner(folder)
        for context in arguments.context:
            found[context] = measure(runner, words(folder, context), arguments.chunk, arguments.rounds)
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{'context':>8s} {'prefill tok/s':>14s} {'decode eager':>13s} {'captured':>9s} {'ratio':>6s}")
    for context, figures in found.items():
        print(
            f"{context:8d} {figures['prefill']:14.0f} {figures['eager']:13.0f} {figures['captured']:9.0f}"
            f" {figures['captured_to_eager']:6.2f}"
        )


if __name__ == "__main__":
    main()
