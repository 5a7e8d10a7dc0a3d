"""Pastes that a terminal or a form has wrapped at a fixed width: seen by their shape, and joined again."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

#: Narrower terminals and wider forms do not occur; a natural line seldom fills either.
_NARROWEST, _WIDEST = 40, 400
#: So many full lines that go on below are no accident.
_FEWEST = 3
#: More pieces than this are no line of a log that was wrapped.
_MAX_PIECES = 256

StartsRecord = Callable[[str], bool]


def paste_width(lines: Iterable[str], starts_record: StartsRecord) -> int | None:
    """The width at which the lines were wrapped, or None if they were not.

    Evidence: no line is longer, several are exactly as long, what follows these does not begin as lines begin, and
    many of them break off without a blank. `starts_record` says whether a text begins as a log line does.
    """
    texts = [line.rstrip("\r") for line in lines]
    width = max((len(text) for text in texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    seams = [(text, after) for text, after in pairwise(texts) if len(text) == width and after.strip()]
    if len(seams) < _FEWEST:
        return None
    continued = [(text, after) for text, after in seams if _continues(text, after, starts_record)]
    broken_off = sum(not text[-1].isspace() and not after[0].isspace() for text, after in continued)
    begun = sum(starts_record(text) for text in texts)
    if len(continued) < 0.8 * len(seams) or broken_off < max(2, 0.4 * len(seams)) or not begun:
        return None
    return width


class Rejoiner:
    """Joins the lines of a paste of one width, portion by portion."""

    def __init__(self, width: int, starts_record: StartsRecord) -> None:
        self._width = width
        self._starts_record = starts_record
        self._pieces: list[str] = []

    def feed(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Whole lines, each with the number of pieces that it was in; the last is kept until `finish`."""
        for raw in lines:
            text = raw.rstrip("\r")
            pieces = self._pieces
            if pieces and (
                len(pieces) >= _MAX_PIECES
                or len(pieces[-1]) < self._width
                or not _continues(pieces[-1], text, self._starts_record)
            ):
                yield from self.finish()
            self._pieces.append(text)

    def finish(self) -> Iterator[tuple[int, str]]:
        """The line that is still open."""
        pieces, self._pieces = self._pieces, []
        if pieces:
            yield len(pieces), "".join(pieces)


def _continues(text: str, after: str, starts_record: StartsRecord) -> bool:
    """Whether a line may be the rest of a full one. Lines of equal length that begin alike are a table or a storm."""
    return after[:8] != text[:8] and not starts_record(after)
