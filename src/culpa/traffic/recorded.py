"""Requests that went to an engine, as they were recorded: what was sent, when, and what came of it."""

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

# What came of a request: a whole response; its client gave it up; the connection to the engine broke; nothing more
# is known, because the recording ended before its response; nothing was ever recorded of it, as in a benchmark's file.
Outcome = Literal["answered", "cancelled", "lost", "unanswered", "unknown"]
# A response that unpacks to more than this is not read as text.
_MOST_UNPACKED = 64 << 20


class BadRecording(ValueError):
    """Traffic that can't be used. The message is one clear line with file, place and reason."""


class Content(Protocol):
    """Bytes that may lie in a file."""

    def read(self) -> bytes:
        """All of them. Raises BadRecording if the file does not hold them any more."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes in memory."""

    data: bytes = b""

    def read(self) -> bytes:
        """All of them."""
        return self.data


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes of a file, with their checksum (CRC-32)."""

    path: Path
    offset: int
    length: int
    crc: int

    def read(self) -> bytes:
        """All of them. Raises BadRecording."""
        try:
            with self.path.open("rb") as file:
                data = os.pread(file.fileno(), self.length, self.offset)
        except OSError as error:
            raise BadRecording(f"{self.path}: can't be read: {error.strerror or error}") from None
        if len(data) != self.length or zlib.crc32(data) != self.crc:
            raise BadRecording(f"{self.path}: was changed while it was being read (byte {self.offset})")
        return data


@dataclass(frozen=True, slots=True)
class Joined:
    """Bytes that were written in parts."""

    parts: tuple[Content, ...]

    def read(self) -> bytes:
        """All of them, in order."""
        return b"".join(part.read() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request of a recording.

    `index` is its place in the recording, by the time it was sent, from 0. `at` and `ended` are seconds since the
    first request; `ended` is None where its end was not seen. `pieces` counts the events of the response that its
    client had. `response` is the response's body as far as it was kept, `encoding` its content encoding.
    `said` tells in the transport's words why there is no whole response.
    """

    index: int
    at: float
    path: str
    content: Content
    content_type: str = "application/json"
    method: str = "POST"
    outcome: Outcome = "unanswered"
    ended: float | None = None
    status: int | None = None
    pieces: int = 0
    response: Content | None = None
    response_type: str = ""
    encoding: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    said: str = ""
    whole: bool = True  # False if a part of the response was not kept
    packed: str = ""  # the content encoding of the request's own body

    @property
    def open(self) -> bool:
        """True if the engine owed an answer when the recording ended, or died over it."""
        return self.outcome in ("lost", "unanswered")

    @property
    def failed(self) -> bool:
        """True if it got no answer, or an error of the engine's own (5xx) in place of one."""
        return self.open or (self.outcome == "answered" and (self.status or 0) >= 500)

    def body(self) -> Mapping[str, Any] | None:
        """The request's body where it is a JSON object, else None. Raises BadRecording."""
        try:
            found = json.loads(self.content.read())
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def response_text(self) -> str | None:
        """The response as text, None where none was kept or it can't be unpacked. Raises BadRecording."""
        if self.response is None:
            return None
        data = self.response.read()
        match self.encoding.lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip" | "deflate":
                unpacked = _unpacked(data)
                if unpacked is None:
                    return None
                data = unpacked
            case _:
                return None
        return data.decode("utf-8", "replace")


def _unpacked(data: bytes) -> bytes | None:
    """What gzip or zlib packed; a cut end is no fault, a bomb is."""
    packed = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header
    try:
        found = packed.decompress(data, _MOST_UNPACKED)
    except zlib.error:
        return None
    return None if packed.unconsumed_tail else found
