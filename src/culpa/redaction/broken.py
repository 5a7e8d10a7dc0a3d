"""Secrets that a line end has cut in two: found where the lines, put together again, show their shape."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from culpa.redaction.table import Rule

# What a terminal, a shell or a program leaves around a line end within a word.
_BREAK = re.compile(r"(?<=[A-Za-z0-9_.~+/=-])[ \t\\\\'\"]*\n[ \t>|'\"]*(?=[A-Za-z0-9_.~+/=-])", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9.,:/-]+", re.ASCII)
_LONGEST = 4096
_LEAST_LAST = 8  # a last line of letters only is a piece of a secret if it is as long and all there is


@dataclass(frozen=True, slots=True)
class _Joined:
    """A text without its breaks: where each break stood in it, and how much was taken out up to and with each."""

    text: str
    breaks: list[int]
    removed: list[int]

    def place(self, position: int, *, end: bool = False) -> int:
        """The place in the whole text of a position in this one; of an `end` that behind the character before it."""
        if end:
            return self.place(position - 1) + 1
        index = bisect_right(self.breaks, position)
        return position + (self.removed[index - 1] if index else 0)


def broken_places(text: str, rules: tuple[Rule, ...]) -> Iterator[tuple[int, int]]:
    """The places of secrets that go over a line end. A next line that begins with a plain word is no part of one."""
    if "\n" not in text:
        return
    joined = _join(text)
    if not joined.breaks:
        return
    raw = joined.text.encode("latin-1", "replace")
    for rule in rules:
        for match in rule.pattern.finditer(raw):
            start, end = match.span(1)
            if end - start > _LONGEST or rule.mixed:
                continue
            end = _end(joined, text, start, end)
            if end > start:
                yield joined.place(start), joined.place(end, end=True)


def _join(text: str) -> _Joined:
    parts: list[str] = []
    breaks: list[int] = []
    removed: list[int] = []
    position = length = 0
    for match in _BREAK.finditer(text):
        parts.append(text[position : match.start()])
        length += match.start() - position
        breaks.append(length)
        position = match.end()
        removed.append(position - length)
    return _Joined("".join([*parts, text[position:]]), breaks, removed)


def _end(joined: _Joined, text: str, start: int, end: int) -> int:
    """Where a find that goes over breaks really ends; `start` if it goes over none."""
    last = start
    first = bisect_right(joined.breaks, start)
    for index in range(first, len(joined.breaks)):
        at = joined.breaks[index]
        if at >= end:
            break
        stop = min(joined.breaks[index + 1] if index + 1 < len(joined.breaks) else end, end)
        piece = joined.text[at:stop]
        after = joined.place(stop, end=True)
        alone = text[after : after + 1] in ("", "\n", "'", '"')
        if _PLAIN_WORD.fullmatch(piece) and not (alone and len(piece) >= _LEAST_LAST):
            break
        last = stop
    return last
