"""Attention by tiles and pages against the formula, for soft and sharp heads."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.model.models import config

from culpa_lab.model import (
    Array,
    AttentionWeights,
    NormWeights,
    Rotary,
    Workspace,
    attention_decode,
    attention_prefill,
)
from culpa_lab.model.simple import PlainCache

SHAPE = config()
HEADS, KV_HEADS, DIM, HIDDEN = 4, 2, 16, 32


def weights(sharpness: float) -> AttentionWeights:
    """Random projections; scores of about `sharpness` times their usual size."""
    draw = np.random.RandomState(3)
    rows = HEADS + KV_HEADS
    gain = np.ones((rows, DIM), np.float32)
    gain[:HEADS] *= sharpness
    gain[HEADS:] *= np.sqrt(DIM)
    return AttentionWeights(
        in_proj=draw.standard_normal((HIDDEN, (2 * HEADS + 2 * KV_HEADS) * DIM)).astype(np.float32),
        in_bias=None,
        norm=NormWeights(gain, np.float32(DIM * 1e-6)),
        out_proj=np.eye(HEADS * DIM, dtype=np.float32),
        out_bias=None,
        heads=HEADS,
        kv_heads=KV_HEADS,
        head_dim=DIM,
        rotary_dim=8,
    )


def by_formula(x: Array, w: AttentionWeights) -> npt.NDArray[np.float64]:
    """The whole prompt at once in float64."""
    steps = len(x)
    heads = (x.astype(np.float64) @ w.in_proj).reshape(steps, -1, DIM)
    both = heads[:, : HEADS + KV_HEADS]
    both = both / np.sqrt((both**2).sum(-1, keepdims=True) + w.norm.epsilon) * w.norm.gain
    cos, sin = (table.astype(np.float64) for table in Rotary(SHAPE).tables(np.arange(steps)))
    first, second = both[..., :4].copy(), both[..., 4:8].copy()
    both[..., :4], both[..., 4:8] = first * cos - second * sin, second * cos + first * sin
    out = np.empty((steps, HEADS, DIM))
    for head in range(HEADS):
        key_head = head // (HEADS // KV_HEADS)
        scores = both[:, head] @ both[:, HEADS + key_head].T
        scores[np.triu_indices(steps, 1)] = -np.inf
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        gate = 1 / (1 + np.exp(-2 * heads[:, 2 * KV_HEADS + HEADS + head]))
        out[:, head] = shares @ heads[:, HEADS + KV_HEADS + key_head] * gate
    return out.reshape(steps, -1)


class Paged(PlainCache):
    """Gives its content in pages of one size."""

    def __init__(self, page: int) -> None:
        super().__init__((KV_HEADS, DIM))
        self._page = page

    def read(self) -> Iterator[tuple[Array, Array]]:
        for first in range(0, self.length, self._page):
            yield self.k[first : first + self._page], self.v[first : first + self._page]


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 10.0, 300.0])
def test_the_running_maximum_gives_the_softmax(sharpness: float) -> None:
    w = weights(sharpness)
    x = np.random.RandomState(1).standard_normal((900, HIDDEN)).astype(np.float32)
    found = np.empty((900, HEADS * DIM), np.float32)
    attention_prefill(x, w, Rotary(SHAPE).tables(np.arange(900)), Paged(256), found, Workspace())
    # Sharp scores are large: float32 leaves less behind their point.
    close = 2e-5 * max(1.0, sharpness)
    np.testing.assert_allclose(found, by_formula(x, w), atol=close, rtol=1e-4)


@settings(max_examples=30, deadline=None)
@given(
    page=st.integers(1, 300),
    cut=st.integers(1, 399),
    sharpness=st.sampled_from([0.5, 3.0, 40.0]),
    rows=st.integers(1, 3),
)
def test_pages_and_cuts_and_decode_change_nothing(page: int, cut: int, sharpness: float, rows: int) -> None:
    w, workspace, rotary = weights(sharpness), Workspace(), Rotary(SHAPE)
    x = np.random.RandomState(2).standard_normal((400 + rows, HIDDEN)).astype(np.float32)
    cache = Paged(page)
    found = np.empty((len(x), HEADS * DIM), np.float32)
    for first, last in ((0, cut), (cut, 400)):
        rope = rotary.tables(np.arange(first, last))
        attention_prefill(x[first:last], w, rope, cache, found[first:last], workspace)
    for row in range(400, len(x)):
        attention_decode(x[row : row + 1], w, rotary.tables([row]), [cache], found[row : row + 1], workspace)
    close = 2e-5 * max(1.0, sharpness)
    np.testing.assert_allclose(found, by_formula(x, w), atol=close, rtol=1e-4)
