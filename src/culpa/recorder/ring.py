"""The ring on disk: what went through lately, written before it goes on, in segments that leave one by one.

`write` hands bytes to the kernel before a request is forwarded, so a kill of culpa loses nothing that was sent; there
is no fsync, so a power cut may. Memory holds only which requests are open and what each segment spans.
"""

import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from culpa.traffic.frames import HEADER, SCHEMA, SEALED, SUFFIX, frame, segment_name
from culpa.traffic.recorded import BadRecording

# A segment ends at this size, or at this share of the requests or seconds to keep: so much more than asked is kept.
_SEGMENT_BYTES: Final = 16 << 20
_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True)
class Keep:
    """What the ring keeps: the last requests, or the last seconds, or both (whichever is more), within `most_bytes`."""

    requests: int | None = None
    seconds: float | None = 600.0
    most_bytes: int = 4 << 30


@dataclass(slots=True)
class _Segment:
    path: Path
    began: float
    size: int = 0
    requests: int = 0
    last: float = 0.0
    open: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # open request -> offset and length of its frame


class Ring:
    """One recording being written. Times are seconds since its start, by the caller's clock.

    Not for several threads. Raises BadRecording for a folder that can't be used; OSError where the disk is full.
    """

    def __init__(self, folder: Path, keep: Keep, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self.keep = keep
        self.requests = 0
        self.dropped = 0
        self._segments: deque[_Segment] = deque()
        self._number = 0
        self._file = -1
        self._of: dict[int, _Segment] = {}
        self._size = 0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise BadRecording(f"--out {folder}: can't be made: {error.strerror or error}") from None
        if any((folder / name).exists() for name in (HEADER, SEALED)) or any(folder.glob(f"*{SUFFIX}")):
            raise BadRecording(f"--out {folder}: holds a recording already: choose another folder")
        header = {
            "schema": SCHEMA,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "last_requests": keep.requests,
            "last_seconds": keep.seconds,
            **about,
        }
        _write_whole(folder / HEADER, header)
        self._begin(0.0)

    @property
    def open(self) -> int:
        """How many requests are under way."""
        return len(self._of)

    @property
    def sealed(self) -> bool:
        """Whether the recording is over."""
        return self._file < 0

    @property
    def size(self) -> int:
        """What the ring takes on disk."""
        return self._size

    def request(self, now: float, fields: Mapping[str, Any], body: bytes) -> int:
        """Write a request down; its number. After this call it may be forwarded."""
        segment = self._segments[-1]
        if self._is_full(segment, now):
            segment = self._begin(now)
            self._forget(now)
        number = self.requests
        place, length = self._append(frame("request", {"id": number, "t": round(now, 6), **fields}, body))
        self.requests = number + 1
        segment.requests += 1
        segment.last = now
        segment.open[number] = (place, length)
        self._of[number] = segment
        return number

    def part(self, number: int, data: bytes) -> None:
        """Write a part of a response down."""
        self._append(frame("part", {"id": number}, data))

    def end(self, number: int, now: float, fields: Mapping[str, Any], data: bytes = b"") -> None:
        """Write down what came of a request, with the rest of its response."""
        self._append(frame("end", {"id": number, "t": round(now, 6), **fields}, data))
        self._of.pop(number).open.pop(number)

    def seal(self, now: float, reason: str, detail: str = "") -> None:
        """The recording is over. What is still open stays unanswered."""
        if self.sealed:
            return
        os.fsync(self._file)
        os.close(self._file)
        self._file = -1
        counts = {"requests": self.requests, "kept": self.kept, "unanswered": len(self._of)}
        _write_whole(self.folder / SEALED, {"reason": reason, "detail": detail, "t": round(now, 6), **counts})

    @property
    def kept(self) -> int:
        """How many requests the ring holds now."""
        return sum(segment.requests for segment in self._segments)

    # -- segments ------------------------------------------------------------------------------------------

    def _append(self, data: bytes) -> tuple[int, int]:
        segment = self._segments[-1]
        place = segment.size
        written = 0
        while written < len(data):
            written += os.write(self._file, data[written:] if written else data)
        segment.size += written
        self._size += written
        return place, written

    def _is_full(self, segment: _Segment, now: float) -> bool:
        keep = self.keep
        return (
            segment.size >= min(_SEGMENT_BYTES, max(1, keep.most_bytes // _SEGMENTS))
            or (keep.requests is not None and segment.requests >= max(1, keep.requests // _SEGMENTS))
            or (keep.seconds is not None and now - segment.began >= keep.seconds / _SEGMENTS)
        )

    def _begin(self, now: float) -> _Segment:
        if self._file >= 0:
            os.close(self._file)
        path = self.folder / segment_name(self._number)
        # Prompts of people: for nobody else's eyes.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._number += 1
        segment = _Segment(path, now)
        self._segments.append(segment)
        return segment

    def _forget(self, now: float) -> None:
        """Let old segments go; requests in them that are still open are carried into the newest one first."""
        while len(self._segments) > 1:
            oldest = self._segments[0]
            newer = sum(one.requests for one in self._segments) - oldest.requests
            wanted = self.keep.requests is not None and newer < self.keep.requests
            wanted |= self.keep.seconds is not None and now - oldest.last <= self.keep.seconds
            if (
                wanted or not (self.keep.requests or self.keep.seconds)
            ) and self._size <= self.keep.most_bytes:
                return
            self._carry(oldest)
            self._segments.popleft()
            self.dropped += oldest.requests
            self._size -= oldest.size
            oldest.path.unlink(missing_ok=True)

    def _carry(self, oldest: _Segment) -> None:
        if not oldest.open:
            return
        newest = self._segments[-1]
        with oldest.path.open("rb") as file:
            for number, (place, length) in oldest.open.items():
                newest.open[number] = self._append(os.pread(file.fileno(), length, place))
                newest.requests += 1
                oldest.requests -= 1
                self._of[number] = newest


def _write_whole(path: Path, content: Mapping[str, Any]) -> None:
    """Write a small file so that it is there in whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(
                json.dumps(content, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            )
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
