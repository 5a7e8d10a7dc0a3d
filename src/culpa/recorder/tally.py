"""What is counted of a response as it passes: bytes, events, and the engine's own token counts at its end."""

import re
from typing import Any, Final

# The counts stand at the end of a body or in the last events of a stream.
_TAIL_BYTES: Final = 2048
_TOKENS = re.compile(rb'"(prompt_tokens|completion_tokens)"\s{0,4}:\s{0,4}(\d{1,12})')


class Tally:
    """The running counts of one response. `data:` may be cut between two reads; so little is missed that way that
    nobody would notice, and nothing is held back for it."""

    __slots__ = ("_tail", "bytes", "pieces")

    def __init__(self) -> None:
        self.bytes = 0
        self.pieces = 0
        self._tail = b""

    def take(self, data: bytes) -> None:
        """Take in what has passed."""
        self.bytes += len(data)
        self.pieces += data.count(b"data:")
        self._tail = data[-_TAIL_BYTES:] if len(data) >= _TAIL_BYTES else (self._tail + data)[-_TAIL_BYTES:]

    def fields(self) -> dict[str, Any]:
        """The counts as fields of a frame."""
        found: dict[str, Any] = {"bytes": self.bytes, "pieces": self.pieces}
        for name, value in _TOKENS.findall(self._tail):
            found[name.decode()] = int(value)
        return found
