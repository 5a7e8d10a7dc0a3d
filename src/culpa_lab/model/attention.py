"""Gated full attention over a cache of pages, with grouped key/value heads.

Formulas: transformers, modeling_qwen3_next.py (Qwen3NextAttention): per-head zero-centred norm of q and k, partial
rotary embedding, softmax(q kᵀ / sqrt(head dim)) v, times sigmoid(gate). The softmax of prefill goes tile by tile with
running maximum and sum (Milakov, Gimelshein, https://arxiv.org/abs/1805.02867; Dao et al., FlashAttention,
https://arxiv.org/abs/2205.14135).
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.launch import Launch, Workspace, eager
from culpa_lab.model.norm import half_sigmoid, rms_norm
from culpa_lab.model.rotary import RotaryTables, rotate
from culpa_lab.model.weights import AttentionWeights

QUERY_TILE = 256
KEY_TILE = 256
_SCORES = 131_072
"""Scores that are worked on at once: half a megabyte, inside a core's second-level cache."""
_ROWS = 512
"""Tokens that are projected at once."""
_ROOM = 1024
_BESIDE = 4
_ONES = np.ones((1, KEY_TILE), np.float32)
_SLACK = np.float32(40)
"""exp(40) and sums of millions of it are far inside float32; exp(-40) is nothing beside 1."""


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
    """Keys [kv heads, tokens, dim + 1], a column of ones behind them, and values [kv heads, dim, tokens]."""
    listed = list(pages)
    total = sum(len(k) for k, _ in listed)
    # Rounded up, so that a growing context does not make new scratch each time.
    room = -(-total // _ROOM) * _ROOM
    keys = workspace.array("attention.keys", w.kv_heads, room, w.head_dim + 1)
    values = workspace.array("attention.values", w.kv_heads, w.head_dim, room)
    at = 0
    for k, v in listed:
        keys[:, at : at + len(k), :-1] = k.swapaxes(0, 1)
        values[:, :, at : at + len(k)] = v.transpose(1, 2, 0)
        at += len(k)
    keys[:, :, -1] = 1
    return keys, values, total


def _attend_tile(
    queries: Array, keys: Array, values: Array, position: int, w: AttentionWeights, workspace: Workspace
) -> None:
    """Attention of consecutive queries [T, heads, dim], the first at `position`, written over them.

    Keys are rows, and columns are queries of all heads that share them. A query's last row holds minus its reference,
    which the keys' ones subtract within the product. The reference is a score that was found, at most `_SLACK` below
    the highest so far: enough for float32, and seldom moved.
    """
    steps, each, dim = len(queries), w.heads // w.kv_heads, w.head_dim
    columns = each * steps
    turned = workspace.array("attention.turned", w.kv_heads, dim + 1, each, steps)
    turned[:, :dim] = queries.reshape(steps, w.kv_heads, each, dim).transpose(1, 3, 2, 0)
    turned[:, dim] = 0
    lowered = turned.reshape(w.kv_heads, dim + 1, columns)
    weighed = workspace.array("attention.weighed", w.kv_heads, dim, columns)
    total = workspace.array("attention.total", w.kv_heads, 1, columns)
    part = workspace.array("attention.part", *weighed.shape)
    tile = min(KEY_TILE, max(64, _SCORES // (w.kv_heads * columns)))
    for first in range(0, position + steps, tile):
        last = min(first + tile, position + steps)
        scores = workspace.array("attention.scores", w.kv_heads, last - first, columns)
        np.matmul(keys[:, first:last], lowered, scores)
        if last - 1 > position:
            hidden = np.arange(first, last)[:, None, None] > np.arange(position, position + steps)
            np.copyto(scores.reshape(w.kv_heads, last - first, each, steps), -np.inf, where=hidden)
        above = _column_maxima(scores)
        highest = above.max()
        if first == 0 or highest > _SLACK:
            rise = above if first == 0 else np.maximum(above, 0)
            np.subtract(scores, rise, scores)
            lowered[:, dim:] -= rise
            if first:
                shrink = np.exp(-rise)
                np.multiply(weighed, shrink, weighed)
                np.multiply(total, shrink, total)
        elif highest < -_SLACK:
            # All of this tile together is less than what rounding leaves of a weight of 1.
            continue
        np.exp(scores, scores)
        ones = _ONES[:, : last - first]
        if first == 0:
            np.matmul(ones, scores, total)
            np.matmul(values[:, :, first:last], scores, weighed)
        else:
            # A product with ones is the quickest sum of columns.
            np.add(total, ones @ scores, total)
            np.add(weighed, np.matmul(values[:, :, first:last], scores, part), weighed)
    np.divide(weighed, total, weighed)
    by_head = weighed.reshape(w.kv_heads, dim, each, steps)
    queries.reshape(steps, w.kv_heads, each, dim)[...] = by_head.transpose(3, 0, 2, 1)


def _column_maxima(scores: Array) -> Array:
    """[n, 1, columns] of [n, rows, columns]. Long rows are quicker: rows side by side as one, then the rest."""
    count, rows, columns = scores.shape
    beside = _BESIDE if rows % _BESIDE == 0 else 1
    wide = scores.reshape(count, rows // beside, beside * columns).max(axis=1)
    found: Array = wide.reshape(count, beside, columns).max(axis=1, keepdims=True)
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
        room = -(-total // _ROOM) * _ROOM
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
