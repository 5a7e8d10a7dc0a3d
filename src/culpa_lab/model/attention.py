"""Gated full attention over a cache of pages, with grouped key/value heads.

Formulas: transformers, modeling_qwen3_next.py (Qwen3NextAttention): per-head zero-centred norm of q and k, partial
rotary embedding, softmax(q kᵀ / sqrt(head dim)) v, times sigmoid(gate). The softmax of prefill goes tile by tile with
running maximum and sum (Milakov, Gimelshein, https://arxiv.org/abs/1805.02867; Dao et al., FlashAttention,
https://arxiv.org/abs/2205.14135). Where the norms bound every score, no maximum is needed (`_NO_MAXIMUM`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.launch import Launch, Workspace, eager
from culpa_lab.model.norm import half_sigmoid, rms_norm
from culpa_lab.model.rotary import RotaryTables, rotate
from culpa_lab.model.weights import AttentionWeights

QUERY_TILE = 256
KEY_TILE = 512
_ROWS = 512
"""Tokens that are projected at once."""
_NO_MAXIMUM = 40.0
"""exp(±40) and a sum of millions of them are far inside float32."""


class KeyValueCache(Protocol):
    """The keys and values of one request in one layer. Keys are stored after norm and rotary embedding."""

    def write(self, k: Array, v: Array, /) -> None:
        """Store those of the next tokens: both [tokens, kv heads, head dim]."""

    def read(self) -> Iterable[tuple[Array, Array]]:
        """Pages in order of position, from 0 to what was written last: (k, v), both [any, kv heads, head dim]."""


def attention_prefill(
    x: Array, w: AttentionWeights, rope: RotaryTables, cache: KeyValueCache, out: Array, workspace: Workspace
) -> None:
    """One request's segment of T tokens that follow what the cache holds.

    Args:
        x: [T, hidden], after the layer's input norm.
        rope: tables of the T positions.
        cache: gets the segment's keys and values, and is then read as a whole, once. The last T of what it
            gives are the segment's own.
        out: [T, hidden]; may be `x`.
    """
    steps = len(x)
    queries = workspace.array("attention.queries", steps, w.heads, w.head_dim)
    gates = workspace.array("attention.gates", steps, w.heads, w.head_dim)
    for first in range(0, steps, _ROWS):
        rows = slice(first, min(first + _ROWS, steps))
        q, k, v, gate = _project(x[rows], w, (rope[0][rows], rope[1][rows]), workspace, eager)
        queries[rows], gates[rows] = q, gate
        cache.write(k, v)
    keys, values, total = _gather(cache.read(), w, workspace)
    for first in range(0, steps, QUERY_TILE):
        rows = slice(first, min(first + QUERY_TILE, steps))
        _attend_tile(queries[rows], keys, values, total - steps + first, w, workspace)
    half_sigmoid(gates)
    np.multiply(queries, gates, queries)
    np.matmul(queries.reshape(steps, -1), w.out_proj, out)
    if w.out_bias is not None:
        np.add(out, w.out_bias, out)


def attention_decode(
    x: Array,
    w: AttentionWeights,
    rope: RotaryTables,
    caches: Sequence[KeyValueCache],
    out: Array,
    workspace: Workspace,
    launch: Launch = eager,
) -> None:
    """One token for each of N requests.

    Args:
        x: [N, hidden], after the layer's input norm.
        rope: tables of the N positions.
        caches: of the N requests. Captured, they are bound as objects and used at replay. One that gives no page
            (a padded row) leaves zeros.
        out: [N, hidden]; may be `x`.
    """
    requests = len(x)
    q, k, v, gate = _project(x, w, rope, workspace, launch)
    mixed = workspace.array("attention.mixed", requests, w.heads, w.head_dim)
    launch(_attend_each, q, k, v, tuple(caches), mixed, workspace)
    half_sigmoid(gate, launch)
    launch(np.multiply, mixed, gate, mixed)
    launch(np.matmul, mixed.reshape(requests, -1), w.out_proj, out)
    if w.out_bias is not None:
        launch(np.add, out, w.out_bias, out)


def _project(
    x: Array, w: AttentionWeights, rope: RotaryTables, workspace: Workspace, launch: Launch
) -> tuple[Array, Array, Array, Array]:
    """Queries and keys ready for use, values, and gates / 2: views [rows, heads, head dim] of scratch."""
    rows = len(x)
    projected = workspace.array("attention.projected", rows, w.in_proj.shape[1])
    launch(np.matmul, x, w.in_proj, projected)
    if w.in_bias is not None:
        launch(np.add, projected, w.in_bias, projected)
    heads = projected.reshape(rows, -1, w.head_dim)
    both = heads[:, : w.heads + w.kv_heads]
    rms_norm(both, w.norm, both, workspace, launch)
    rotate(both, rope, w.rotary_dim, workspace, launch)
    values = w.heads + w.kv_heads
    return (
        both[:, : w.heads],
        both[:, w.heads :],
        heads[:, values : values + w.kv_heads],
        heads[:, -w.heads :],
    )


def _gather(
    pages: Iterable[tuple[Array, Array]], w: AttentionWeights, workspace: Workspace
) -> tuple[Array, Array, int]:
    """Keys [kv heads, tokens, dim] and values [kv heads, tokens, dim + 1], a column of ones behind them."""
    listed = list(pages)
    total = sum(len(k) for k, _ in listed)
    # Rounded up, so that a growing context does not make new scratch each time.
    room = -(-total // KEY_TILE) * KEY_TILE
    keys = workspace.array("attention.keys", w.kv_heads, room, w.head_dim)
    values = workspace.array("attention.values", w.kv_heads, room, w.head_dim + 1)
    at = 0
    for k, v in listed:
        keys[:, at : at + len(k)] = k.swapaxes(0, 1)
        values[:, at : at + len(k), :-1] = v.swapaxes(0, 1)
        at += len(k)
    # The product with the ones is the softmax's sum.
    values[:, :, -1] = 1
    return keys, values, total


def _attend_tile(
    queries: Array, keys: Array, values: Array, position: int, w: AttentionWeights, workspace: Workspace
) -> None:
    """Attention of consecutive queries [T, heads, dim], the first at `position`, written over them."""
    steps = len(queries)
    each = w.heads // w.kv_heads
    # Keys are rows and queries columns, so that maxima run over rows.
    turned = queries.reshape(steps, w.kv_heads, each, w.head_dim).transpose(1, 2, 3, 0)
    weighed = workspace.array("attention.weighed", w.kv_heads, each, w.head_dim + 1, steps)
    part = workspace.array("attention.part", *weighed.shape)
    weighed.fill(0)
    highest: Array | None = None
    for first, last in _tiles(position + steps):
        scores = workspace.array("attention.scores", w.kv_heads, each, last - first, steps)
        np.matmul(keys[:, None, first:last], turned, scores)
        if last - 1 > position:
            hidden = np.arange(first, last)[:, None] > np.arange(position, position + steps)
            np.copyto(scores, -np.inf, where=hidden)
        if w.score_bound > _NO_MAXIMUM:
            highest = _subtract_maximum(scores, highest, weighed)
        np.exp(scores, scores)
        np.matmul(values[:, None, first:last].swapaxes(-1, -2), scores, part)
        np.add(weighed, part, weighed)
    np.divide(weighed[:, :, :-1], weighed[:, :, -1:], turned)


def _tiles(total: int) -> Iterator[tuple[int, int]]:
    for first in range(0, total, KEY_TILE):
        yield first, min(first + KEY_TILE, total)


def _subtract_maximum(scores: Array, highest: Array | None, weighed: Array) -> Array:
    """Scores less their running maximum, in place; what was weighed by an older maximum is brought to the new one."""
    found: Array = scores.max(axis=-2, keepdims=True)
    if highest is not None:
        np.maximum(found, highest, found)
        np.multiply(weighed, np.exp(highest - found), weighed)
    np.subtract(scores, found, scores)
    return found


def _attend_each(
    q: Array, k: Array, v: Array, caches: Sequence[KeyValueCache], out: Array, workspace: Workspace
) -> None:
    """A kernel: each request's new key and value go into its cache, then its query reads all of it."""
    heads, dim = q.shape[1:]
    kv_heads = k.shape[1]
    each = heads // kv_heads
    for row, cache in enumerate(caches):
        cache.write(k[row : row + 1], v[row : row + 1])
        pages = list(cache.read())
        total = sum(len(page) for page, _ in pages)
        result = out[row].reshape(kv_heads, each, dim)
        if total == 0:
            result.fill(0)
            continue
        room = -(-total // KEY_TILE) * KEY_TILE
        scores = workspace.array("attention.row", kv_heads, each, room)[:, :, :total]
        query = q[row].reshape(kv_heads, each, dim)
        at = 0
        for keys, _ in pages:
            np.matmul(query, keys.transpose(1, 2, 0), scores[:, :, at : at + len(keys)])
            at += len(keys)
        np.subtract(scores, scores.max(axis=-1, keepdims=True), scores)
        np.exp(scores, scores)
        part = workspace.array("attention.row_part", kv_heads, each, dim)
        result.fill(0)
        at = 0
        for _, values in pages:
            np.matmul(scores[:, :, at : at + len(values)], values.swapaxes(0, 1), part)
            np.add(result, part, result)
            at += len(values)
        np.divide(result, scores.sum(axis=-1, keepdims=True), result)
