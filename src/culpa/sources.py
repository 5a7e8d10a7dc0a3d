"""Log files as streams of bytes: plain, gzip or zstd, UTF-8 or UTF-16, from a path or from standard input.

Everything is read piece by piece, so a file may be larger than memory.
"""

import codecs
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

#: Bytes that are read or given at a time.
CHUNK = 1 << 20
#: A compressed file that grows by more than this factor, and beyond this size, holds no log. Logs shrink by 10 to 100;
#: what shrinks more is made to fill memory or to take for ever.
MAX_RATIO = 400
RATIO_COUNTS_FROM = 64 << 20
#: zstd may ask for a window as large as the file; a log has no use for more.
_MAX_WINDOW = 1 << 27

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_OTHERS = {
    b"PK\x03\x04": ("a zip archive", "unzip -p {name}"),
    b"\xfd7zXZ\x00": ("compressed with xz", "xz -dc {name}"),
    b"BZh": ("compressed with bzip2", "bzip2 -dc {name}"),
}
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class SourceError(ValueError):
    """A log that can't be read, in one line that says why and what to do."""


def read_log(path: Path | None) -> Iterator[bytes]:
    """The bytes of a log, decompressed, in pieces of any size; `None` is standard input.

    UTF-16 with a byte order mark, as PowerShell writes it, becomes UTF-8. A compressed file that breaks off gives
    what can be read of it. Raises SourceError for what is missing, unreadable, no log, or a decompression bomb.
    """
    name = "standard input" if path is None else str(path)
    if path is None:
        yield from _decoded(_pieces(sys.stdin.buffer, name), name)
        return
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise SourceError(f"{name} is a folder: name the log files in it")
        with path.open("rb") as file:
            yield from _decoded(_pieces(file, name), name)
    except OSError as error:
        raise SourceError(f"{name} can't be read: {error.strerror or error}") from error


def _pieces(file: BinaryIO, name: str) -> Iterator[bytes]:
    read = getattr(file, "read1", file.read)  # what is there counts: a pipe may be slow
    while True:
        try:
            piece: bytes = read(CHUNK)
        except OSError as error:
            raise SourceError(f"{name} can't be read: {error.strerror or error}") from error
        if not piece:
            return
        yield piece


def _decoded(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 6:
            break
    if not head:
        return
    for magic, (what, command) in _OTHERS.items():
        if head.startswith(magic):
            hint = command.format(name=name)
            raise SourceError(f"{name} is {what}: unpack it first ({hint} | culpa triage)")
    rest = _again(head, pieces)
    if head.startswith(_GZIP):
        rest = _guarded(_gunzip, rest, name)
    elif head.startswith(_ZSTD):
        rest = _guarded(_unzstd, rest, name)
    first = next(rest, b"")
    encoding = _UTF16.get(first[:2])
    if encoding is None:
        yield from _again(first, rest)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for piece in _again(first[2:], rest):
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class _Meter:
    """Counts what goes into a decompressor and what comes out."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            # Small bites keep the two counts close, so that a bomb is seen before it goes off.
            for start in range(0, len(piece), 1 << 16):
                bite = piece[start : start + (1 << 16)]
                self.taken += len(bite)
                yield bite


def _guarded(
    decompress: Callable[[Iterator[bytes], str], Iterator[bytes]], pieces: Iterator[bytes], name: str
) -> Iterator[bytes]:
    meter = _Meter(pieces)
    given = 0
    for piece in decompress(iter(meter), name):
        given += len(piece)
        if given > RATIO_COUNTS_FROM and given > MAX_RATIO * meter.taken:
            raise SourceError(
                f"{name} looks like a decompression bomb: {meter.taken} bytes became more than {given}. "
                f"If it is a log all the same, unpack it yourself and give culpa the result"
            )
        yield piece


def _gunzip(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    begun = False
    for piece in pieces:
        data = piece
        while data:
            if member.eof:  # files that were appended to one another
                data = data.lstrip(b"\x00")
                if not data.startswith(_GZIP[: len(data)]):
                    return  # padding, or something that is no gzip
                member = zlib.decompressobj(wbits=31)
            try:
                out = member.decompress(data, CHUNK)
            except zlib.error as error:
                if not begun:
                    raise SourceError(f"{name} is a damaged gzip file: {error}") from error
                return
            begun = begun or bool(out)
            if out:
                yield out
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof and (rest := member.flush()):
        yield rest


def _unzstd(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    import zstandard  # loaded only for such a file

    source = cast(BinaryIO, _Stream(pieces))  # the library only ever calls read
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    reader = decompressor.stream_reader(source, read_across_frames=True)
    begun = False
    while True:
        try:
            out = reader.read(CHUNK)
        except zstandard.ZstdError as error:
            if not begun:
                raise SourceError(f"{name} is a damaged zstd file: {error}") from error
            return
        if not out:
            return
        begun = True
        yield out


class _Stream:
    """Pieces as a file that can be read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        if not self._left:
            self._left = next(self._pieces, b"")
        if size < 0:
            size = len(self._left)
        given, self._left = self._left[:size], self._left[size:]
        return given
