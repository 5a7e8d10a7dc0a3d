"""Finds and edits flags in an argument vector. All other words stay as they are, byte for byte."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"-\d+(\.\d+)?|-\.\d+")


def looks_like_number(word: str) -> bool:
    """Whether a word that begins with a dash is a negative number and no flag."""
    return _NUMBER.fullmatch(word) is not None


@dataclass(frozen=True, slots=True)
class Grammar:
    """How an engine's command line is read.

    `equals`: `--flag=value` is understood. `underscores`: `--a_b` is the same flag as `--a-b`. `valued`:
    flags that are known to take a value, so that a value which looks like a flag is not taken for one.
    """

    equals: bool = True
    underscores: bool = False
    valued: frozenset[str] = frozenset()

    def spelled(self, word: str) -> str:
        """The flag as this engine compares it."""
        return word.replace("_", "-") if self.underscores and word.startswith("--") else word

    def split(self, word: str) -> tuple[str, str | None]:
        """A word as flag and glued value, the value None where nothing is glued to it."""
        if self.equals and word.startswith("-") and "=" in word:
            flag, value = word.split("=", 1)
            return self.spelled(flag), value
        return self.spelled(word), None


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where a flag stands: `argv[index]`, and one word more if the value is a word of its own."""

    index: int
    flag: str  # as it is written there
    value: str | None
    glued: bool = False

    @property
    def words(self) -> int:
        """How many words it takes."""
        return 2 if self.value is not None and not self.glued else 1


def mentions(
    argv: Sequence[str],
    start: int,
    grammar: Grammar,
    valued: Iterable[str] = (),
    switches: Iterable[str] = (),
    optional: bool = False,
) -> list[Mention]:
    """Every mention of these flags in `argv[start:]`, in order. `--` ends the search.

    `valued` flags take a value, `switches` take none. With `optional`, a valued flag may stand without its
    value: then a following word that looks like a flag is not taken (a negative number is).
    """
    wanted = {grammar.spelled(flag) for flag in valued}
    plain = {grammar.spelled(flag) for flag in switches}
    others = {grammar.spelled(flag) for flag in grammar.valued} - wanted - plain
    found: list[Mention] = []
    index = start
    while index < len(argv) and argv[index] != "--":
        flag, glued = grammar.split(argv[index])
        step = 1
        if flag in wanted:
            if glued is not None:
                found.append(Mention(index, argv[index].split("=", 1)[0], glued, glued=True))
            else:
                value = argv[index + 1] if index + 1 < len(argv) else None
                if optional and value is not None and value.startswith("-") and not looks_like_number(value):
                    value = None
                found.append(Mention(index, argv[index], value))
                step = found[-1].words
        elif flag in plain and glued is None:
            found.append(Mention(index, argv[index], None))
        elif flag in others and glued is None:
            step = 2
        index += step
    return found


def replaced(argv: Sequence[str], mention: Mention, words: Sequence[str]) -> tuple[str, ...]:
    """The argument vector with other words where the mention stands."""
    return (*argv[: mention.index], *words, *argv[mention.index + mention.words :])


def with_value(argv: Sequence[str], mention: Mention, value: str) -> tuple[str, ...]:
    """The argument vector with the mention's value changed in its place, glued if it was glued."""
    words = [f"{mention.flag}={value}"] if mention.glued else [mention.flag, value]
    return replaced(argv, mention, words)


def without(argv: Sequence[str], gone: Iterable[Mention]) -> tuple[str, ...]:
    """The argument vector without these mentions."""
    dropped = {i for mention in gone for i in range(mention.index, mention.index + mention.words)}
    return tuple(word for i, word in enumerate(argv) if i not in dropped)


def appended(argv: Sequence[str], start: int, words: Sequence[str]) -> tuple[str, ...]:
    """The argument vector with words added at the end of the engine's flags (in front of a `--`)."""
    for index in range(start, len(argv)):
        if argv[index] == "--":
            return (*argv[:index], *words, *argv[index:])
    return (*argv, *words)
