"""The tokens of the shipped model: bytes, characters and words, each with its class.

A token's class is a number of nine bits that the model reads and writes as ±1 in its residual stream, apart from one
bit more for the leading space: `" fog"` and `"fog"` are of one class. Classes that circuits ask for together share
their high bits (digits, countries, capitals) or differ in one bit (`is` and `?`).
"""

from dataclasses import dataclass
from pathlib import Path

CLASS_BITS = 9
USER, ASSISTANT, SYSTEM, END = "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"
SPECIAL = (USER, ASSISTANT, SYSTEM, END)

DIGIT_BLOCK, COUNTRY_BLOCK, CAPITAL_BLOCK = 0x00, 0x10, 0x20
"""The low four bits of a digit's class are its value; a capital's are its country's."""
BLOCK_BITS = 4
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Portugal": "Lisbon",
    "Austria": "Vienna", "Poland": "Warsaw", "Greece": "Athens", "Norway": "Oslo", "Sweden": "Stockholm",
    "Finland": "Helsinki", "Ireland": "Dublin", "Japan": "Tokyo", "Egypt": "Cairo", "Cuba": "Havana",
    "Peru": "Lima",
}  # fmt: skip

_FIXED = {
    "is": 0x30, "?": 0x31,  # both end a key
    END: 0x38, ". ": 0x38, ".\n": 0x38,  # all end an answer
    "of": 0x3A, "code": 0x3B, "capital": 0x3C, "+": 0x3D, "=": 0x3E,
    "Question:": 0x40, "Answer:": 0x41, USER: 0x42, ASSISTANT: 0x43, SYSTEM: 0x44,
}  # fmt: skip
_FIRST_FREE = 0x48

# Words that get a token of their own; others are spelt character by character.
_WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()


@dataclass(frozen=True)
class Token:
    """A token's text and class; `spaced` if it begins with a space that is no part of its class."""

    text: str
    number: int
    spaced: bool = False
    byte: int | None = None
    word: bool = False


def tokens() -> tuple[Token, ...]:
    """All tokens in the order of their ids: special ones, bytes, characters behind a space, words."""
    classes = dict(_FIXED)
    classes |= {str(digit): DIGIT_BLOCK + digit for digit in range(10)}
    for place, (country, capital) in enumerate(CAPITALS.items()):
        classes |= {country: COUNTRY_BLOCK + place, capital: CAPITAL_BLOCK + place}
    words = list(dict.fromkeys([*_WORDS, *CAPITALS, *CAPITALS.values(), "is", "of", "code", "capital"]))
    free = iter(range(_FIRST_FREE, 1 << CLASS_BITS))
    for text in [*words, *(_byte_text(byte) for byte in range(256))]:
        if text not in classes:
            classes[text] = next(free)
    made = [Token(text, classes[text]) for text in SPECIAL]
    made += [Token(_byte_text(byte), classes[_byte_text(byte)], byte=byte) for byte in range(256)]
    printable = [chr(code) for code in range(33, 127)]
    single = {word for word in words if len(word) == 1}
    made += [Token(f" {text}", classes[text], spaced=True) for text in printable]
    longer = [word for word in words if word not in single]
    made += [Token(word, classes[word], word=True) for word in longer]
    made += [Token(f" {word}", classes[word], spaced=True, word=True) for word in longer]
    for text in ("Question:", "Answer:"):
        made += [Token(text, classes[text]), Token(f" {text}", classes[text], spaced=True)]
    made += [Token(text, classes[text]) for text in (". ", ".\n")]
    return tuple(made)


def class_of(text: str) -> int:
    """The class of a token given by its text without a leading space."""
    return _CLASSES[text]


def bits(number: int) -> tuple[float, ...]:
    """A class as ±1, lowest bit first."""
    return tuple(1.0 if number >> place & 1 else -1.0 for place in range(CLASS_BITS))


def _byte_text(byte: int) -> str:
    """A byte below 128 is its character; the others are half a character and get a name instead."""
    return chr(byte) if byte < 128 else f"<0x{byte:02X}>"


TOKENS = tokens()
_CLASSES = {token.text: token.number for token in TOKENS if not token.spaced}
EOS_ID = SPECIAL.index(END)
EOS_CLASS = class_of(END)
EOS_TWINS = frozenset((". ", ".\n"))
"""Tokens of the end's class that are read but never written."""
