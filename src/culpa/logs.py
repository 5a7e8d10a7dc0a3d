"""Logs on disk, on standard input or still growing, read to one judgement; and written again with it in the margin."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from culpa.model import LogFile, Reading
from culpa.sources import SourceError, read_log
from culpa.triage.annotate import Annotator
from culpa.triage.document import LogDocument
from culpa.triage.next_steps import next_steps, steps_for_xids
from culpa.triage.scan import lines_of

STDIN = "standard input"
_CHUNK = 1 << 20
#: How often a growing file is looked at, and for how long it must be quiet before a judgement is printed, in seconds.
POLL_SECONDS = 0.25
QUIET_SECONDS = 1.0


def read_logs(paths: Sequence[Path | None], dialect: str = "generic") -> Reading:
    """Read logs to their ends and judge them together; None is standard input. Kernel logs should come first: where
    no clock tells, the order of the files does. Raises SourceError for what can't be read or is empty."""
    files = _Files(dialect)
    for path in paths:
        files.add(path)
    if files.document.reader.lines == 0:
        names = ", ".join(_name(path) for path in paths)
        raise SourceError(f"{names}: there is nothing to read in it")
    return files.reading()


def follow_log(
    path: Path | None,
    kernel_log: Path | None,
    tell: Callable[[Reading], None],
    dialect: str = "generic",
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Reading:
    """Read a log while it grows and `tell` of each judgement that is new, once the log has been quiet for a moment.

    A pipe ends where it ends; a file is followed until `stopped`. One that is replaced or cut short is judged as a new
    log from its start. Gives the last judgement that tells of a failure, if there was one. Raises SourceError for
    what can't be read.
    """
    log = _Followed(path, kernel_log, dialect, tell)
    for piece in _growing(path, stopped):
        if piece is None:
            log.end()
            log.begin()
        else:
            log.take(piece)
    return log.end()


class _Followed:
    """A log that grows, and what was told of it."""

    def __init__(
        self, path: Path | None, kernel_log: Path | None, dialect: str, tell: Callable[[Reading], None]
    ) -> None:
        self._path = path
        self._kernel_log = kernel_log
        self._dialect = dialect
        self._tell = tell
        self._failure: Reading | None = None
        self.begin()

    def begin(self) -> None:
        """From the start of the log on."""
        self._files = _Files(self._dialect)
        if self._kernel_log is not None:
            self._files.add(self._kernel_log)
        self._files.begin(self._path)
        self._told: tuple[object, ...] | None = None
        self._waiting = False
        self._last = time.monotonic()

    def take(self, piece: bytes) -> None:
        """What was appended; a judgement follows once nothing is for a moment."""
        if piece:
            self._files.document.feed(piece)
            self._waiting, self._last = True, time.monotonic()
        elif self._waiting and time.monotonic() - self._last >= QUIET_SECONDS:
            self._waiting = False
            self._judge()

    def end(self) -> Reading:
        """No more of this log comes."""
        self._files.document.end()
        reading = self._judge()
        return self._failure or reading

    def _judge(self) -> Reading:
        reading = self._files.reading(alive=self._path is not None)
        incident = reading.incident
        if incident is not None:
            self._failure = reading
            now = (
                incident.symptom,
                incident.root.line if incident.root else None,
                incident.first_failed_rank,
            )
            if now != self._told:
                self._tell(reading)
            self._told = now
        return reading


def _growing(path: Path | None, stopped: Callable[[], bool]) -> Iterator[bytes | None]:
    """What is appended, an empty piece at every look that found nothing, and None where the log begins anew."""
    if path is None:
        read = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
        while piece := read(_CHUNK):
            yield piece
        return
    offset, identity = 0, None
    while not stopped():
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if identity not in (None, (status.st_dev, status.st_ino)) or status.st_size < offset:
                    offset = 0
                    yield None
                identity = (status.st_dev, status.st_ino)
                file.seek(offset)
                while piece := file.read(_CHUNK):
                    offset += len(piece)
                    yield piece
        except FileNotFoundError:
            identity = (0, 0)  # between two files of a rotation; the next may get the same number
        except OSError as error:
            raise SourceError(f"{path} can't be read: {error.strerror or error}") from error
        yield b""
        time.sleep(POLL_SECONDS)


def annotate_logs(paths: Sequence[Path], reading: Reading, out: TextIO, dialect: str = "generic") -> None:
    """Write the logs with the role of each line in front, cleaned of escapes, line by line. Raises SourceError."""
    annotator = Annotator(reading, dialect)
    number = 0
    for file, path in zip(reading.files, paths, strict=True):
        if len(reading.files) > 1:
            out.write(annotator.header(file.name) + "\n")
        for raw in _lines(path):
            number += 1
            out.write(annotator.line(number, raw) + "\n")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a log, as the document counts them."""
    rest = b""
    for piece in read_log(path):
        whole, newline, rest = (rest + piece).rpartition(b"\n")
        yield from lines_of(whole + newline)
    if rest:
        yield from lines_of(rest + b"\n")


@contextmanager
def spooled_stdin() -> Iterator[Path]:
    """Standard input as a file that can be read twice, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="culpa-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK)
        yield path


def _name(path: Path | None) -> str:
    return STDIN if path is None else str(path)


class _Files:
    """The logs of one reading."""

    def __init__(self, dialect: str) -> None:
        self.document = LogDocument(dialect)
        self._files: list[LogFile] = []

    def begin(self, path: Path | None) -> None:
        """The next log; its pieces go to the document."""
        self.document.begin(_name(path))
        self._files.append(LogFile(_name(path), self.document.reader.lines + 1))

    def add(self, path: Path | None) -> None:
        """A whole log."""
        self.begin(path)
        for piece in read_log(path):
            self.document.feed(piece)
        self.document.end()

    def reading(self, *, alive: bool = False) -> Reading:
        """The judgement so far. Where the engine is seen to work after the event, it has not ended."""
        incident = self.document.incident(alive=alive)
        root = incident.root if incident is not None else None
        if not alive and root is not None and self.document.reader.went_on_after(root.line):
            incident = self.document.incident(alive=True)
        xids = self.document.reader.xids_alone() if incident is None else ()
        steps = next_steps(incident) if incident is not None else steps_for_xids(xids)
        return Reading(tuple(self._files), self.document.reader.lines, incident, steps, xids)
