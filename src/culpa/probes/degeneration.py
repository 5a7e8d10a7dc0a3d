"""Signs that a text is no language any more. None is proof alone: small models degenerate by nature."""

import re
import unicodedata
import zlib
from collections.abc import Sequence

# Shorter answers repeat by chance.
_FEWEST_CHARACTERS = 24
_FEWEST_REPEATS = 4
_SAME_CHARACTER = 8
_LONGEST_UNIT = 64
# The end of a text shows what it came to; more would only cost time.
_LONGEST_TEXT = 4000
_FEWEST_LETTERS = 4
_FEWEST_BYTES = 200
# Share of the text that one repeated unit must cover.
_COVERAGE = 0.6
# Share of letters in scripts that the prompt does not use.
_FOREIGN = 0.3
# Prose of a few hundred bytes compresses by less than 2.5, lists and code by less than 4.
_RATIO = 5.0


def degeneration(text: str, prompt: str = "", tokens: Sequence[str] = ()) -> str | None:
    """Why a text looks degenerate, in a few words with numbers, or None.

    Looks for one token only, a repeated unit, letters in scripts foreign to the prompt, and a text that
    compresses too well (zlib).
    """
    stripped = text.strip()[-_LONGEST_TEXT:]
    return (
        _one_token(tokens)
        or _repeated_unit(stripped)
        or _foreign_script(stripped, prompt)
        or _compresses(stripped)
    )


def flipped(finish_reason: str | None, expected: Sequence[str | None]) -> bool:
    """True if an answer ran to its limit although all of the expected ones stopped by themselves."""
    return finish_reason == "length" and bool(expected) and all(one == "stop" for one in expected)


def _one_token(tokens: Sequence[str]) -> str | None:
    if len(tokens) >= _SAME_CHARACTER and len(set(tokens)) == 1:
        return f"the token {tokens[0]!r} {len(tokens)} times and nothing else"
    return None


def _repeated_unit(text: str) -> str | None:
    """A unit of 1 to 64 characters that follows itself and covers most of the text."""
    run = re.search(rf"(\S)\1{{{_SAME_CHARACTER - 1},}}", text)
    if run and len(run.group()) >= _COVERAGE * len(text):
        return f"{run.group(1)!r} repeated {len(run.group())} times"
    if len(text) < _FEWEST_CHARACTERS:
        return None
    best: tuple[int, int, int] = (0, 0, 0)  # covered characters, unit length (negated: short wins), start
    for unit in range(1, min(_LONGEST_UNIT, len(text) // _FEWEST_REPEATS) + 1):
        covered, start = _longest_period(text, unit)
        if covered >= unit * _FEWEST_REPEATS:
            best = max(best, (covered, -unit, start))
    covered, unit, start = best[0], -best[1], best[2]
    if covered >= max(_FEWEST_CHARACTERS, _COVERAGE * len(text)):
        return f"{text[start : start + unit]!r} repeated {covered // unit} times"
    return None


def _longest_period(text: str, unit: int) -> tuple[int, int]:
    """Length and start of the longest stretch in which every character equals the one `unit` before it."""
    longest = start = run = 0
    for index in range(unit, len(text)):
        run = run + 1 if text[index] == text[index - unit] else 0
        if run > longest:
            longest, start = run, index - run + 1 - unit
    return (longest + unit if longest else 0), start


def _foreign_script(text: str, prompt: str) -> str | None:
    known = {_script(letter) for letter in prompt if letter.isalpha()}
    letters = [letter for letter in text if letter.isalpha()]
    foreign = [letter for letter in letters if _script(letter) not in known]
    if not known or len(foreign) < _FEWEST_LETTERS or len(foreign) < _FOREIGN * len(letters):
        return None
    names = ", ".join(sorted({_script(letter) for letter in foreign})[:3])
    return f"{len(foreign)} of {len(letters)} letters in scripts that the prompt does not use ({names})"


def _script(letter: str) -> str:
    # The first word of a character's Unicode name is its script: LATIN, CYRILLIC, CJK, HANGUL ...
    return unicodedata.name(letter, "UNNAMED").split(" ", 1)[0].split("-", 1)[0].lower()


def _compresses(text: str) -> str | None:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) < _FEWEST_BYTES:
        return None
    ratio = len(raw) / len(zlib.compress(raw, 9))
    return f"{len(raw)} bytes that compress {ratio:.1f}-fold" if ratio >= _RATIO else None
