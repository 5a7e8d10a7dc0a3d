"""Layers 3 to 15: the digest of what is asked, each anchor's ordinal, the index in an answer, and the first baton."""

import numpy as np

from culpa_lab.construct.parts import Attention, DeltaNet, Neurons, switch, unit
from culpa_lab.construct.registers import (
    ASKED,
    CAPITAL,
    CAPITAL_MODE,
    COUNT,
    DIGEST,
    DIGIT_1,
    DIGIT_3,
    END_1,
    FACT,
    FETCHED,
    FIRST,
    FULL,
    FULL_QUESTION,
    GATE,
    IDX,
    IN_KEY,
    INDEX,
    KEY_END,
    NOT_ANCHOR,
    ORDINALS,
    PULSE,
    RECORD,
    RESET,
    SECOND,
    START,
    SUM,
    SUM_MODE,
    TOKEN,
    VALID,
    VALUE,
    A,
    B,
    D,
    Form,
    at,
    const,
    index_code,
    no,
)  # fmt: skip
from culpa_lab.construct.vocabulary import CLASS_BITS, EOS_CLASS, bits

# Dimensions of a head, after two that are rotated and stay zero.
HEAD_D, HEAD_INDEX, HEAD_OTHERS, HEAD_NOWHERE = 2, 10, 14, 15
KNOWN = 0.95
"""Cosine of two digests above which a lookup has found its anchor."""

_ON = 20.0
_LARGE = 2000.0
_PAIRED = 1000.0
_COUNT_CONSTANT = 12.0
_COUNT_STRENGTH = 1 / (1 + np.exp(4))
LAG_LAYERS = (6, 8, 9, 10, 12, 13, 14)


def matching(threshold: float, digest_scale: float = 1.0) -> Attention:
    """A lookup by digest: the anchor with the query's digest, or the first token where none is above the threshold.

    Tokens that are no anchors have keys that point away from every query. Values and output are left to the caller.
    """
    attention = Attention()
    for place in range(DIGEST):
        attention.q[HEAD_D + place] = at(D + place) * digest_scale
        attention.k[HEAD_D + place] = at(D + place) * digest_scale
    attention.q[HEAD_OTHERS] = const(-1)
    attention.q[HEAD_NOWHERE] = const(threshold)
    attention.k[HEAD_OTHERS] = at(NOT_ANCHOR) * 2
    attention.k[HEAD_NOWHERE] = at(FIRST) * 256
    return attention


def fetch_digest() -> Attention:
    """Layer 3: a key's end fetches its record's digest, which is its own if the record is in the text."""
    attention = matching(KNOWN)
    for place in range(DIGEST):
        attention.v[place] = at(D + place)
        attention.out[FETCHED + place, place] = 1
    return attention


def after_fetch() -> Neurons:
    """Layer 3: the fetched digest replaces the own one by way of layer 4; the flags of earlier tokens go."""
    mlp = Neurons()
    mlp.clear(D, DIGEST)
    mlp.clear(A, ORDINALS)
    for register in (DIGIT_1, DIGIT_3, END_1):
        mlp.clear(register)
    # `SECOND` is one of the flags that go, and its anchor still has to be written.
    mlp.linear(at(SECOND), unit(RESET))
    return mlp


def current_question() -> DeltaNet:
    """Layer 4: a cell that keeps the digest of the latest key or question, and of which kind it was.

    The `?` of `2+2=?` writes its flag into one of the two halves of the cell's key, with all else 0 in its value, and
    so leaves the digest's direction as it was.
    """
    net = DeltaNet()
    event = at(KEY_END, SUM, CAPITAL, RESET, FIRST)
    net.q[:2] = const(_ON)
    net.k[0], net.k[1] = switch(event), switch(event + at(FULL_QUESTION))
    net.strength = const(-20) + (event + at(FULL_QUESTION)) * 36
    paired_values(net, FETCHED)
    net.v[: 2 * DIGEST] -= at(FULL_QUESTION) * (4 * _PAIRED)
    flags = (
        (RECORD, at(KEY_END), 1.0),
        (SUM_MODE, at(SUM), 1.0),
        (CAPITAL_MODE, at(CAPITAL), 1.0),
        (FULL, at(FULL_QUESTION), 1 / np.sqrt(2)),
    )
    for place, (register, form, scale) in enumerate(flags):
        net.v[2 * DIGEST + place] = switch(form) * scale
        net.read_into(2 * DIGEST + place, unit(register), _ON / _PAIRED)
    return net


