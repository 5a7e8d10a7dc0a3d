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
"""Steps of a chunk: 4 times a power of two."""


class Steps(NamedTuple):
    """What a segment of T steps does to one request's memory. Time is the last axis, so that it is what vectorises.

    Attributes:
        q, k: [key heads, key dim, T], already normalised and scaled.
        v: [value heads, value dim, T]; value heads are a multiple of key heads, neighbours share one.
        log_decay, strength: [value heads, T]: g <= 0 and b.
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


def invert_unit_lower(n: Array, workspace: Workspace) -> Array:
    """(I - N)⁻¹ of strictly lower triangular N [..., C, C], C = 4 · 2ᵐ; what stands on and above its diagonal does
    not count.

    By forward substitution in diagonal blocks of 4, then by doubling: with P and Q the inverses of two neighbouring
    blocks and R what joins them, the inverse of both is [[P, 0], [Q R P, Q]]. Powers of N are never formed: their
    entries grow like binomial coefficients where keys repeat, although the inverse stays small.
    """
    inverse = workspace.array("delta.inverse", *n.shape)
    inverse[...] = np.eye(n.shape[-1], dtype=np.float32)
    done, given = _diagonal_blocks(inverse, 4), _diagonal_blocks(n, 4)
    for row in range(1, 4):
        for column in range(row):
            entry = done[..., row, column]
            entry[...] = given[..., row, column]
            for between in range(column + 1, row):
                entry += given[..., row, between] * done[..., between, column]
    width = 4
    while width < n.shape[-1]:
        done, given = _diagonal_blocks(inverse, 2 * width), _diagonal_blocks(n, 2 * width)
        joined = given[..., width:, :width] @ done[..., :width, :width]
        np.matmul(done[..., width:, width:], joined, done[..., width:, :width])
        width *= 2
    return inverse


def _diagonal_blocks(matrices: Array, width: int) -> Array:
    """The diagonal blocks [..., C / width, width, width] of [..., C, C], a view."""
    *lead, size, _ = matrices.shape
    *steps, row, column = matrices.strides
    return np.lib.stride_tricks.as_strided(
        matrices, (*lead, size // width, width, width), (*steps, width * (row + column), row, column)
    )


_UPPER = np.triu(np.ones((CHUNK, CHUNK), np.float32))
_BELOW = np.where(_UPPER > 0, np.float32(0), np.float32(-np.inf))
_FACTORABLE = np.float32(-40.0)


def delta_chunks(steps: Steps, state: Array, out: Array, workspace: Workspace) -> None:
    """A segment of one request.

    Args:
        steps: the segment's inputs, T a multiple of `CHUNK`. Steps with k = 0, b = 0 and g = 0 change nothing, a
            shorter segment is padded with them.
        state: [value heads, key dim, value dim]; read first, overwritten with the state after the segment.
        out: [value heads, value dim, T].
    """
    q, k, v = (_by_head(array, steps.q.shape[0], len(steps.v)) for array in steps[:3])
    key_heads, each, key_dim, length = *v.shape[:2], *q.shape[2:]
    value_dim, count = v.shape[2], length // CHUNK
    head = (key_heads, each)
    # G, and what is made of it, per step: [key heads, value heads of it, 1, T].
    g = workspace.array("delta.g", *head, 1, length)
    np.cumsum(steps.log_decay.reshape(-1, CHUNK), axis=-1, out=g.reshape(-1, CHUNK))
    b = steps.strength.reshape(g.shape)
    since_start = np.exp(g, workspace.array("delta.since_start", *g.shape))
    ends = g.reshape(*head, count, CHUNK)[..., -1:]
    decayed_q = np.multiply(q, since_start, workspace.array("delta.q", *head, key_dim, length))
    # The inverse's minus is in here: -diag(b exp(G)) K, hence -W.
    right = workspace.array("delta.right", *head, key_dim + value_dim, length)
    written = right[:, :, :key_dim]
    np.multiply(k, np.multiply(since_start, np.negative(b)), written)
    np.multiply(v, b, right[:, :, key_dim:])
    turned = workspace.array("delta.turned", *head, key_dim, length)
    # From here on in chunks: [..., chunk, dim, step]; `system` and `within` transposed: [..., chunk, j, i].
    system = workspace.array("delta.system", *head, count, CHUNK, CHUNK)
    within = workspace.array("delta.within", *system.shape)
    if ends.min() >= _FACTORABLE:
        # exp(G[i] - G[j]) as exp(G[i]) exp(-G[j]): neither factor leaves float32, so both go into the vectors.
        np.multiply(k, np.exp(-g), turned)
        chunks = _chunks(turned)
        np.matmul(chunks.swapaxes(-1, -2), _chunks(written), system)
        np.matmul(chunks.swapaxes(-1, -2), _chunks(decayed_q), within)
        np.multiply(within, _UPPER, within)
        to_end = np.multiply(chunks, np.exp(ends)[..., None], chunks)
    else:
        by_chunk = g.reshape(*head, count, CHUNK)
        decay = workspace.array("delta.decay", *system.shape)
        np.add(by_chunk[..., None, :], _BELOW, decay)
        np.subtract(decay, by_chunk[..., :, None], decay)
        np.exp(decay, decay)
        np.multiply(_chunks(k).swapaxes(-1, -2) @ _chunks(q), decay, within)
        np.multiply(decay, np.negative(b).reshape(*head, count, 1, CHUNK), decay)
        np.multiply(_chunks(k).swapaxes(-1, -2) @ _chunks(k), decay, system)
        np.multiply(k, np.exp(ends - by_chunk).reshape(g.shape), turned)
        to_end = _chunks(turned)
    # -Wᵀ above Uᵀ.
    both = np.matmul(
        _chunks(right),
        invert_unit_lower(system.swapaxes(-1, -2), workspace).swapaxes(-1, -2),
        workspace.array("delta.both", *head, count, key_dim + value_dim, CHUNK),
    )
    # Mᵀ above Nᵀ.
    carried = np.matmul(
        both,
        to_end.swapaxes(-1, -2),
        workspace.array("delta.carried", *head, count, key_dim + value_dim, key_dim),
    )
    carried[..., :key_dim, :] += np.eye(key_dim, dtype=np.float32) * np.exp(ends)[..., None]
    memory = _scan(carried, state, workspace)
    new = np.matmul(
        memory, both[..., :key_dim, :], workspace.array("delta.new", *head, count, value_dim, CHUNK)
    )
    np.add(both[..., key_dim:, :], new, new)
    read = np.matmul(memory, _chunks(decayed_q), workspace.array("delta.read", *new.shape))
    np.add(read, new @ within, _chunks(out.reshape(*head, value_dim, length)))


def _scan(carried: Array, state: Array, workspace: Workspace) -> Array:
    """S <- M S + N from chunk to chunk; `state` becomes the last one.

    Args:
        carried: [key heads, value heads of it, chunks, key dim + value dim, key dim]: Mᵀ above Nᵀ.

    Returns:
        Sᵀ at each chunk's start: [key heads, value heads of it, chunks, value dim, key dim].
    """
    key_heads, each, count, _, key_dim = carried.shape
    value_dim = carried.shape[3] - key_dim
    # An identity below each S: [M N] times that is one product a chunk.
    starts = workspace.array("delta.starts", count + 1, key_heads, each, key_dim + value_dim, value_dim)
    starts[..., key_dim:, :] = np.eye(value_dim, dtype=np.float32)
    starts[0, ..., :key_dim, :] = state.reshape(key_heads, each, key_dim, value_dim)
    step = np.moveaxis(carried, 2, 0).swapaxes(-1, -2)
    memory = starts[..., :key_dim, :]
    for chunk in range(count):
        np.matmul(step[chunk], starts[chunk], memory[chunk + 1])
    state.reshape(memory.shape[1:])[...] = memory[count]
    return np.moveaxis(memory[:count], 0, 2).swapaxes(-1, -2)


def _by_head(array: Array, key_heads: int, value_heads: int) -> Array:
    """[heads, dim, T] as [key heads, value heads of it or 1, dim, T]."""
    if len(array) == key_heads != value_heads:
        return array[:, None]
    return array.reshape(key_heads, len(array) // key_heads, *array.shape[1:])


def _chunks(array: Array) -> Array:
    """[..., dim, T] as [..., chunk, dim, step], a view."""
    return np.moveaxis(array.reshape(*array.shape[:-1], -1, CHUNK), -2, -3)
