"""An engine's own count of the tokens that it has worked on: the surest sign of progress in a silent request."""

import asyncio
import re
import time
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

POLL_SECONDS = 5.0
_ANSWER_SECONDS = 2.0


class TokenCounters:
    """Follows counters of `/metrics` while a request runs.

    `moved_at` is the monotonic time at which the sum of the counters last changed, in seconds; None as long as
    the engine has shown none of them, and then nothing can be said.
    """

    def __init__(self, base_url: str, names: Sequence[str], api_key: str | None = None) -> None:
        self._url = f"{base_url.rstrip('/')}/metrics"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._line = re.compile(
            rf"^(?:{'|'.join(map(re.escape, names))})(?:\{{[^\n]*\}})? (\S+)", re.MULTILINE
        )
        self._names = tuple(names)
        self._sum: float | None = None
        self.moved_at: float | None = None

    async def follow(self) -> None:
        """Poll until cancelled. An engine that does not answer has simply not moved."""
        import httpx2

        if not self._names:
            return
        async with httpx2.AsyncClient(
            timeout=_ANSWER_SECONDS, trust_env=False, headers=self._headers
        ) as client:
            while True:
                self._take(await self._read(client))
                await asyncio.sleep(POLL_SECONDS)

    async def _read(self, client: "httpx2.AsyncClient") -> str:
        import httpx2

        try:
            response = await client.get(self._url)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return ""
        return response.text if response.status_code == 200 else ""

    def _take(self, page: str) -> None:
        values = [value for text in self._line.findall(page) if (value := _number(text)) is not None]
        if values and sum(values) != self._sum:
            self._sum = sum(values)
            self.moved_at = time.monotonic()


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return (
        number if isfinite(number) else None
    )  # NaN differs from itself: it would look like progress for ever
