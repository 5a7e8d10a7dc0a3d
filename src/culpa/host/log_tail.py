"""Reading a log while it grows."""

import os
from pathlib import Path

MAX_LINE_BYTES = 256 * 1024  # configuration dumps of engines reach 100 kB and are wanted whole
_CHUNK_BYTES = 1024 * 1024


class LogTail:
    """New lines of a file since the last call, each exactly once, whatever the bytes in it are.

    A line ends with LF, CR LF, or CR alone (progress bars draw over themselves with it). Its last part stays
    back until it is complete. Invalid UTF-8 is replaced. Of a line longer than MAX_LINE_BYTES the rest is
    dropped and the line says so, so that no engine can fill the memory. A file that is not there yet has no
    lines; one that became shorter is read from its start again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._partial = bytearray()
        self._dropped = 0  # bytes of the current line beyond the limit
        self._after_cr = False  # the last byte was a CR: a LF that follows belongs to it

    @property
    def bytes_read(self) -> int:
        """How much of the file has been read: a sign of progress even when no line was completed."""
        return self._offset

    def read(self) -> list[str]:
        """New complete lines, without their line ends. Raises OSError if the file cannot be read."""
        lines: list[str] = []
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return lines
        with file:
            if os.fstat(file.fileno()).st_size < self._offset:
                self._restart()
            file.seek(self._offset)
            while chunk := file.read(_CHUNK_BYTES):
                self._offset += len(chunk)
                self._take(chunk, lines)
        return lines

    def final(self) -> list[str]:
        """What `read` gives, and then the unterminated rest, for when nobody writes any more."""
        lines = self.read()
        if self._partial or self._dropped:
            lines.append(self._complete())
        return lines

    def _take(self, chunk: bytes, lines: list[str]) -> None:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for piece in complete:
            self._extend(piece)
            lines.append(self._complete())
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._partial)
        self._partial += piece[:room]
        self._dropped += max(0, len(piece) - room)

    def _complete(self) -> str:
        text = self._partial.decode("utf-8", errors="replace")
        if self._dropped:
            text += f" [... {self._dropped} more bytes in this line]"
        self._partial.clear()
        self._dropped = 0
        return text

    def _restart(self) -> None:
        self._offset = 0
        self._partial.clear()
        self._dropped = 0
        self._after_cr = False
