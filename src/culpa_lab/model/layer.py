"""A decoder layer from its parts, and the two ends of the model.

Formulas: transformers, modeling_qwen3_next.py (Qwen3NextDecoderLayer, Qwen3NextModel): x += mixer(norm(x)), then
x += mlp(norm(x)).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from culpa_lab.model.arrays import Array
from culpa_lab.model.attention import KeyValueCache, attention_decode, attention_prefill
from culpa_lab.model.gdn import OnCheckpoint, gdn_decode, gdn_prefill
from culpa_lab.model.launch import Launch, Workspace, eager
from culpa_lab.model.mlp import mlp
from culpa_lab.model.norm import rms_norm
from culpa_lab.model.rotary import RotaryTables
from culpa_lab.model.weights import AttentionWeights, GdnWeights, HeadWeights, LayerWeights


@dataclass(frozen=True)
class GdnState:
    """Views of the states of one request ([channels, kernel - 1] and [value heads, key dim, value dim]), or of N
    requests for decode, with a leading axis of N."""

    conv: Array
    recurrent: Array


def prefill_layer(
    x: Array,
    w: LayerWeights,
    cache: GdnState | KeyValueCache,
    rope: RotaryTables,
    workspace: Workspace,
    *,
    checkpoint_at: Sequence[int] = (),
    on_checkpoint: OnCheckpoint | None = None,
) -> None:
    """One layer on one request's segment: `x` [T, hidden] is the residual stream, in place.

    `checkpoint_at` and `on_checkpoint` are `gdn_prefill`'s; a layer of full attention ignores them.
    """
    normal = workspace.array("layer.normal", *x.shape)
    change = workspace.array("layer.change", *x.shape)
    rms_norm(x, w.input_norm, normal, workspace)
    if isinstance(w.mixer, GdnWeights):
        assert isinstance(cache, GdnState)
        gdn_prefill(
            normal, w.mixer, cache.conv, cache.recurrent, change, workspace,
            checkpoint_at=checkpoint_at, on_checkpoint=on_checkpoint,
        )  # fmt: skip
    else:
        assert not isinstance(cache, GdnState)
        attention_prefill(normal, w.mixer, rope, cache, change, workspace)
    np.add(x, change, x)
    rms_norm(x, w.post_norm, normal, workspace)
    mlp(normal, w.mlp, change, workspace)
    np.add(x, change, x)


def decode_layer(
    x: Array,
    w: LayerWeights,
    cache: GdnState | Sequence[KeyValueCache],
    rope: RotaryTables,
    workspace: Workspace,
    launch: Launch = eager,
) -> None:
    """One layer on one token of each of N requests: `x` [N, hidden] is the residual stream, in place."""
    normal = workspace.array("layer.normal", *x.shape)
    change = workspace.array("layer.change", *x.shape)
    rms_norm(x, w.input_norm, normal, workspace, launch)
    if isinstance(w.mixer, AttentionWeights):
        assert not isinstance(cache, GdnState)
        attention_decode(normal, w.mixer, rope, cache, change, workspace, launch)
    else:
        assert isinstance(cache, GdnState)
        gdn_decode(normal, w.mixer, cache.conv, cache.recurrent, change, workspace, launch)
    launch(np.add, x, change, x)
    rms_norm(x, w.post_norm, normal, workspace, launch)
    mlp(normal, w.mlp, change, workspace, launch)
    launch(np.add, x, change, x)


def embed(tokens: npt.NDArray[np.integer], embedding: Array, out: Array, launch: Launch = eager) -> None:
    """Rows of the embedding [vocabulary, hidden] for token ids [N], into `out` [N, hidden]."""
    launch(_take_rows, embedding, tokens, out)


def _take_rows(table: Array, rows: npt.NDArray[np.integer], out: Array) -> None:
    np.take(table, rows, axis=0, out=out)


def logits(x: Array, w: HeadWeights, out: Array, workspace: Workspace, launch: Launch = eager) -> None:
    """Final norm and output projection of [N, hidden] into `out` [N, vocabulary]. `x` stays as it is."""
    normal = workspace.array("head.normal", *x.shape)
    rms_norm(x, w.norm, normal, workspace, launch)
    launch(np.matmul, normal, w.projection, out)
