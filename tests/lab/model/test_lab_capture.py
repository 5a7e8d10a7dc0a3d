"""A decode batch says what each request says alone; a captured step says what an eager one does."""

from pathlib import Path

import numpy as np
import pytest
from tests.lab.model.models import VARIANTS, config, prompt

from culpa_lab.model import (
    Array,
    GdnState,
    KeyValueCache,
    Launch,
    Rotary,
    Tape,
    Workspace,
    decode_layer,
    eager,
    embed,
    logits,
    random_checkpoint,
)
from culpa_lab.model.simple import PlainCache, Runner

LENGTHS = (5, 70, 131)
STEPS = 6


@pytest.fixture(scope="module", params=list(VARIANTS))
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("random")
    random_checkpoint(folder, config(request.param), seed=9)
    return Runner(folder)


class NoCache:
    """A padded row's: forgets what is written and has nothing to read."""

    def write(self, k: Array, v: Array, /) -> None:
        pass

    def read(self) -> list[tuple[Array, Array]]:
        return []


class Batch:
    """A decode batch on static buffers, padded to `width` rows."""

    def __init__(self, runner: Runner, prompts: list[list[int]], width: int) -> None:
        self.runner = runner
        self.rotary = Rotary(runner.config)
        self.workspace = Workspace()
        self.caches: list[GdnState | list[KeyValueCache]] = []
        self.expected: list[list[Array]] = []
        shape = runner.config
        for layer in range(shape.num_hidden_layers):
            if shape.is_linear(layer):
                conv = np.zeros((width, *shape.conv_state_shape), np.float32)
                self.caches.append(
                    GdnState(conv, np.zeros((width, *shape.recurrent_state_shape), np.float32))
                )
            else:
                self.caches.append([NoCache() for _ in range(width)])
        for row, tokens in enumerate(prompts):
            runner.reset()
            runner.prefill(tokens)
            for cache, own in zip(self.caches, runner.caches, strict=True):
                if isinstance(own, GdnState):
                    assert isinstance(cache, GdnState)
                    cache.conv[row], cache.recurrent[row] = own.conv, own.recurrent
                else:
                    assert isinstance(cache, list)
                    copied = PlainCache(shape.kv_shape_per_token)
                    copied.write(own.k, own.v)
                    cache[row] = copied
            self.expected.append([runner.decode(token) for token in prompt(STEPS)])
        self.tokens = np.zeros(width, np.int64)
        self.positions = np.zeros(width, np.int64)
        self.positions[: len(prompts)] = [len(tokens) for tokens in prompts]
        self.x = np.zeros((width, shape.hidden_size), np.float32)
        self.rope = self.rotary.empty(width)
        self.out = np.zeros((width, shape.vocab_size), np.float32)

    def step(self, launch: Launch) -> None:
        launch(self.rotary.fill, self.positions, self.rope)
        embed(self.tokens, self.runner.embedding, self.x, launch)
        for weights, cache in zip(self.runner.layers, self.caches, strict=True):
            decode_layer(self.x, weights, cache, self.rope, self.workspace, launch)
        logits(self.x, self.runner.head, self.out, self.workspace, launch)

    def check(self, step: int) -> None:
        for row, expected in enumerate(self.expected):
            np.testing.assert_allclose(self.out[row], expected[step], rtol=1e-4, atol=1e-4)


def prompts() -> list[list[int]]:
    return [prompt(length) for length in LENGTHS]


def test_a_decode_batch_equals_single_decodes(runner: Runner) -> None:
    batch = Batch(runner, prompts(), len(LENGTHS))
    for step, token in enumerate(prompt(STEPS)):
        batch.tokens[:] = token
        batch.step(eager)
        batch.check(step)
        batch.positions += 1


def test_a_captured_step_padded_to_a_bucket_equals_single_decodes(runner: Runner) -> None:
    batch = Batch(runner, prompts(), 8)
    tape = Tape()
    batch.step(tape)
    before = batch.out.copy()
    assert (before == 0).all(), "capturing runs nothing"
    for step, token in enumerate(prompt(STEPS)):
        batch.tokens[:3] = token
        tape.replay()
        batch.check(step)
        batch.positions[:3] += 1


def test_a_captured_step_allocates_no_scratch(runner: Runner) -> None:
    batch = Batch(runner, prompts(), 4)
    tape = Tape()
    batch.step(tape)
    tape.replay()
    held = batch.workspace.nbytes
    tape.replay()
    assert batch.workspace.nbytes == held


def test_a_tape_keeps_the_addresses_of_its_capture(runner: Runner) -> None:
    batch = Batch(runner, prompts(), 4)
    tape = Tape()
    batch.step(tape)
    # A new array under the old name: the tape still reads the old one, which holds zeros.
    batch.tokens = np.full_like(batch.tokens, 7)
    tape.replay()
    first = batch.out.copy()
    again = Batch(runner, prompts(), 4)
    again.step(eager)
    np.testing.assert_allclose(first, again.out, rtol=1e-4, atol=1e-4)


def test_one_workspace_serves_every_size(runner: Runner) -> None:
    workspace = Workspace()
    small = workspace.array("x", 2, 3)
    large = workspace.array("x", 5, 7)
    assert large.shape == (5, 7)
    assert workspace.array("x", 5, 7) is large
    assert workspace.array("x", 2, 3).base is large.base
    assert small.shape == (2, 3), "what was handed out stays valid"


def test_generate_stops_at_an_end_token(tmp_path: Path) -> None:
    random_checkpoint(tmp_path, config(), seed=2)
    runner = Runner(tmp_path)
    whole = runner.generate(prompt(20), 10)
    assert len(whole) == 10
    ends = runner.head.projection
    # The end token takes the weights of what would be said fourth: from then on it is at least as likely.
    ends[:, 256] = 1.01 * ends[:, whole[3]]
    runner.reset()
    cut = runner.generate(prompt(20), 10)
    assert cut == whole[: whole.index(whole[3])]
