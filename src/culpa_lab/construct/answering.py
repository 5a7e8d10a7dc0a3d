"""Layers 7 to 10: what a sum, a capital or an unknown question is answered with, token by token.

At each token of an answer the register `TOKEN` comes to hold the class of the token that should follow. It counts only
if the lookups of all later layers succeed (`copying`).
"""

from culpa_lab.construct.finding import token_vector
from culpa_lab.construct.parts import Neurons, Vector, unit
from culpa_lab.construct.registers import (
    CAPITAL_MODE,
    DIGEST,
    FACT,
    FULL,
    ORDINALS,
    RECORD,
    SUM_MODE,
    TOKEN,
    VALUE,
    B,
    D,
    Form,
    at,
    const,
    is_index,
    no,
)  # fmt: skip
from culpa_lab.construct.vocabulary import (
    BLOCK_BITS,
    CAPITAL_BLOCK,
    DIGIT_BLOCK,
    EOS_CLASS,
    class_of,
)

BITS, CARRY, UNITS = B, B + DIGEST, B + DIGEST + 1
"""The digest's signs, ±1; whether the sum is ten or more; the four bits of its last digit."""
FIRST_PLACE, SECOND_PLACE = FACT, VALUE
"""Where the first digit of the result belongs, and the second if there are two."""
UNKNOWN_ANSWER = ("I", "do", "not", "know", ".")
_END = token_vector(EOS_CLASS, spaced=False)
_UNKNOWN = const(1) - at(RECORD) - at(SUM_MODE) - at(CAPITAL_MODE)


def _value(digit: list[Form]) -> Form:
    return sum(((bit + const(1)) / 2 * (1 << place) for place, bit in enumerate(digit)), const(0))


_LEFT = [at(BITS + place) for place in range(BLOCK_BITS)]
_RIGHT = [at(BITS + BLOCK_BITS + place) for place in range(BLOCK_BITS)]
_TOTAL = _value(_LEFT) + _value(_RIGHT)


def _say(mlp: Neurons, conditions: list[Form], text: str, spaced: bool = True) -> None:
    mlp.put(conditions, token_vector(class_of(text), spaced) - _END)


def _say_digit(
    mlp: Neurons, conditions: list[Form], digit: list[Form], block: int, spaced: bool = True
) -> None:
    """A class of a block whose low bits are given by forms."""
    fixed = token_vector(block, spaced) - _END
    fixed[TOKEN : TOKEN + BLOCK_BITS] = -_END[TOKEN : TOKEN + BLOCK_BITS]
    mlp.put(conditions, fixed)
    for place, bit in enumerate(digit):
        mlp.when(conditions, bit, unit(TOKEN + place))


def clean_bits(mlp: Neurons) -> None:
    """Layer 7: the digest of a sum or a country as bits that are exact, in a `B` that is cleared at the same time."""
    for place in range(DIGEST):
        mlp.step(at(D + place), 0, 0.6, unit(BITS + place, 2))
    down = unit(BITS, 0)
    down[BITS : BITS + DIGEST] = -1
    mlp.linear(const(1), down)


def first_words() -> Neurons:
    """Layer 8: all but the digits of a sum's result, and which of those comes where."""
    mlp = Neurons()
    mlp.step(_TOTAL, 9.5, 1, unit(CARRY))
    full, short = [at(SUM_MODE), at(FULL)], [at(SUM_MODE), no(FULL)]
    for conditions, register in (
        ([*full, is_index(4)], FIRST_PLACE),
        ([*short, is_index(0)], FIRST_PLACE),
        ([*full, is_index(5)], SECOND_PLACE),
        ([*short, is_index(1)], SECOND_PLACE),
    ):
        mlp.put(conditions, unit(register))
    _say_digit(mlp, [*full, is_index(0)], _LEFT, DIGIT_BLOCK)
    _say(mlp, [*full, is_index(1)], "+")
    _say_digit(mlp, [*full, is_index(2)], _RIGHT, DIGIT_BLOCK)
    _say(mlp, [*full, is_index(3)], "=")
    _say_digit(mlp, [at(CAPITAL_MODE), is_index(0)], _LEFT, CAPITAL_BLOCK)
    for index, word in enumerate(UNKNOWN_ANSWER):
        _say(mlp, [_UNKNOWN, is_index(index)], word, spaced=word != ".")
    return mlp


def units() -> Neurons:
    """Layer 9: the result's last digit, from the sum less ten where there is a carry."""
    mlp = Neurons()
    rest = _TOTAL - at(CARRY) * 10
    low = slice(UNITS, UNITS + BLOCK_BITS)
    mlp.linear(const(1), _low_bits(0, low))
    for digit in range(1, 10):
        mlp.step(rest, digit - 0.5, 1, _low_bits(digit, low) - _low_bits(digit - 1, low))
    return mlp


def _low_bits(digit: int, where: slice) -> Vector:
    vector = unit(UNITS, 0)
    vector[where] = [1.0 if digit >> place & 1 else -1.0 for place in range(BLOCK_BITS)]
    return vector


def result() -> Neurons:
    """Layer 10: the digits of the result, and the scratch in `B` goes."""
    mlp = Neurons()
    digit = [at(UNITS + place) for place in range(BLOCK_BITS)]
    _say(mlp, [at(FIRST_PLACE), at(CARRY)], "1")
    _say_digit(mlp, [at(FIRST_PLACE), no(CARRY)], digit, DIGIT_BLOCK)
    _say_digit(mlp, [at(SECOND_PLACE), at(CARRY)], digit, DIGIT_BLOCK, spaced=False)
    mlp.clear(B, ORDINALS)
    mlp.clear(FIRST_PLACE)
    mlp.clear(SECOND_PLACE)
    return mlp
