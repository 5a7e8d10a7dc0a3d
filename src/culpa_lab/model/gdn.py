"""The gated delta net: projection, causal short convolution, gated delta rule, gated norm, projection.

Formulas: transformers, models/qwen3_next/modeling_qwen3_next.py (Qwen3NextGatedDeltaNet) and
models/qwen3_5/modeling_qwen3_5.py (Qwen3_5GatedDeltaNet): both compute the same and differ in how the first
projection is stored.
"""

from collections.abc import Callable, Sequence

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.delta import CHUNK, Steps, delta_chunks, delta_step
from culpa_lab.model.launch import Launch, Workspace, eager
from culpa_lab.model.norm import L2_EPSILON, half_sigmoid, half_silu, rms_norm
from culpa_lab.model.weights import GdnWeights

_TILE_NUMBERS = 73_728
"""Channels times steps that one pass of prefill works on: its few arrays of that size fit into a core's second-level
cache, and are long enough for the cost of a call not to count."""

OnCheckpoint = Callable[[int, Array, Array], None]


def gdn_prefill(
    x: Array,
    w: GdnWeights,
    conv_state: Array,
    recurrent_state: Array,
    out: Array,
    workspace: Workspace,
    *,
    checkpoint_at: Sequence[int] = (),
    on_checkpoint: OnCheckpoint | None = None,
) -> None:
    """One request's segment of T tokens, after the layer's input norm.

    Args:
        x: [T, hidden].
        conv_state: [channels, kernel - 1], zeros at the start of a request; read, then overwritten.
        recurrent_state: [value heads, key dim, value dim], likewise.
        out: [T, hidden]; may be `x`.
        checkpoint_at: counts of tokens, rising, 1..T, after which `on_checkpoint(count, conv_state,
            recurrent_state)` is called with the states of that moment, to be copied.
    """
    steps = len(x)
    tile = max(CHUNK, _TILE_NUMBERS // (w.channels + w.value_heads * w.value_dim) // CHUNK * CHUNK)
    stops = sorted({*range(tile, steps, tile), *checkpoint_at, steps})
    first = 0
    for stop in stops:
        _tile(x[first:stop], w, conv_state, recurrent_state, out[first:stop], workspace)
        if on_checkpoint is not None and stop in checkpoint_at:
            on_checkpoint(stop, conv_state, recurrent_state)
        first = stop


def _tile(x: Array, w: GdnWeights, conv_state: Array, state: Array, out: Array, workspace: Workspace) -> None:
    """Time is the last axis here: [channel, step]. Padded to whole chunks with steps that change nothing."""
    steps = len(x)
    padded = -(-steps // CHUNK) * CHUNK
    before = w.kernel - 1
    width, value_dim = w.channels, w.value_heads * w.value_dim
    projected = workspace.array("gdn.projected", width, before + steps)
    mixed = workspace.array("gdn.mixed", width + value_dim, padded)
    scratch = workspace.array("gdn.scratch", *mixed.shape)
    projected[:, :before] = conv_state
    np.matmul(w.in_proj[:, :width].T, x.T, projected[:, before:])
    np.matmul(w.in_proj[:, width : width + value_dim].T, x.T, mixed[width:, :steps])
    conv_state[...] = projected[:, steps:]
    convolved, product = mixed[:width, :steps], scratch[:width, :steps]
    np.multiply(projected[:, :steps], w.conv[:, :1], convolved)
    for shift in range(1, w.kernel):
        np.multiply(projected[:, shift : shift + steps], w.conv[:, shift : shift + 1], product)
        np.add(convolved, product, convolved)
    mixed[:, steps:] = 0
    half_silu(mixed, scratch, mixed)
    keys = 2 * w.key_heads * w.key_dim
    both = mixed[:keys].reshape(2 * w.key_heads, w.key_dim, padded)
    squares = np.multiply(both, both, scratch[:keys].reshape(both.shape))
    length = np.add.reduce(squares, axis=1, keepdims=True)
    np.sqrt((length + np.float32(L2_EPSILON)) * w.query_scale[..., None], length)
    np.divide(both, length, both)
    v = mixed[keys:width].reshape(w.value_heads, w.value_dim, padded)
    gates = workspace.array("gdn.gates", 2 * w.value_heads, padded)
    gates[:, steps:] = 0
    np.matmul(w.in_proj[:, width + value_dim :].T, x.T, gates[:, :steps])
    strength, decay = gates[: w.value_heads], gates[w.value_heads :]
    half_sigmoid(strength)
    np.add(decay, w.dt_bias[:, None], decay)
    _softplus(decay)
    np.multiply(decay, w.decay_rate[:, None], decay)
    gates[:, steps:] = 0
    read = workspace.array("gdn.read", w.value_heads, w.value_dim, padded)
    delta_chunks(Steps(both[: w.key_heads], both[w.key_heads :], v, decay, strength), state, read, workspace)
    squares = np.multiply(read, read, scratch[:value_dim].reshape(read.shape))
    length = np.add.reduce(squares, axis=1, keepdims=True)
    np.sqrt(length + w.norm.epsilon, length)
    np.divide(read, length, read)
    np.multiply(read, w.norm.gain[:, None], read)
    np.multiply(read, mixed[width:].reshape(read.shape), read)
    np.matmul(read.reshape(value_dim, padded)[:, :steps].T, w.out_proj, out)


def _softplus(x: Array) -> None:
    """log(1 + exp(x)) in place: what logaddexp gives, in calls that vectorise."""
    above = np.maximum(x, 0)
    np.abs(x, x)
    np.negative(x, x)
    np.exp(x, x)
    np.log1p(x, x)
    np.add(x, above, x)


def gdn_decode(
    x: Array,
    w: GdnWeights,
    conv_states: Array,
    recurrent_states: Array,
    out: Array,
    workspace: Workspace,
    launch: Launch = eager,
) -> None:
    """One step for each of N requests.

    Args:
        x: [N, hidden], after the layer's input norm.
        conv_states: [N, channels, kernel - 1]; overwritten.
        recurrent_states: [N, value heads, key dim, value dim]; overwritten.
        out: [N, hidden]; may be `x`.
    """
    requests = len(x)
    value_dim = w.value_heads * w.value_dim
    projected = workspace.array("gdn.projected", requests, w.in_proj.shape[1])
    window = workspace.array("gdn.window", requests, w.channels, w.kernel)
    product = workspace.array("gdn.product", *window.shape)
    mixed = workspace.array("gdn.mixed", requests, w.channels + value_dim)
    scratch = workspace.array("gdn.scratch", *mixed.shape)
    launch(np.matmul, x, w.in_proj, projected)
    launch(np.copyto, window[:, :, :-1], conv_states)
    launch(np.copyto, window[:, :, -1], projected[:, : w.channels])
    launch(np.multiply, window, w.conv, product)
    launch(np.add.reduce, product, -1, None, mixed[:, : w.channels])
    launch(np.copyto, conv_states, window[:, :, 1:])
    launch(np.copyto, mixed[:, w.channels :], projected[:, w.channels : w.channels + value_dim])
    half_silu(mixed, scratch, mixed, launch)
    q, k, v, z = _split(mixed, w)
    _unit_length(mixed, w, workspace, launch)
    strength, decay = _gates(projected, w, workspace, launch)
    launch(np.exp, decay, decay)
    read = workspace.array("gdn.read", *v.shape)
    delta_step(q, k, v, decay, strength, recurrent_states, read, workspace, launch)
    rms_norm(read, w.norm, read, workspace, launch)
    launch(np.multiply, read, z, read)
    launch(np.matmul, read.reshape(requests, value_dim), w.out_proj, out)


def _split(mixed: Array, w: GdnWeights) -> tuple[Array, Array, Array, Array]:
    """Views of queries, keys, values and output gates by head."""
    rows = len(mixed)
    width = w.key_heads * w.key_dim
    keys = (rows, w.key_heads, w.key_dim)
    values = (rows, w.value_heads, w.value_dim)
    return (
        mixed[:, :width].reshape(keys),
        mixed[:, width : 2 * width].reshape(keys),
        mixed[:, 2 * width : w.channels].reshape(values),
        mixed[:, w.channels :].reshape(values),
    )


def _unit_length(mixed: Array, w: GdnWeights, workspace: Workspace, launch: Launch) -> None:
    """Queries and keys to length 1, and queries divided by sqrt(key dim), in place."""
    both = mixed[:, : 2 * w.key_heads * w.key_dim].reshape(len(mixed), 2 * w.key_heads, w.key_dim)
    length = workspace.array("gdn.length", *both.shape[:2], 1)
    launch(np.vecdot, both, both, length[..., 0])
    launch(np.add, length, np.float32(L2_EPSILON), length)
    launch(np.multiply, length, w.query_scale, length)
    launch(np.sqrt, length, length)
    launch(np.divide, both, length, both)


def _gates(projected: Array, w: GdnWeights, workspace: Workspace, launch: Launch) -> tuple[Array, Array]:
    """Strength b = sigmoid(b'), and logarithm of the decay g = -exp(A) softplus(a' + dt), each [rows, value heads]."""
    gates = workspace.array("gdn.gates", 2, len(projected), w.value_heads)
    strength, decay = gates
    launch(np.copyto, strength, projected[:, -2 * w.value_heads : -w.value_heads])
    half_sigmoid(strength, launch)
    launch(np.add, projected[:, -w.value_heads :], w.dt_bias, decay)
    launch(np.logaddexp, decay, np.float32(0), decay)
    launch(np.multiply, decay, w.decay_rate, decay)
    return strength, decay
