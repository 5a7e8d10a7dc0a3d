"""The form of a recording on disk: segments, files of frames that are only ever appended to.

A frame is one line of JSON, then `n` bytes of payload and a line end. `crc` is the payload's CRC-32, `head` that of the
line before it. A frame that a
kill or a power cut has torn can only be the last of its segment.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culpa.traffic.recorded import Stretch

SCHEMA = "culpa.traffic/1"
HEADER = "recording.json"
SEALED = "sealed.json"
SUFFIX = ".seg"
_LONGEST_HEAD = 1 << 20
_HEAD = b',"head":'


def segment_name(number: int) -> str:
    """The file of a segment; names sort by number."""
    return f"{number:08d}{SUFFIX}"


def frame(kind: str, fields: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """A frame as bytes, to be written at once."""
    head = {"kind": kind, **fields, "n": len(payload), "crc": zlib.crc32(payload)}
    line = json.dumps(head, ensure_ascii=True, separators=(",", ":")).encode("ascii")[:-1]
    return b"".join((line, _HEAD, b"%d}\n" % zlib.crc32(line), payload, b"\n"))


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was read: what it says, and where its payload lies."""

    kind: str
    fields: Mapping[str, Any]
    payload: Stretch
    end: int

    def number(self, name: str, default: float | None = None) -> float | None:
        """A field that should be a finite number, else the default."""
        value = self.fields.get(name)
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
        return value if good else default

    def text(self, name: str) -> str:
        """A field that should be a text, else empty."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


def frames(path: Path) -> Iterator[Frame | str]:
    """The frames of a segment; a text in place of the first one that can't be read, after which nothing comes.

    Raises OSError. A segment may grow while it is read.
    """
    with path.open("rb") as file:
        offset = 0
        while True:
            line = file.readline(_LONGEST_HEAD)
            if not line:
                return
            head = _head(line)
            if head is None:
                torn = not line.endswith(b"\n") and len(line) < _LONGEST_HEAD
                yield f"{'is torn' if torn else 'is damaged'} at byte {offset}"
                return
            start, length = offset + len(line), int(head["n"])
            payload = file.read(length)
            if len(payload) < length or file.read(1) != b"\n":
                yield f"is torn at byte {offset}"
                return
            if zlib.crc32(payload) != head["crc"]:
                yield f"is damaged at byte {offset}"
                return
            offset = start + length + 1
            yield Frame(head["kind"], head, Stretch(path, start, length, head["crc"]), offset)


def _head(line: bytes) -> dict[str, Any] | None:
    covered, _, checksum = line.rpartition(_HEAD)
    if checksum != b"%d}\n" % zlib.crc32(covered):
        return None
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return None
    good = (
        isinstance(head, dict)
        and isinstance(head.get("kind"), str)
        and all(isinstance(head.get(name), int) and head[name] >= 0 for name in ("n", "crc"))
    )
    return head if good else None
