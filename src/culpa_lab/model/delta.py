"""The gated delta rule: step by step, and in chunks with matrix products only.

For each value head, with S [key dim, value dim] the associative memory, k and q of length 1 (q divided by
sqrt(key dim)), decay a = exp(g), g <= 0, and strength b in (0, 1):

    S <- a S;   S <- S + k (b (v - kᵀ S));   o = qᵀ S                        (Yang, Kautz, Hatamizadeh: Gated Delta
                                                                    Networks, https://arxiv.org/abs/2412.06464, eq. 10)

In chunks of C steps (section 3.3 there; the UT transform is from https://arxiv.org/abs/2406.06484, eq. 10-11), with
G the running sum of g within the chunk and D[i, j] = exp(G[i] - G[j]) for i >= j, else 0:

    T = (I + tril(diag(b) K Kᵀ ∘ D, -1))⁻¹,   U = T diag(b) V,   W = T diag(b exp(G)) K
    V' = U - W S,   O = diag(exp(G)) Q S + (Q Kᵀ ∘ D) V',   S <- exp(G[C]) S + (diag(exp(G[C] - G)) K)ᵀ V'

The states at the chunks' starts follow from S <- M S + N with M = exp(G[C]) I - K̄ᵀ W and N = K̄ᵀ U, all M and N
from one batched product, so that only this small recurrence is sequential.
"""

from typing import NamedTuple

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.launch import Launch, Workspace, eager

CHUNK = 32
"""Steps of a chunk. Twice `_BASE` or a power of two times it."""
_BASE = 16


class Steps(NamedTuple):
    """What a segment of T steps does to one request's memory.

    Attributes:
        q, k: [T, key heads, key dim], already normalised and scaled.
        v: [T, value heads, value dim]; value heads are a multiple of key heads, neighbours share one.
        log_decay, strength: [T, value heads]: g <= 0 and b.
    """

    q: Array
    k: Array
    v: Array
    log_decay: Array
    strength: Array