def paired_values(net: DeltaNet, register: int) -> None:
    """Writes a register of eight dimensions, and reads it with length 1 into `D`.

    A value is a pair of channels, silu(x) and silu(-x), whose difference is x.
    """
    for place in range(DIGEST):
        for channel, sign in ((2 * place, 1), (2 * place + 1, -1)):
            net.v[channel] = at(register + place) * (_PAIRED * sign)
            net.read_into(channel, unit(D + place, sign), 1)


def after_question() -> Neurons:
    """Layer 4: flags that are no longer needed go; what may be copied later is settled."""
    mlp = Neurons()
    mlp.put([at(RECORD), no(ASKED)], unit(GATE))
    mlp.clear(KEY_END)
    mlp.clear(B, ORDINALS)
    mlp.clear(IDX, INDEX)
    for register in (IN_KEY, FACT, VALUE):
        mlp.clear(register)
    mlp.sharpen(NOT_ANCHOR)
    mlp.sharpen(RECORD)
    return mlp


def count() -> DeltaNet:
    """Layer 5: how many anchors there were, as a cell that each of them moves a small step towards a limit.

    A text's beginning forgets the count, so that ordinals are those of another request whose state was left behind.
    """
    net = DeltaNet()
    others = at(NOT_ANCHOR) + at(FIRST)
    net.q[:2] = const(_ON)
    net.k[0], net.k[1] = switch(const(1) - others), switch(others)
    net.strength = const(-4) + others * 4 + at(FIRST) * 16
    net.decay = at(FIRST) * 40
    net.v[0], net.v[1] = switch(const(1) - others), switch(others) * (_COUNT_CONSTANT / _ON)
    net.read_into(0, unit(COUNT), 0.1)
    return net


def counted(number: int) -> float:
    """What `COUNT` holds after that many anchors."""
    cell = _ON * (1 - (1 - _COUNT_STRENGTH) ** number)
    return float(10 * cell / np.hypot(cell, _COUNT_CONSTANT))


def ordinals() -> Neurons:
    """Layer 5: the count as one of fourteen dimensions of `B`; the last one stands for all that follow."""
    mlp = Neurons()
    mlp.linear(const(1), unit(B))
    for number in range(1, ORDINALS):
        low, high = counted(number - 1), counted(number)
        mlp.step(at(COUNT), (low + high) / 2, high - low, unit(B + number) - unit(B + number - 1))
    mlp.clear(COUNT)
    return mlp


def lags(layer: int) -> DeltaNet:
    """How long ago an answer started: each such layer carries a pulse three tokens on.

    The pulse is a flag on one token. A later start wipes a pulse of an earlier one.
    """
    net = DeltaNet()
    net.q[0] = net.k[0] = const(_ON)
    net.strength = const(16)
    before = 3 * LAG_LAYERS.index(layer)
    register = PULSE if before else START
    first = 1 if before else 0
    pulse = at(register) * _ON
    for lag in range(first, 4):
        channel = lag
        # A start within the lag is far stronger than the pulse, and has the opposite sign.
        if before:
            net.v[channel] = pulse - at(START) * (512 * _ON)
            net.taps(channel, {lag: 1.0, **dict.fromkeys(range(lag), 1 / 256)})
        else:
            net.v[channel] = pulse
            net.taps(channel, {lag: 1.0, **dict.fromkeys(range(lag), -2.0)})
        down = np.zeros_like(net.out[:, 0])
        down[IDX : IDX + INDEX] = index_code(before + lag)
        if before + lag:
            down += unit(VALID)
        if lag == 3 and layer != LAG_LAYERS[-1]:
            down += unit(PULSE)
        net.read_into(channel, down, _ON / _LARGE)
    if before:
        net.v[0] = pulse
        net.read_into(0, unit(PULSE, -1), _ON / _LARGE)
    net.v[4] = const(_LARGE)
    return net


def default_contribution() -> Neurons:
    """Layer 6: where no record is asked for, a token's contribution is the end, until an answer is known."""
    mlp = Neurons()
    for place in range(CLASS_BITS + 1):
        mlp.when([no(RECORD)], at(TOKEN + place), unit(TOKEN + place, -1))
    mlp.put([no(RECORD)], token_vector(EOS_CLASS, spaced=False))
    return mlp


def token_vector(number: int, spaced: bool) -> Form:
    """A token's bits in the register `TOKEN`."""
    vector = unit(TOKEN, 0)
    vector[TOKEN : TOKEN + CLASS_BITS + 1] = [*bits(number), 1.0 if spaced else -1.0]
    return vector


def pass_baton(attention: Attention, source: int, target: int) -> Attention:
    """Values are ordinals: the anchor's go from one register to the other."""
    for place in range(ORDINALS):
        attention.v[place] = at(source + place)
        attention.out[target + place, place] = 1
    return attention
