"""Logs on disk, on standard input or still growing, read to one judgement; and written again with it in the margin."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from culpa.model import Incident, LogFile, Reading
from culpa.triage.annotate import Annotator
from culpa.triage.next_steps import next_steps
from culpa.triage.reader import LogReader

STDIN = "standard input"
_CHUNK = 1 << 20
#: How often a growing file is looked at, and for how long it must be quiet before a judgement is printed, in seconds.
POLL_SECONDS = 0.25
QUIET_SECONDS = 1.0


class BadLog(ValueError):
    """A log that can't be read, in one line that says why and what to do."""


def read_logs(paths: Sequence[Path | None], dialect: str = "generic") -> Reading:
    """Read logs to their ends and judge them together; None is standard input. Kernel logs should come first: where
    no clock tells, the order of the files does. Raises BadLog for what can't be read or is empty."""
    document = _Document(dialect)
    for path in paths:
        document.begin(_name(path))
        with _open(path) as file:
            while piece := file.read(_CHUNK):
                document.feed(piece)
        document.end()
    if document.lines == 0:
        names = ", ".join(_name(path) for path in paths)
        raise BadLog(f"{names}: there is nothing to read in it")
    return document.reading()


def follow_log(
    path: Path | None,
    kernel_log: Path | None,
    tell: Callable[[Reading], None],
    dialect: str = "generic",
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Reading:
    """Read a log while it grows and `tell` of each judgement that is new, once the log has been quiet for a moment.

    A pipe ends where it ends; a file is followed until `stopped`. One that is replaced or cut short is read from its
    start again. Raises BadLog for what can't be read.
    """
    document = _Document(dialect)
    if kernel_log is not None:
        document.begin(str(kernel_log))
        with _open(kernel_log) as file:
            while piece := file.read(_CHUNK):
                document.feed(piece)
        document.end()
    document.begin(_name(path))
    told: tuple[object, ...] | None = None
    waiting = False
    last = time.monotonic()
    for piece in _growing(path, stopped):
        if piece:
            document.feed(piece)
            waiting, last = True, time.monotonic()
        if waiting and (not piece or piece is _END) and time.monotonic() - last >= QUIET_SECONDS:
            waiting = False
            told = _tell_if_new(document.reading(alive=True), told, tell)
    document.end()
    reading = document.reading(alive=path is not None)
    _tell_if_new(reading, told, tell)
    return reading


_END = b""


def _tell_if_new(
    reading: Reading, told: tuple[object, ...] | None, tell: Callable[[Reading], None]
) -> tuple[object, ...] | None:
    incident = reading.incident
    if incident is None:
        return told
    now = (incident.symptom, incident.root.line if incident.root else None, incident.first_failed_rank)
    if now != told:
        tell(reading)
    return now


def _growing(path: Path | None, stopped: Callable[[], bool]) -> Iterator[bytes]:
    """What is appended, and an empty piece at every look that found nothing."""
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
                identity = (status.st_dev, status.st_ino)
                file.seek(offset)
                while piece := file.read(_CHUNK):
                    offset += len(piece)
                    yield piece
        except FileNotFoundError:
            offset, identity = 0, None  # between two files of a rotation
        except OSError as error:
            raise BadLog(f"{path} can't be read: {error.strerror or error}") from error
        yield _END
        time.sleep(POLL_SECONDS)


def annotate_logs(paths: Sequence[Path], reading: Reading, out: TextIO, dialect: str = "generic") -> None:
    """Write the logs with the role of each line in front, cleaned of escapes, line by line. Raises BadLog."""
    annotator = Annotator(reading, dialect)
    number = 0
    for file, path in zip(reading.files, paths, strict=True):
        if len(reading.files) > 1:
            out.write(annotator.header(file.name) + "\n")
        with _open(path) as stream:
            for raw in _lines(stream):
                number += 1
                out.write(annotator.line(number, raw) + "\n")


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


@contextmanager
def _open(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    try:
        if path.is_dir():
            raise BadLog(f"{path} is a folder: name the log files in it")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise BadLog(f"{path} can't be read: {error.strerror or error}") from error


def _lines(stream: BinaryIO) -> Iterator[str]:
    while raw := stream.readline(_CHUNK):
        yield raw.decode("utf-8", "replace").rstrip("\n")


class _Document:
    """Reads one log after the other, as bytes in pieces."""

    def __init__(self, dialect: str) -> None:
        self._reader = LogReader(dialect)
        self._files: list[LogFile] = []
        self._rest = b""
        self.lines = 0

    def begin(self, name: str) -> None:
        self._files.append(LogFile(name, self.lines + 1))

    def feed(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._take(whole)

    def end(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self._take([rest])

    def _take(self, lines: Sequence[bytes]) -> None:
        self.lines += len(lines)
        self._reader.feed(line.decode("utf-8", "replace") for line in lines)

    def reading(self, *, alive: bool = False) -> Reading:
        incident: Incident | None = self._reader.incident(alive=alive)
        steps = next_steps(incident) if incident is not None else ()
        return Reading(tuple(self._files), self.lines, incident, steps)
