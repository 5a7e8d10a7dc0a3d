"""SwiGLU, alone or as a mixture of experts.

Formulas: transformers, modeling_qwen3_next.py (Qwen3NextMLP, Qwen3NextTopKRouter, Qwen3NextExperts,
Qwen3NextSparseMoeBlock).
"""

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.launch import Launch, Workspace, eager
from culpa_lab.model.norm import half_sigmoid, half_silu
from culpa_lab.model.weights import DenseWeights, SparseWeights

_ROWS = 512
"""Rows that are worked on at once."""


def mlp(
    x: Array, w: DenseWeights | SparseWeights, out: Array, workspace: Workspace, launch: Launch = eager
) -> None:
    """The feed-forward part on [rows, hidden], after the layer's second norm, into `out` (not `x`)."""
    for first in range(0, len(x), _ROWS):
        rows = slice(first, first + _ROWS)
        if isinstance(w, DenseWeights):
            _swiglu(x[rows], w.gate_up, w.down, out[rows], workspace, launch)
        else:
            _mixture(x[rows], w, out[rows], workspace, launch)


def _swiglu(x: Array, gate_up: Array, down: Array, out: Array, workspace: Workspace, launch: Launch) -> None:
    width = gate_up.shape[1] // 2
    both = workspace.array("mlp.both", len(x), 2 * width)
    gate, up = both[:, :width], both[:, width:]
    active = workspace.array("mlp.active", len(x), width)
    launch(np.matmul, x, gate_up, both)
    half_silu(gate, active, active, launch)
    launch(np.multiply, active, up, active)
    launch(np.matmul, active, down, out)


def _mixture(x: Array, w: SparseWeights, out: Array, workspace: Workspace, launch: Launch) -> None:
    scores = workspace.array("mlp.router", len(x), w.router.shape[1])
    gate = workspace.array("mlp.shared_gate", len(x), 1)
    launch(np.matmul, x, w.router, scores)
    launch(np.matmul, x, w.shared_gate, gate)
    half_sigmoid(gate, launch)
    _swiglu(x, w.shared.gate_up, w.shared.down, out, workspace, launch)
    launch(np.multiply, out, gate, out)
    launch(_add_experts, x, scores, w, out, workspace)


def _add_experts(x: Array, scores: Array, w: SparseWeights, out: Array, workspace: Workspace) -> None:
    """A kernel: each row goes to its best experts, and their outputs are added to `out` by weight."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    chosen = np.argpartition(-weights, w.active - 1, axis=1)[:, : w.active]
    share = np.take_along_axis(weights, chosen, axis=1)
    if w.normalised:
        share /= share.sum(axis=1, keepdims=True)
    for expert in np.unique(chosen):
        rows, place = np.nonzero(chosen == expert)
        found = workspace.array("mlp.expert", len(rows), x.shape[1])
        _swiglu(x[rows], w.gate_up[expert], w.down[expert], found, workspace, eager)
        out[rows] += found * share[rows, place][:, None]
