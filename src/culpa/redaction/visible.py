"""Characters that act or hide, made visible; and the text without them, as a pattern has to see it."""

import re
import unicodedata
from functools import lru_cache

# A colour is only decoration: it is dropped. Other sequences of a terminal act, and are shown.
_COLOUR = r"\x1b\[[0-9;:]*m|\x9b[0-9;:]*m|\x1b\(B"
# ECMA-48: control sequences, strings with a terminator, other escapes. A pattern has to see the text without them.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# Characters of the class Cf that Unicode calls default-ignorable, fillers that look like nothing, separators, halves.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"{_SEQUENCE}|[{_UNSEEN}]")
_COLOURS = re.compile(_COLOUR)
_ACTING = re.compile(f"[{_UNSEEN}]")
_LINE_END = re.compile(r"\r+\n|\r")


def one_kind_of_line_end(text: str) -> str:
    """The text with line feeds only: a carriage return lets a line be written over what stood there."""
    return _LINE_END.sub("\n", text) if "\r" in text else text


def visible(text: str) -> str:
    """The text with every character that acts on a terminal, reorders or hides shown as `<U+202E>`.

    Tabs and line feeds stay, colours of a terminal are dropped, a carriage return becomes a line feed. Nothing that
    can be read is lost, and a second time changes nothing.
    """
    text = _COLOURS.sub("", one_kind_of_line_end(text))
    return _ACTING.sub(lambda match: _named(match.group()), text)


@lru_cache(maxsize=4096)
def _named(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def bare(text: str) -> tuple[str, list[int] | None]:
    """The text without what hides in it, and for each character of that its place in the text; None where both are
    the same. Letters of full width and other compatibility forms become those that a pattern knows."""
    if text.isascii():
        if _HIDDEN.search(text) is None:
            return text, None
    elif _HIDDEN.search(text) is None and unicodedata.is_normalized("NFKC", text):
        return text, None
    kept: list[str] = []
    places: list[int] = []
    position = 0
    while position < len(text):
        hidden = _HIDDEN.match(text, position)
        if hidden is not None:
            position = hidden.end()
            continue
        for one in _plain(text[position]):
            kept.append(one)
            places.append(position)
        position += 1
    return "".join(kept), places


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    """The compatibility form where it is ASCII, else the character itself."""
    form = unicodedata.normalize("NFKC", character)
    return form if form.isascii() and form.strip() else character
