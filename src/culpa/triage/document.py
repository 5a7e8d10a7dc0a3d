"""Whole logs, file by file, as bytes in any pieces: what may matter is found, and only that is read."""

from bisect import bisect_right
from collections.abc import Iterator

from culpa.model import Incident
from culpa.triage.paste import Rejoiner, paste_width
from culpa.triage.reader import LogReader
from culpa.triage.scan import MAX_RAW_LINE, LineScan, lines_of

#: What stands at the beginning and at the end of a file is read line by line: who the processes are, and last words.
HEAD = 1 << 20
TAIL = 256 << 10
#: So much of a file is looked at before its first line is read, to see whether it was pasted with hard wraps.
SAMPLE = 64 << 10
_NEWLINE = b"\n"


class LogDocument:
    """Reads one log after the other and judges them together.

    `begin` names the next file, `feed` takes its bytes in pieces of any size, `end` says that it is over. Line
    numbers count through all files; `locate` gives file and line. `whole` reads every line with the same care,
    without looking first whether it may matter. Memory is bounded whatever the size. Raises ValueError for an
    unknown dialect; no bytes make it raise.
    """

    def __init__(self, dialect: str = "generic", *, whole: bool = False) -> None:
        self.reader = LogReader(dialect)
        self._scan = None if whole else LineScan(self.reader)
        self._names: list[str] = []
        self._starts: list[int] = []
        self._rest = b""
        self._overlong = False
        self._sample: bytes | None = b""
        self._rejoiner: Rejoiner | None = None
        self._head = 0
        self._held = b""

    def begin(self, name: str) -> None:
        """The next file. One that was not ended is ended."""
        if self._names:
            self.end()
            self.reader.begin_file()
        self._names.append(name)
        self._starts.append(self.reader.lines + 1)
        self._sample, self._rejoiner, self._head = b"", None, 0

    def feed(self, data: bytes) -> None:
        """The next bytes of the file."""
        if not self._names:
            self.begin("-")
        cut = data.rfind(_NEWLINE) + 1
        if cut == 0:
            self._keep(data)
            return
        block = self._rest + data[:cut]
        self._rest, self._overlong = b"", False
        self._keep(data[cut:])
        self._take(block)

    def end(self) -> None:
        """The file is over; a last line needs no newline."""
        rest, self._rest, self._overlong = self._rest, b"", False
        if rest:
            self._take(rest + _NEWLINE)
        self.settle()

    def settle(self) -> None:
        """Read what was put back to be seen together with what follows, as at a pause of a file that grows."""
        if self._sample is not None:
            self._decide()
        held, self._held = self._held, b""
        if self._scan is not None:
            self._scan.finish()
        if held:
            self._read(held)
        if self._rejoiner is not None:
            self._joined(self._rejoiner.finish())
        self.reader.settle()

    def incident(self, *, exit_code: int | None = None, alive: bool = False) -> Incident | None:
        """The judgement on all that was read; see LogReader.incident."""
        self.settle()
        return self.reader.incident(exit_code=exit_code, alive=alive)

    def locate(self, line: int) -> tuple[str, int]:
        """File and 1-based line of a line number that counts through all files."""
        index = max(bisect_right(self._starts, line) - 1, 0)
        if not self._names:
            return "-", line
        return self._names[index], line - self._starts[index] + 1

    def _keep(self, data: bytes) -> None:
        """The beginning of a line whose end is still to come."""
        if not data or self._overlong:
            return
        self._rest += data
        if len(self._rest) > MAX_RAW_LINE:
            self._rest, self._overlong = self._rest[:MAX_RAW_LINE], True

    def _take(self, block: bytes) -> None:
        """Whole lines."""
        if self._sample is None:
            self._lines(block)
            return
        self._sample += block
        if len(self._sample) >= SAMPLE:
            self._decide()

    def _decide(self) -> None:
        sample, self._sample = self._sample or b"", None
        if not sample:
            self._sample = b""
            return
        width = paste_width(lines_of(sample[:SAMPLE]), self.reader.starts_record)
        self._rejoiner = Rejoiner(width, self.reader.starts_record) if width is not None else None
        self._lines(sample)

    def _lines(self, block: bytes) -> None:
        if self._scan is None or self._rejoiner is not None:
            self._read(block)
            return
        if self._head < HEAD:
            cut = block.find(_NEWLINE, HEAD - self._head) + 1 if self._head + len(block) > HEAD else 0
            head, block = (block[:cut], block[cut:]) if cut else (block, b"")
            self._head += len(head)
            self._read(head)
        if block:
            block = self._held + block
            cut = block.rfind(_NEWLINE, 0, max(len(block) - TAIL, 0)) + 1
            self._held = block[cut:]
            self._scan.feed(block[:cut])

    def _read(self, block: bytes) -> None:
        if self._rejoiner is None:
            self.reader.feed(lines_of(block))
        else:
            self._joined(self._rejoiner.feed(lines_of(block)))

    def _joined(self, lines: Iterator[tuple[int, str]]) -> None:
        for pieces, text in lines:
            self.reader.feed([text])
            self.reader.skip(pieces - 1)
