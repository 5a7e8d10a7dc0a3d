"""Whether the engine behind the proxy still listens."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, Literal
from urllib.parse import urlsplit

State = Literal["up", "down", "no answer"]

_POLL_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 5.0
# A refused connection may be a listen queue that is full for a moment.
_TRIES: Final = 3
_BETWEEN_TRIES: Final = 0.2


class Watch:
    """Looks once a second, and at once when told of a loss, whether a connection is taken.

    Only a refusal is the engine's end: one that works hard may let a connection wait. `on_down` is called once.
    """

    def __init__(self, upstream: str, on_down: Callable[[str], None]) -> None:
        parts = urlsplit(upstream)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._on_down = on_down
        self._alarm = asyncio.Event()
        self._why = ""
        self.state: State = "up"

    def lost(self, said: str) -> None:
        """A connection broke: look at once."""
        self._why = self._why or said
        self._alarm.set()

    async def run(self) -> None:
        """Watch until the engine is down, or until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._alarm.wait()
            self._alarm.clear()
            self.state, said = await self.look()
            if self.state == "down":
                self._on_down(f"{self._why}; then {said}" if self._why else said)
                return
            if self.state == "up":
                self._why = ""

    async def look(self) -> tuple[State, str]:
        """Whether a connection is taken, and what was said if not."""
        said = ""
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_BETWEEN_TRIES)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    _, writer = await asyncio.open_connection(self._host, self._port)
            except TimeoutError:
                return "no answer", f"no connection within {_CONNECT_SECONDS:.0f} s"
            except OSError as error:
                said = error.strerror or str(error)
                continue
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return "up", ""
        return "down", said
