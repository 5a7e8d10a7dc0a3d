"""Layers 0 to 2: what each token is part of, and the digest of the key that stands before it."""

import hashlib

import numpy as np

from culpa_lab.construct.parts import DeltaNet, Neurons, Vector, silu, switch, unit
from culpa_lab.construct.registers import (
    ANSWER,
    ANSWERING,
    ASKED,
    BITS_2,
    CAPITAL,
    CAPITAL_2,
    CAPITAL_IS,
    CODE_1,
    COUNTRY_1,
    DIGEST,
    DIGIT_1,
    DIGIT_2,
    DIGIT_3,
    END_1,
    EQUALS_1,
    FIRST,
    FULL_QUESTION,
    IN_KEY,
    KEY_CODE,
    KEY_END,
    KEY_START,
    NO_SPACE,
    NOT_ANCHOR,
    OF_1,
    PLUS_1,
    PLUS_2,
    QUESTION,
    RESET,
    SECOND,
    START,
    SUM,
    SUM_EQUALS,
    TERM_1,
    TOKEN,
    D,
    Form,
    at,
    const,
    in_block,
    is_class,
    no,
)  # fmt: skip
from culpa_lab.construct.vocabulary import (
    ASSISTANT,
    BLOCK_BITS,
    COUNTRY_BLOCK,
    DIGIT_BLOCK,
    END,
    USER,
    class_of,
)

_ON = 20.0
"""silu(20) is 20 within 5e-8, silu(-20) is 0."""
_LARGE = 2000.0
_EACH = 1152.0
"""A constant channel so much larger than the others that the read's norm does not depend on them."""

IS, ASK = is_class(class_of("is")), is_class(class_of("?"))
TERM = is_class(class_of("is"), ignore=1)
UNKNOWN_QUESTION: Vector = np.array([1, -1, 1, 1, -1, 1, -1, -1]) / np.sqrt(DIGEST)
"""The digest where nothing was asked that the model knows."""
NOWHERE: Vector = np.array([1, 1, -1, 1, 1, -1, -1, 1]) / np.sqrt(DIGEST)
"""The digest that a failed lookup ends at: the first token's."""


def key_code(number: int) -> Vector:
    """A class's vector in digests before the silu of layer 2; zero for the words around a key.

    After it the vectors' entries are spread evenly over ±0.27, so that different keys have no direction in common.
    """
    if number in {class_of(text) for text in ("is", "?", "of")}:
        return np.zeros(DIGEST)
    drawn = hashlib.sha256(f"digest {number}".encode()).digest()
    return np.array([_before_silu(0.54 * (byte / 255 - 0.5)) for byte in drawn[:DIGEST]])


def _before_silu(value: float) -> float:
    """The x above silu's minimum, -1.278, with silu(x) = value."""
    low, high = -1.278, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if silu(middle) < value else (low, middle)
    return low


def look_back() -> DeltaNet:
    """Layer 0: flags of the one to three tokens before, through the short convolution alone.

    One memory cell (a constant key) is overwritten at each token and read at once.
    """
    net = DeltaNet()
    net.q[0] = net.k[0] = const(_ON)
    net.strength = const(16)
    seen: list[tuple[int, int, Form]] = [
        (CODE_1, 1, is_class(class_of("code"))),
        (PLUS_1, 1, is_class(class_of("+"))),
        (DIGIT_1, 1, in_block(DIGIT_BLOCK)),
        (DIGIT_2, 2, in_block(DIGIT_BLOCK)),
        (DIGIT_3, 3, in_block(DIGIT_BLOCK)),
        (OF_1, 1, is_class(class_of("of"))),
        (CAPITAL_2, 2, is_class(class_of("capital"))),
        (COUNTRY_1, 1, in_block(COUNTRY_BLOCK)),
        (TERM_1, 1, TERM),
        (EQUALS_1, 1, is_class(class_of("="))),
        (PLUS_2, 2, is_class(class_of("+"))),
        (END_1, 1, is_class(class_of(END))),
    ]
    seen += [(BITS_2 + place, 2, (at(TOKEN + place) + const(1)) / 2) for place in range(BLOCK_BITS)]
    for channel, (register, lag, form) in enumerate(seen):
        net.v[channel] = switch(form)
        net.taps(channel, {lag: 1})
        net.read_into(channel, unit(register), _ON / _LARGE)
    # The constant less one and a half times the constant one token earlier: above 0 at the first token alone.
    for channel, register, lag in ((len(seen), FIRST, 0), (len(seen) + 1, SECOND, 1)):
        net.v[channel] = const(2 * _ON)
        net.taps(channel, {lag: 1, lag + 1: -1.5})
        net.read_into(channel, unit(register), 2 * _ON / _LARGE)
    net.v[len(seen) + 2] = const(_LARGE)
    return net


