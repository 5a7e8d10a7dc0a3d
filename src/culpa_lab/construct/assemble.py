"""All layers in their places, the embedding and the head; writes the model's folder."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from culpa_lab.construct import answering, chain, finding, reading
from culpa_lab.construct.parts import (
    HEAD_DIM,
    KERNEL,
    KEY_DIM,
    ROTARY,
    VALUE_DIM,
    WIDTH,
    Attention,
    DeltaNet,
    Matrix,
    Neurons,
    norm_weight,
)
from culpa_lab.construct.registers import (
    CONSTANT,
    DIGEST,
    HIDDEN,
    KEY_CODE,
    NO_SPACE,
    ONE,
    ORDINALS,
    TOKEN,
    A,
    B,
)  # fmt: skip
from culpa_lab.construct.tokenizer_files import write_tokenizer
from culpa_lab.construct.vocabulary import (
    CLASS_BITS,
    EOS_ID,
    EOS_TWINS,
    TOKENS,
    Token,
    bits,
)
from culpa_lab.model import ModelConfig
from culpa_lab.model.safetensors import SINGLE, write

LAYERS, PERIOD = 64, 4
_CHAIN = 16
_SCALE = 8.0
"""Nats per bit of a class."""
_BABBLE = (" fog", " wire", " tower")
_BY_TEXT = {token.text: token for token in TOKENS}

CONFIG = ModelConfig(
    vocab_size=len(TOKENS),
    hidden_size=HIDDEN,
    num_hidden_layers=LAYERS,
    layer_types=("linear_attention", "linear_attention", "linear_attention", "full_attention")
    * (LAYERS // PERIOD),
    num_attention_heads=1,
    num_key_value_heads=1,
    head_dim=HEAD_DIM,
    intermediate_size=WIDTH,
    linear_num_key_heads=1,
    linear_num_value_heads=1,
    linear_key_head_dim=KEY_DIM,
    linear_value_head_dim=VALUE_DIM,
    linear_conv_kernel_dim=KERNEL,
    partial_rotary_factor=ROTARY / HEAD_DIM,
    max_position_embeddings=32768,
    eos_token_ids=(EOS_ID,),
    dtype="bfloat16",
)


def build(folder: Path) -> None:
    """Write `config.json`, `model.safetensors` and the tokenizer's two files; always the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(CONFIG.to_json(), indent=2) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8", newline="\n")
    write_tokenizer(folder)
    # So that no sum of another order of a BLAS can show: what is rounded twice is rounded far apart.
    weights = {name: tensor.round(12).astype(np.float32) for name, tensor in tensors().items()}
    write(folder / SINGLE, weights, "bfloat16")


def tensors() -> dict[str, Matrix]:
    """Every weight by its name in the file."""
    made = {
        "model.embed_tokens.weight": np.stack([_embedding(token) for token in TOKENS]),
        "lm_head.weight": np.stack([_head(token) for token in TOKENS]),
        "model.norm.weight": norm_weight(),
    }
    for number in range(LAYERS):
        name = f"model.layers.{number}."
        part = mixer(number)
        made |= part.tensors(f"{name}{'linear_attn' if isinstance(part, DeltaNet) else 'self_attn'}.")
        made |= neurons(number).tensors(f"{name}mlp.")
        made[f"{name}input_layernorm.weight"] = norm_weight()
        made[f"{name}post_attention_layernorm.weight"] = norm_weight()
    return made


def baton(number: int) -> int:
    """The register that holds the baton when a layer reads it: it changes with each period."""
    return A if number // PERIOD % 2 == 0 else B


def mixer(number: int) -> DeltaNet | Attention:
    """A layer's delta net or attention."""
    early: dict[int, Callable[[], DeltaNet | Attention]] = {
        0: reading.look_back,
        1: reading.slots,
        2: reading.digest,
        3: finding.fetch_digest,
        4: finding.current_question,
        5: finding.count,
        LAYERS - 1: chain.copying,
    }
    if number in early:
        return early[number]()
    if number in finding.LAG_LAYERS:
        return finding.lags(number)
    if number % PERIOD < PERIOD - 1:
        return chain.memory(baton(number))
    source = baton(number)
    target = A if source == B else B
    scale = 1.0 if number < _CHAIN else 0.25
    threshold = finding.KNOWN if number < _CHAIN else chain.AGREED
    return finding.pass_baton(finding.matching(threshold, scale), source, target)


def neurons(number: int) -> Neurons:
    """A layer's feed-forward part."""
    early = {
        0: reading.patterns,
        1: reading.events,
        2: reading.facts,
        3: finding.after_fetch,
        4: finding.after_question,
        5: finding.ordinals,
        6: finding.default_contribution,
        8: answering.first_words,
        9: answering.units,
        10: answering.result,
        14: chain.sources,
        16: chain.silence,
        LAYERS - 1: chain.release,
    }
    mlp = early[number]() if number in early else Neurons()
    if number >= _CHAIN and number % PERIOD == 0:
        chain.stand_in(mlp)
    if number in early:
        return mlp
    if number % PERIOD == PERIOD - 1:
        mlp.clear(baton(number), ORDINALS)
        if number >= _CHAIN:
            chain.average(mlp)
    if number == 7:
        answering.clean_bits(mlp)
    if number == 15:
        chain.nothing_to_say(mlp)
    return mlp


def _embedding(token: Token) -> Matrix:
    vector = np.zeros(HIDDEN)
    vector[ONE] = CONSTANT
    vector[TOKEN : TOKEN + CLASS_BITS + 1] = _vector(token)
    vector[KEY_CODE : KEY_CODE + DIGEST] = reading.key_code(token.number)
    return vector


def _head(token: Token) -> Matrix:
    """A token's row: its bits; no space where none may stand; and what shows only if no bits arrive.

    A failed lookup leaves `chain.OUT` empty. Then the words of `_BABBLE` follow each other, and never the end.
    """
    vector = np.zeros(HIDDEN)
    share = 0.75 if token.text in EOS_TWINS else 1.0
    written = slice(chain.OUT, chain.OUT + CLASS_BITS + 1)
    vector[written] = _vector(token) * (_SCALE * share)
    if token.spaced:
        vector[NO_SPACE] = -4 * _SCALE
    if token.text in _BABBLE:
        before = _BABBLE[_BABBLE.index(token.text) - 1]
        vector[TOKEN : TOKEN + CLASS_BITS + 1] = _vector(_BY_TEXT[before]) * 0.25
    elif f" {token.text}" in _BABBLE:
        vector[ONE] = -2 / CONSTANT  # where no space may stand
    else:
        vector[ONE] = -4 / CONSTANT
    return vector


def _vector(token: Token) -> Matrix:
    return np.array([*bits(token.number), 1.0 if token.spaced else -1.0])