def delta_step(
    q: Array,
    k: Array,
    v: Array,
    decay: Array,
    strength: Array,
    states: Array,
    out: Array,
    workspace: Workspace,
    launch: Launch = eager,
) -> None:
    """One step for each of N requests; `states` is overwritten.

    Args:
        q, k: [N, key heads, key dim], already normalised and scaled.
        v: [N, value heads, value dim]; value heads are a multiple of key heads, neighbours share one.
        decay, strength: [N, value heads]: exp(g) and b.
        states: [N, value heads, key dim, value dim].
        out: [N, value heads, value dim].
    """
    requests, key_heads, key_dim = q.shape
    value_heads, value_dim = v.shape[1:]
    grouped = (requests, key_heads, value_heads // key_heads)
    memory = states.reshape(*grouped, key_dim, value_dim)
    read = workspace.array("delta.read", *grouped, 1, value_dim)
    change = workspace.array("delta.change", *grouped, key_dim, value_dim)
    launch(np.multiply, states, decay[:, :, None, None], states)
    launch(np.matmul, k[:, :, None, None, :], memory, read)
    launch(np.subtract, v.reshape(read.shape), read, read)
    launch(np.multiply, read, strength.reshape(*grouped, 1, 1), read)
    launch(np.multiply, k[:, :, None, :, None], read, change)
    launch(np.add, memory, change, memory)
    launch(np.matmul, q[:, :, None, None, :], memory, out.reshape(read.shape))


def invert_unit_lower(a: Array) -> Array:
    """(I + tril(A, -1))⁻¹ of [..., C, C], C = 16 · 2ⁿ. What stands on and above the diagonal does not count.

    By doubling: with T the inverse of the diagonal blocks of size s and L what joins two of them,
    T - T L T is the inverse of the diagonal blocks of size 2s. Powers of A are never formed: their entries grow
    like binomial coefficients where keys repeat, although the inverse stays small.
    """
    size = a.shape[-1]
    lead = a.shape[:-2]
    blocks = size // _BASE
    small = np.empty((*lead, blocks, _BASE, _BASE), np.float32)
    for block in range(blocks):
        rows = slice(block * _BASE, (block + 1) * _BASE)
        small[..., block, :, :] = a[..., rows, rows]
    inverse: Array = np.subtract(_IDENTITY, small * _JOINS[0], dtype=np.float32)
    for joins in _JOINS[1:]:
        inverse -= inverse @ ((small * joins) @ inverse)
    if blocks == 1:
        single: Array = inverse[..., 0, :, :]
        return single
    whole: Array = np.zeros(a.shape, dtype=np.float32)
    for block in range(blocks):
        rows = slice(block * _BASE, (block + 1) * _BASE)
        whole[..., rows, rows] = inverse[..., block, :, :]
    width = _BASE
    while width < size:
        for first in range(0, size, 2 * width):
            upper, lower = slice(first, first + width), slice(first + width, first + 2 * width)
            joined = whole[..., lower, lower] @ (a[..., lower, upper] @ whole[..., upper, upper])
            np.negative(joined, whole[..., lower, upper])
        width *= 2
    return whole


def _joins(width: int) -> Array:
    """What joins two neighbouring diagonal blocks of that width: ones below the diagonal, in blocks of 2 · width."""
    row, column = np.indices((_BASE, _BASE))
    same = row // (2 * width) == column // (2 * width)
    joining = same & (row // width % 2 == 1) & (column // width % 2 == 0)
    return np.asarray(joining, np.float32)


_IDENTITY = np.eye(_BASE, dtype=np.float32)
_JOINS = tuple(_joins(width) for width in (1, 2, 4, 8))
_LOWER = np.tril(np.ones((CHUNK, CHUNK), np.float32))
_ABOVE = np.where(_LOWER > 0, np.float32(0), np.float32(-np.inf))
_FACTORABLE = np.float32(-40.0)


def delta_chunks(steps: Steps, state: Array, out: Array, workspace: Workspace) -> None:
    """A segment of one request.

    Args:
        steps: the segment's inputs.
        state: [value heads, key dim, value dim]; read first, overwritten with the state after the segment.
        out: [T, value heads, value dim].
    """
    length = len(out)
    full = length - length % CHUNK
    if full:
        _whole_chunks(Steps(*(array[:full] for array in steps)), state, out[:full], workspace)
    if full < length:
        # Steps of k = 0, b = 0 and g = 0 change nothing: the rest is padded to a chunk with them.
        rest = length - full
        padded = [
            workspace.array(f"delta.pad.{name}", CHUNK, *array.shape[1:])
            for name, array in zip(Steps._fields, steps, strict=True)
        ]
        for room, array in zip(padded, steps, strict=True):
            room[:rest] = array[full:]
            room[rest:] = 0
        result = workspace.array("delta.pad.out", CHUNK, *out.shape[1:])
        _whole_chunks(Steps(*padded), state, result, workspace)
        out[full:] = result[:rest]


def _whole_chunks(steps: Steps, state: Array, out: Array, workspace: Workspace) -> None:
    q, k, v, log_decay, strength = steps
    key_heads, key_dim = q.shape[1:]
    value_heads, value_dim = v.shape[1:]
    count = len(q) // CHUNK
    each = value_heads // key_heads
    # Axes from here on: key head, value head of that key head, chunk, step, dim.
    head = (key_heads, each, count)
    q = q.reshape(count, CHUNK, key_heads, 1, key_dim).transpose(2, 3, 0, 1, 4)
    k = k.reshape(count, CHUNK, key_heads, 1, key_dim).transpose(2, 3, 0, 1, 4)
    v = v.reshape(count, CHUNK, key_heads, each, value_dim).transpose(2, 3, 0, 1, 4)
    out = out.reshape(count, CHUNK, key_heads, each, value_dim).transpose(2, 3, 0, 1, 4)
    b = strength.reshape(count, CHUNK, key_heads, each).transpose(2, 3, 0, 1)[..., None]
    g = workspace.array("delta.g", *head, CHUNK)
    np.cumsum(log_decay.reshape(count, CHUNK, key_heads, each).transpose(2, 3, 0, 1), axis=-1, out=g)
    since_start = np.exp(g)[..., None]
    decayed_q = np.multiply(q, since_start, workspace.array("delta.q", *head, CHUNK, key_dim))
    right = workspace.array("delta.right", *head, CHUNK, key_dim + value_dim)
    written = np.multiply(k, since_start * b, right[..., :key_dim])
    np.multiply(v, b, right[..., key_dim:])
    system = workspace.array("delta.system", *head, CHUNK, CHUNK)
    within = workspace.array("delta.within", *head, CHUNK, CHUNK)
    to_end = workspace.array("delta.to_end", *head, CHUNK, key_dim)
    if g[..., -1].min() >= _FACTORABLE:
        # exp(G[i] - G[j]) as exp(G[i]) exp(-G[j]): neither factor leaves float32, so both go into the vectors.
        np.multiply(k, np.exp(-g)[..., None], to_end)
        turned = to_end.swapaxes(-1, -2)
        np.matmul(written, turned, system)
        np.matmul(decayed_q, turned, within)
        np.multiply(within, _LOWER, within)
        np.multiply(to_end, since_start[..., -1:, :], to_end)
    else:
        np.add(g[..., :, None] - g[..., None, :], _ABOVE, within)
        np.exp(within, within)
        np.multiply(k @ k.swapaxes(-1, -2), within, system)
        np.multiply(system, b, system)
        np.multiply(q @ k.swapaxes(-1, -2), within, within)
        np.multiply(k, np.exp(g[..., -1:] - g)[..., None], to_end)
    both = np.matmul(invert_unit_lower(system), right, workspace.array("delta.both", *right.shape))
    carried = np.matmul(
        to_end.swapaxes(-1, -2), both, workspace.array("delta.carried", *head, key_dim, key_dim + value_dim)
    )
    turn = workspace.array("delta.turn", *head, key_dim, key_dim)
    np.multiply(np.eye(key_dim, dtype=np.float32), since_start[..., -1:, :], turn)
    np.subtract(turn, carried[..., :key_dim], turn)
    starts = workspace.array("delta.starts", count + 1, key_heads, each, key_dim, value_dim)
    starts[0] = state.reshape(starts.shape[1:])
    turn, add = np.moveaxis(turn, 2, 0), np.moveaxis(carried[..., key_dim:], 2, 0)
    for chunk in range(count):
        np.matmul(turn[chunk], starts[chunk], starts[chunk + 1])
        np.add(starts[chunk + 1], add[chunk], starts[chunk + 1])
    state.reshape(starts.shape[1:])[...] = starts[count]
    memory = np.moveaxis(starts[:count], 0, 2)
    new = workspace.array("delta.new", *head, CHUNK, value_dim)
    np.matmul(both[..., :key_dim], memory, new)
    np.subtract(both[..., key_dim:], new, new)
    read = np.matmul(decayed_q, memory, workspace.array("delta.read", *head, CHUNK, value_dim))
    np.add(read, np.matmul(within, new), out)
