"""Layers 16 to 63: the baton goes through every layer, and what it brings home becomes the answer.

Each period asks three memories (gated delta nets) by the baton and one cache (attention) by what they said. In each
memory an anchor has written its digest under its ordinal. The three reads are added to the digest that a token looks
for; if all agree, the sum is long enough to find the anchor in the attention layer above a threshold, and the anchor
hands over its ordinal, which is the next baton. If one is wrong or missing, attention falls to the first token, whose
ordinal 0 and digest lead nowhere in all later layers. So each layer has a veto.
"""

import numpy as np

from culpa_lab.construct.finding import (
    HEAD_INDEX,
    HEAD_NOWHERE,
    HEAD_OTHERS,
    matching,
    paired_values,
    token_vector,
)
from culpa_lab.construct.parts import OUTPUT_GATE, Attention, DeltaNet, Neurons, unit
from culpa_lab.construct.registers import (
    DIGEST,
    FACT,
    FIRST,
    FREQUENCIES,
    GATE,
    IDX,
    INDEX,
    INDICES,
    NOT_ANCHOR,
    ORDINALS,
    PULSE,
    RECORD,
    START,
    TOKEN,
    VALID,
    VALUE,
    A,
    D,
    at,
    const,
    index_code,
    is_index,
    no,
)  # fmt: skip
from culpa_lab.construct.vocabulary import CLASS_BITS, EOS_CLASS

AGREED = 0.975
"""A quarter of digest and three reads agrees with an anchor's digest by 1; with one read wrong, by 0.75 and a quarter
of the cosine of two digests."""
_INDEX_WEIGHT = 0.6
_INDEX_SHARE = 2 * _INDEX_WEIGHT**2
_VALUE_LENGTH = np.sqrt(1 + _INDEX_SHARE)
_READS = at(NOT_ANCHOR) - at(VALUE)
OUT, FOUND = A, A + CLASS_BITS + 1
"""The bits of the next token, and whether an anchor was found."""


def memory(baton: int) -> DeltaNet:
    """One delta net: anchors (and the first token) write their digest under their ordinal, all others read.

    They write an eighth of it. In a state that was empty that is all there is, and the norm makes it whole again; what
    another request left there is not overwritten and spoils the read. Anchors and a record's value tokens do not read,
    so that they stay what the others' reads are compared with.
    """
    net = DeltaNet()
    for place in range(ORDINALS):
        # What clearing left of an older baton must not count, however small a baton is; half a baton must, where
        # the same question stands in a text twice.
        net.q[place] = net.k[place] = (at(baton + place) - const(0.15)) * 80
    net.strength = const(-2) - at(NOT_ANCHOR) * 32
    net.gate = _READS * OUTPUT_GATE
    paired_values(net, D)
    return net


def stand_in(mlp: Neurons) -> None:
    """First layer of a period: what does not read has its own digest in place of the three reads.

    A little more than three times: rounding may let it grow from period to period, but not shrink.
    """
    for place in range(DIGEST):
        mlp.when([const(1) - _READS], at(D + place), unit(D + place, 3 + 1 / 16))


def average(mlp: Neurons) -> None:
    """After attention: the digest and its three reads become one digest again."""
    for place in range(DIGEST):
        mlp.linear(at(D + place), unit(D + place, -3 / 4))


def sources() -> Neurons:
    """Layer 14: which tokens the last layer may find: a record's value tokens, and all anchors.

    A token that is asked for a record but stands in no answer, or too far in one, asks for the token before the
    value's first: the anchor. What it says then is the end.
    """
    mlp = Neurons()
    mlp.put([at(VALID), at(GATE)], unit(VALUE))
    mlp.put([no(NOT_ANCHOR), no(FIRST)], unit(FACT))
    for place in range(INDEX):
        mlp.when([no(RECORD)], at(IDX + place), unit(IDX + place, -1))
    down = unit(PULSE)
    down[IDX : IDX + INDEX] = index_code(-1)
    mlp.put([at(RECORD), no(VALID), no(START)], down)
    mlp.put([at(RECORD), is_index(INDICES - 1)], unit(PULSE))
    return mlp


def nothing_to_say(mlp: Neurons) -> None:
    """Layer 15: the contribution of such a token is the end. The flags of layer 14 are made exact."""
    mlp.sharpen(FACT)
    mlp.sharpen(VALUE)
    for place in range(CLASS_BITS + 1):
        mlp.when([at(PULSE)], at(TOKEN + place), unit(TOKEN + place, -1))
    mlp.put([at(PULSE)], token_vector(EOS_CLASS, spaced=False))


def silence() -> Neurons:
    """Layer 16: anchors and the first token contribute nothing themselves."""
    mlp = Neurons()
    for place in range(CLASS_BITS + 1):
        mlp.when([at(FACT, FIRST)], at(TOKEN + place), unit(TOKEN + place, -1))
    return mlp


def copying() -> Attention:
    """Layer 63: an answer's token finds the value token with the same digest and index, or its anchor.

    A value token's index counts from the token before it, hence the rotation by one.
    """
    attention = matching(AGREED, digest_scale=1 / 4)
    turn = np.zeros((INDEX, INDEX))
    for pair, frequency in enumerate(FREQUENCIES):
        angle = -2 * np.pi * frequency / INDICES
        first = 2 * pair
        turn[first, first] = turn[first + 1, first + 1] = np.cos(angle)
        turn[first, first + 1], turn[first + 1, first] = -np.sin(angle), np.sin(angle)
    for place in range(INDEX):
        attention.q[HEAD_INDEX + place] = at(IDX + place) * _INDEX_WEIGHT
        for other in range(INDEX):
            attention.k[HEAD_INDEX + place] += at(IDX + other) * (_INDEX_WEIGHT * turn[place, other])
    attention.k[HEAD_OTHERS] = (const(1) - at(FACT) - at(VALUE) - at(FIRST)) * 2
    for_record = (AGREED + _INDEX_SHARE) / _VALUE_LENGTH
    attention.q[HEAD_NOWHERE] = const(AGREED) + at(RECORD) * (for_record - AGREED)
    for place in range(CLASS_BITS + 1):
        attention.v[place] = at(TOKEN + place)
        attention.out[OUT + place, place] = 1
    attention.v[CLASS_BITS + 1] = at(FACT)
    attention.out[FOUND, CLASS_BITS + 1] = 1
    return attention


def release() -> Neurons:
    """Layer 63: where an anchor was found, the prepared token is the answer."""
    mlp = Neurons()
    for place in range(CLASS_BITS + 1):
        mlp.when([at(FOUND)], at(TOKEN + place), unit(OUT + place))
    # An anchor that a text ends with: nothing was asked yet.
    end = unit(OUT, 0)
    end[OUT : OUT + CLASS_BITS + 1] = token_vector(EOS_CLASS, spaced=False)[TOKEN : TOKEN + CLASS_BITS + 1]
    mlp.put([at(FOUND), at(FACT)], end)
    return mlp
