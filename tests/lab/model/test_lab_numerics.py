"""However a prompt is cut, batched or captured, the model says the same."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.model.models import VARIANTS, config, prompt

from culpa_lab.model import (
    Array,
    GdnState,
    GdnWeights,
    Workspace,
    random_checkpoint,
)
from culpa_lab.model.delta import CHUNK, Steps, delta_chunks, delta_step, invert_unit_lower
from culpa_lab.model.gdn import gdn_prefill
from culpa_lab.model.simple import Runner

PROMPT = prompt(600)


@pytest.fixture(scope="module", params=list(VARIANTS))
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("random")
    random_checkpoint(folder, config(request.param), seed=3)
    return Runner(folder)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("dense")
    random_checkpoint(folder, config(), seed=4)
    return Runner(folder)


def assert_close(found: Array, expected: Array) -> None:
    """Of values near 1: sums of some hundred float32 terms in another order, over some layers."""
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


def states(runner: Runner) -> list[Array]:
    """Copies of all that the model remembers."""
    found: list[Array] = []
    for cache in runner.caches:
        pair = (cache.conv, cache.recurrent) if isinstance(cache, GdnState) else (cache.k, cache.v)
        found += [one.copy() for one in pair]
    return found


def test_prefill_in_any_segments_equals_one_prefill(runner: Runner) -> None:
    runner.reset()
    whole, remembered = runner.prefill(PROMPT, chunk=len(PROMPT), every=True), states(runner)
    for chunk in (1 + len(PROMPT) // 2, 256, 37):
        runner.reset()
        assert_close(runner.prefill(PROMPT, chunk=chunk, every=True), whole)
        for cut, uncut in zip(states(runner), remembered, strict=True):
            assert_close(cut, uncut)


def test_decode_equals_prefill(runner: Runner) -> None:
    runner.reset()
    whole = runner.prefill(PROMPT[:80], every=True)
    runner.reset()
    runner.prefill(PROMPT[:40])
    for position in range(40, 80):
        assert_close(runner.decode(PROMPT[position]), whole[position])


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, 199), unique=True, max_size=6))
def test_any_cut_of_a_prompt_gives_the_same(dense: Runner, cuts: Sequence[int]) -> None:
    dense.reset()
    whole = dense.prefill(PROMPT[:200])
    dense.reset()
    edges = [0, *sorted(cuts), 200]
    for first, last in pairwise(edges):
        found = dense.prefill(PROMPT[first:last])
    assert_close(found, whole)


def drawn_steps(seed: int, length: int, decay: float, repeat: bool) -> tuple[Steps, Array]:
    """Inputs of the delta rule as a layer makes them, padded to whole chunks, and a state."""
    draw = np.random.default_rng(seed)
    padded = -(-length // CHUNK) * CHUNK
    q, k = (draw.standard_normal((2, 8, padded)).astype(np.float32) for _ in range(2))
    if repeat:
        k[:] = k[:, :, :1]
    q, k = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (q, k))
    v = draw.standard_normal((4, 6, padded)).astype(np.float32)
    log_decay = (-decay * draw.random((4, padded))).astype(np.float32)
    strength = draw.random((4, padded)).astype(np.float32) ** np.float32(0.1 if repeat else 1.0)
    steps = Steps(q, k, v, log_decay, strength)
    for array in steps:
        array[..., length:] = 0
    return steps, draw.standard_normal((4, 8, 6)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    length=st.integers(1, 3 * CHUNK + 5),
    # Small decays take the factored form, large ones would leave float32 in it.
    decay=st.sampled_from([0.0, 0.01, 1.0, 3.0, 30.0, 1000.0]),
    repeat=st.booleans(),
)
def test_the_chunked_delta_rule_equals_the_recurrent_one(
    seed: int, length: int, decay: float, repeat: bool
) -> None:
    steps, state = drawn_steps(seed, length, decay, repeat)
    stepped, chunked = state[None].copy(), state.copy()
    expected, found = np.zeros_like(steps.v), np.zeros_like(steps.v)
    for step in range(length):
        q, k, v, g, b = (array[None, ..., step] for array in steps)
        read = np.zeros_like(v)
        delta_step(q, k, v, np.exp(g), b, stepped, read, Workspace())
        expected[..., step] = read[0]
    delta_chunks(steps, chunked, found, Workspace())
    found, expected = found[..., :length], expected[..., :length]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=5e-5)
    np.testing.assert_allclose(chunked, stepped[0], rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("size", [4, 8, 16, 32, 64])
def test_the_inverse_is_exact_where_keys_repeat(size: int) -> None:
    repeated = -np.ones((1, size, size), np.float32)
    # Powers of this one have entries like binomial coefficients, far beyond what its inverse has.
    expected = np.linalg.inv(np.eye(size) - np.tril(repeated[0].astype(np.float64), -1))
    found = invert_unit_lower(repeated, Workspace())[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_checkpoints_show_the_states_of_that_moment(dense: Runner) -> None:
    weights = dense.layers[0].mixer
    assert isinstance(weights, GdnWeights)
    x = np.random.default_rng(5).standard_normal((700, dense.config.hidden_size)).astype(np.float32)

    def fresh() -> GdnState:
        return GdnState(
            np.zeros(dense.config.conv_state_shape, np.float32),
            np.zeros(dense.config.recurrent_state_shape, np.float32),
        )

    shown: dict[int, tuple[Array, Array]] = {}

    def keep(count: int, conv: Array, recurrent: Array) -> None:
        shown[count] = conv.copy(), recurrent.copy()

    state, out = fresh(), np.empty_like(x)
    gdn_prefill(
        x, weights, state.conv, state.recurrent, out, Workspace(),
        checkpoint_at=(3, 256, 600, 700), on_checkpoint=keep,
    )  # fmt: skip
    assert list(shown) == [3, 256, 600, 700]
    for count, (conv, recurrent) in shown.items():
        alone, part = fresh(), np.empty((count, x.shape[1]), np.float32)
        gdn_prefill(x[:count], weights, alone.conv, alone.recurrent, part, Workspace())
        assert_close(conv, alone.conv)
        assert_close(recurrent, alone.recurrent)
        assert_close(out[:count], part)
