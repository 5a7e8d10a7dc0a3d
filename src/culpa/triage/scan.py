"""The quick look at bytes: one search for everything that may matter, so that only the lines around it are read."""

from culpa.triage.reader import LogReader
from culpa.triage.tables import searcher

#: Bytes that are read before and after a hit: who speaks, the traceback, what follows at once.
BEFORE, AFTER = 2 << 10, 4 << 10
#: A traceback that is still open is followed so much further.
_FOLLOW = 48 << 10
#: Of one word that never stops coming so many hits are read with their neighbours, and so many at all.
_WITH_NEIGHBOURS, _AT_ALL = 200, 20_000
_WORDS = 4096
#: One line of every so many bytes is read all the same, so that clocks and quiet processes stay known.
_SAMPLED = 512 << 10
#: Statistics come without end; the last before a hit tells the load, the next after it whether the engine goes on.
_STATISTICS = b"throughput"
_NEWLINE = b"\n"


class LineScan:
    """Feeds a reader with the neighbourhoods that matter and lets it count the other lines, block by block."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._pattern = searcher(reader.tables.scan)
        self._seen: dict[bytes, int] = {}
        self._more = 0  # bytes of the next block that still belong to the last neighbourhood
        self._behind = b""  # the last lines, not read yet: they may stand before a hit
        self._unsampled = 0
        self._statistics_due = False

    def feed(self, block: bytes) -> None:
        """Take a block of whole lines."""
        block = self._behind + block
        self._behind = b""
        position = 0
        if self._more:
            position = self._read(block, 0, _line_end(block, self._more))
        for start, end in self._spans(block, position):
            self._pass_over(block, position, start, before_hit=True)
            position = self._read(block, start, end)
        keep = _line_start(block, max(position, len(block) - BEFORE))
        keep = max(keep, position)
        self._pass_over(block, position, keep, before_hit=False)
        self._behind = block[keep:]

    def finish(self) -> None:
        """No more blocks: the lines that were kept back are read."""
        block, self._behind, self._more = self._behind, b"", 0
        self._give(block)

    def _spans(self, block: bytes, position: int) -> list[tuple[int, int]]:
        """The neighbourhoods of all hits from a position on, in order and apart."""
        spans: list[tuple[int, int]] = []
        last_line_end = -1
        for match in self._pattern.finditer(block):
            hit = match.start()
            if hit < last_line_end:
                continue
            reach = self._reach(match.group().lower()[:64])
            if reach is None:
                continue
            before, after = reach
            start = _line_start(block, hit)
            last_line_end = _line_end(block, hit)
            if before:
                start = _line_start(block, max(start - before, 0))
            end = _line_end(block, last_line_end + after) if after else last_line_end
            start = max(start, position)
            if end <= position:
                continue
            if last_line_end + after > len(block):
                self._more = last_line_end + after - len(block)
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return spans

    def _reach(self, word: bytes) -> tuple[int, int] | None:
        """How much to read around a hit of a word; None for one that has been seen too often."""
        count = self._seen.get(word, 0)
        if count >= _AT_ALL:
            return None
        if count or len(self._seen) < _WORDS:
            self._seen[word] = count + 1
        return (BEFORE, AFTER) if count < _WITH_NEIGHBOURS else (0, 0)

    def _read(self, block: bytes, start: int, end: int) -> int:
        """Read lines with care, and the rest of a traceback that is still open; returns where that ends."""
        self._more = max(self._more - (end - start), 0) if end >= len(block) else 0
        self._give(block[start:end])
        limit = min(end + _FOLLOW, len(block))
        while end < limit and self._reader.inside_traceback:
            further = _line_end(block, min(end + (2 << 10), limit))
            self._give(block[end:further])
            end = further
        self._statistics_due = True
        return end

    def _pass_over(self, block: bytes, start: int, end: int, *, before_hit: bool) -> None:
        """Count lines, but read the statistics next to a neighbourhood and a line now and then."""
        if start >= end:
            return
        picks: list[int] = []
        if self._statistics_due and (found := block.find(_STATISTICS, start, end)) >= 0:
            picks.append(_line_start(block, found))
            self._statistics_due = False
        while self._unsampled + (end - start) >= _SAMPLED:
            start_of_sample = start + (_SAMPLED - self._unsampled)
            self._unsampled -= _SAMPLED
            if start_of_sample < end:
                picks.append(_line_start(block, start_of_sample))
        self._unsampled += end - start
        if before_hit and (found := block.rfind(_STATISTICS, start, end)) >= 0:
            picks.append(_line_start(block, found))
        position = start
        for pick in sorted(set(picks)):
            if pick < position:
                continue
            self._reader.skip(block.count(_NEWLINE, position, pick))
            position = _line_end(block, pick)
            self._give(block[pick:position])
        self._reader.skip(block.count(_NEWLINE, position, end))

    def _give(self, piece: bytes) -> None:
        if piece:
            self._reader.feed(lines_of(piece))


#: A line without an end is cut here; the reader looks at less of it anyway.
MAX_RAW_LINE = 256 << 10


def lines_of(block: bytes) -> list[str]:
    """The lines of a block that ends with a newline, or of its beginning, as text."""
    lines = block.split(_NEWLINE)
    if not lines[-1]:
        lines.pop()
    return [line[:MAX_RAW_LINE].decode("utf-8", "replace") for line in lines]


def _line_start(block: bytes, position: int) -> int:
    return block.rfind(_NEWLINE, 0, position) + 1


def _line_end(block: bytes, position: int) -> int:
    """Where the line of a position ends, its newline included."""
    if position >= len(block):
        return len(block)
    found = block.find(_NEWLINE, position)
    return len(block) if found < 0 else found + 1
