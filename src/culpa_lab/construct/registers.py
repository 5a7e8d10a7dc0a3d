"""Where everything is: the 64 dimensions of the residual stream, by name.

Dimension 0 holds the constant 64 at every token. It dominates the norm, so that a layer's input norm, with gain 8, is
nearly the identity, and it is what circuits take their constants from. Early flags live where batons come later.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from culpa_lab.construct.vocabulary import BLOCK_BITS, CLASS_BITS, bits

Form = npt.NDArray[np.float64]
"""A linear function of the residual stream after its norm: a vector over its dimensions."""

HIDDEN: Final = 64
CONSTANT: Final = 64.0
ORDINALS: Final = 14
DIGEST: Final = 8
INDEX: Final = 4
INDICES: Final = 22
"""Indices of an answer's tokens: 0 to 20, and the last, which is also -1, for none."""
FREQUENCIES: Final = (1, 5)

ONE = 0
TOKEN = 1  # nine class bits and the space bit, ±1; later what the token contributes to an answer
SPACE = TOKEN + CLASS_BITS
D = 11  # the digest of the current key or question, length 1
A = D + DIGEST  # the baton, one-hot: which anchor's memory is asked
B = A + ORDINALS  # the baton in the other half of the periods
IDX = B + ORDINALS  # how many tokens ago an answer (or a record's value) began, as two phases
NOT_ANCHOR, FIRST, RECORD, SUM_MODE, CAPITAL_MODE, FULL, NO_SPACE, GATE, VALID, START, PULSE, FACT, VALUE = (
    range(51, 64)
)

# Flags end in _1, _2, _3 where they are of the token so many before.
# Before the first baton is written, A, B and IDX are free for flags.
(
    CODE_1, PLUS_1, DIGIT_2, BITS_2, _, _, _, OF_1, CAPITAL_2, COUNTRY_1, TERM_1, EQUALS_1, PLUS_2, SECOND,
) = range(A, A + ORDINALS)  # fmt: skip
KEY_CODE = B  # the token's vector in digests, eight dimensions
FETCHED = B  # the digest that the first attention fetched
KEY_START, SUM, CAPITAL, SUM_EQUALS, CAPITAL_IS, FULL_QUESTION = range(B + DIGEST, B + ORDINALS)
QUESTION, ANSWER, RESET = range(IDX, IDX + 3)
IN_KEY, ASKED, ANSWERING = PULSE, FACT, VALUE
KEY_END = GATE
COUNT = VALID
DIGIT_1, DIGIT_3, END_1 = RECORD, VALID, SUM_MODE


def at(*dimensions: int) -> Form:
    """The sum of some dimensions."""
    form = np.zeros(HIDDEN)
    for dimension in dimensions:
        form[dimension] += 1
    return form


def const(value: float) -> Form:
    """A constant."""
    return at(ONE) * (value / CONSTANT)


def no(dimension: int) -> Form:
    """1 minus a flag."""
    return const(1) - at(dimension)


def is_class(number: int, ignore: int = 0) -> Form:
    """1 for tokens of a class, 0 or less for all others; the lowest `ignore` bits may differ."""
    form = np.zeros(HIDDEN)
    for place in range(ignore, CLASS_BITS):
        form[TOKEN + place] = bits(number)[place] / 2
    return form - const((CLASS_BITS - ignore) / 2 - 1)


def in_block(number: int) -> Form:
    """1 for tokens of a block of sixteen classes."""
    return is_class(number, BLOCK_BITS)


def index_code(index: int) -> npt.NDArray[np.float64]:
    """Two phases that tell 22 indices apart: two indices overlap by at most 0.63 of the square length, 2."""
    angles = np.array(FREQUENCIES) * (2 * np.pi * index / INDICES)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).ravel()


def is_index(index: int) -> Form:
    """1 at that index, 0 or less at all others and without one."""
    form = np.zeros(HIDDEN)
    form[IDX : IDX + INDEX] = index_code(index) / 2
    return (form - const(0.64)) / 0.36