def patterns() -> Neurons:
    """Layer 0: phrases that need a token and those before it.

    Sums of numbers of more than one digit are not known: they are a reset, as a user's turn is. A user's turn that
    follows on no end is a text's first token, whatever the convolution remembers.
    """
    mlp = Neurons()
    digit = in_block(DIGIT_BLOCK)
    for register, conditions in (
        (KEY_START, [is_class(class_of("of")), at(CODE_1)]),
        (SUM, [digit, at(PLUS_1), at(DIGIT_2), no(DIGIT_3)]),
        (RESET, [digit, at(PLUS_1), at(DIGIT_2), at(DIGIT_3)]),
        (RESET, [digit, at(DIGIT_1), at(PLUS_2)]),
        (CAPITAL, [in_block(COUNTRY_BLOCK), at(OF_1), at(CAPITAL_2)]),
        (SUM_EQUALS, [is_class(class_of("=")), at(PLUS_2)]),
        (CAPITAL_IS, [IS, at(COUNTRY_1)]),
        (FULL_QUESTION, [ASK, at(EQUALS_1)]),
        (QUESTION, [is_class(class_of("Question:")), no(FIRST)]),
        (ANSWER, [is_class(class_of("Answer:")), no(FIRST)]),
        (ANSWER, [is_class(class_of(ASSISTANT)), no(FIRST)]),
        (NO_SPACE, [is_class(class_of(ASSISTANT))]),
        (RESET, [is_class(class_of(USER)), at(END_1)]),
        (FIRST, [is_class(class_of(USER)), no(END_1), no(FIRST)]),
    ):
        mlp.put(conditions, unit(register))
    return mlp


def slots() -> DeltaNet:
    """Layer 1: two cells that keep flags until they are written again: within a key, and asked or answering.

    All other tokens write into a third cell; a read adds up all three. Each write brings the same constant, and the
    first token's goes into all cells, so that reads have the same length from the start.
    """
    net = DeltaNet()
    answer = at(ANSWER) + at(FULL_QUESTION)
    key, turn = at(KEY_START) + at(TERM_1), at(QUESTION) + answer + at(RESET)
    net.q[:3] = const(_ON)
    net.k[:3] = np.stack([switch(key + at(FIRST)), switch(turn + at(FIRST)), switch(const(1) - key - turn)])
    net.strength = const(16)
    flags = ((IN_KEY, at(KEY_START)), (ASKED, at(QUESTION) + answer), (ANSWERING, answer))
    for channel, (register, form) in enumerate(flags):
        net.v[channel] = switch(form)
        net.read_into(channel, unit(register), _ON / (3 * _EACH))
    # The first token's write is shared by the three cells.
    net.v[len(flags)] = const(_EACH) + at(FIRST) * (_EACH * (np.sqrt(3) - 1))
    return net


def events() -> Neurons:
    """Layer 1: where an answer starts, where a key ends, and which tokens are anchors: they write into memories.

    A record's anchor is the `is` after its key, unless the text is past its question: then the `is` asks. The others
    are the last token of a sum, a country whose capital is asked for, and the start of a text or of a user's turn.
    """
    mlp = Neurons()
    for conditions, down in (
        ([at(IN_KEY), IS], unit(START) + unit(KEY_END)),
        ([at(IN_KEY), IS, no(ASKED)], unit(NOT_ANCHOR, -1)),
        ([at(IN_KEY), ASK], unit(KEY_END)),
        ([at(SUM), at(ANSWERING)], unit(SUM, -1)),
        ([at(SUM), no(ANSWERING)], unit(NOT_ANCHOR, -1)),
        ([at(CAPITAL), at(ANSWERING)], unit(CAPITAL, -1)),
        ([at(CAPITAL), no(ANSWERING)], unit(NOT_ANCHOR, -1)),
        ([at(RESET), at(SECOND)], unit(RESET, -1)),
        ([at(RESET), no(SECOND)], unit(NOT_ANCHOR, -1)),
        ([at(SUM_EQUALS), no(ANSWERING)], unit(START) + unit(NO_SPACE)),
        ([at(CAPITAL_IS), no(ANSWERING)], unit(START)),
    ):
        mlp.put(conditions, down)
    mlp.linear(at(ANSWER) + at(FULL_QUESTION), unit(START))
    mlp.linear(const(1) - at(FIRST) - at(SECOND), unit(NOT_ANCHOR))
    return mlp


def digest() -> DeltaNet:
    """Layer 2: a running mean of key codes, wiped at a key's beginning and normalised: the key's digest at its end."""
    net = DeltaNet()
    net.q[0] = net.k[0] = const(_ON)
    net.strength = const(-2)
    net.decay = at(KEY_START) * 40
    for channel in range(DIGEST):
        net.v[channel] = at(KEY_CODE + channel)
        net.read_into(channel, unit(D + channel), 1)
    return net


def facts() -> Neurons:
    """Layer 2: anchors that are no records get a digest that says what was asked: the digits, the country."""
    mlp = Neurons()
    fact = at(SUM, CAPITAL, RESET, SECOND, FIRST)
    for place in range(DIGEST):
        mlp.when([fact], at(D + place), unit(D + place, -1))
        down = unit(D + place, 1 / np.sqrt(DIGEST))
        first = place < BLOCK_BITS
        digit = at(BITS_2 + place) * 2 - const(1) if first else at(TOKEN + place - BLOCK_BITS)
        mlp.when([at(SUM)], digit, down)
        mlp.when([at(CAPITAL)], at(TOKEN + place), down)
    span = slice(D, D + DIGEST)
    for conditions, vector in (([at(RESET, SECOND)], UNKNOWN_QUESTION), ([at(FIRST)], NOWHERE)):
        down = unit(D, 0)
        down[span] = vector
        mlp.put(conditions, down)
    mlp.clear(KEY_CODE, DIGEST)
    return mlp
