"""The Qwen3-Next / Qwen3.5 text architecture in NumPy: what an engine calls, with shapes.

Everything computes in float32; `dtype` is what weights are rounded to at load. H hidden, T tokens of one request's
segment, N requests of a decode batch, C channels, K taps of the convolution.

Load (errors: `BadCheckpoint`, one line for the user):
- `ModelConfig.load(folder)`; `.layer_types`, `.conv_state_shape` (C, K-1), `.recurrent_state_shape` (value heads,
  key dim, value dim), `.kv_shape_per_token` (kv heads, head dim), `.eos_token_ids`, ...
- `load_layers(folder, config, first, last, dtype) -> list[LayerWeights]`, `load_embedding` -> [vocabulary, H],
  `load_head` -> `HeadWeights`. `random_checkpoint(folder, config, seed, dtype)` writes a folder.

A step:
- `rotary = Rotary(config)`; once a step `rope = rotary.tables(positions)`, or for captured steps
  `rope = rotary.empty(N)` at capture and `launch(rotary.fill, positions, rope)` with static positions [N].
- `embed(tokens, embedding, out[N, H], launch)`; `logits(x[N, H], head, out[N, vocabulary], workspace, launch)`.
- `prefill_layer(x[T, H], weights, cache, rope, workspace, checkpoint_at=, on_checkpoint=)`: one layer on the residual
  stream, in place. `cache` is a `GdnState(conv[C, K-1], recurrent[...])` of views for a layer of linear attention,
  and a `KeyValueCache` for one of full attention.
- `decode_layer(x[N, H], weights, cache, rope, workspace, launch)`: `cache` is a `GdnState(conv[N, C, K-1],
  recurrent[N, ...])`, gathered and contiguous (scatter them back after; for N = 1 a view of the arena with a leading
  axis will do), or a sequence of N `KeyValueCache`.
Both are compositions of `rms_norm(x, w, out, workspace, launch)`, `gdn_prefill` / `gdn_decode`,
`attention_prefill` / `attention_decode` and `mlp`, which can be called on their own.

State: a GDN layer reads the states it is given and overwrites them in place; zeros start a request. A segment may be
cut anywhere. `checkpoint_at=(256, 512)` and `on_checkpoint(count, conv, recurrent)` show the states after that many
tokens of the segment, for a prefix cache: copy them, they change. `KeyValueCache` is a protocol: `write(k, v)` appends
[tokens, kv heads, head dim] and `read()` gives pages (k, v) in order from position 0 up to what was written last, each
of any length. prefill calls `write` once per at most 512 tokens and then `read` once; decode calls both once a step.
Pages of 256 tokens or more are quick, of 16 slow.

Scratch: a `Workspace` is one worker's scratch memory by name and shape; layers share it. Nothing in it outlives a call.

Capture: decode functions take `launch`. `eager` (the default) runs each kernel at once. A `Tape` records kernels with
their buffers bound, runs nothing, and `tape.replay()` runs them on the same buffers without the Python between:

    tape = Tape()
    tape(gather_states, ...)                                  # any callable that works in place is a kernel
    tape(rotary.fill, positions, rope)
    embed(tokens, embedding, x, tape)
    for weights, cache in zip(layers, caches): decode_layer(x, weights, cache, rope, workspace, tape)
    logits(x, head, out, workspace, tape)
    ...                                                       # per step: write tokens, positions; tape.replay()

A captured tape keeps the scratch it was captured with. Padding rows: any token and position, states of their own, and a
`KeyValueCache` that drops writes and gives no page.

Text: `Tokenizer.load(folder)`: `encode`, `decode`, `token(id)`, `stream()` (`push(id) -> str`, `finish() -> str`, never
half a character), `render(messages)`, `apply_chat_template(messages) -> ids` (errors: `BadTemplate`).
Without an engine: `simple.Runner(folder)`: `prefill(ids, chunk)`, `decode(id)`, `generate(ids, limit)`, `caches`.
"""

from culpa_lab.model.arrays import Array, BadCheckpoint
from culpa_lab.model.attention import KeyValueCache, attention_decode, attention_prefill
from culpa_lab.model.config import ModelConfig
from culpa_lab.model.gdn import gdn_decode, gdn_prefill
from culpa_lab.model.launch import Launch, Tape, Workspace, eager
from culpa_lab.model.layer import GdnState, decode_layer, embed, logits, prefill_layer
from culpa_lab.model.mlp import mlp
from culpa_lab.model.norm import NormWeights, rms_norm
from culpa_lab.model.random_weights import random_checkpoint
from culpa_lab.model.rotary import Rotary, RotaryTables, rotate
from culpa_lab.model.tokenizer import BadTemplate, TextStream, Tokenizer, write_byte_level_tokenizer
from culpa_lab.model.weights import (
    AttentionWeights,
    DenseWeights,
    GdnWeights,
    HeadWeights,
    LayerWeights,
    SparseWeights,
    load_embedding,
    load_head,
    load_layers,
)

__all__ = [
    "Array",
    "AttentionWeights",
    "BadCheckpoint",
    "BadTemplate",
    "DenseWeights",
    "GdnState",
    "GdnWeights",
    "HeadWeights",
    "KeyValueCache",
    "Launch",
    "LayerWeights",
    "ModelConfig",
    "NormWeights",
    "Rotary",
    "RotaryTables",
    "SparseWeights",
    "Tape",
    "TextStream",
    "Tokenizer",
    "Workspace",
    "attention_decode",
    "attention_prefill",
    "decode_layer",
    "eager",
    "embed",
    "gdn_decode",
    "gdn_prefill",
    "load_embedding",
    "load_head",
    "load_layers",
    "logits",
    "mlp",
    "prefill_layer",
    "random_checkpoint",
    "rms_norm",
    "rotate",
    "write_byte_level_tokenizer",
]
