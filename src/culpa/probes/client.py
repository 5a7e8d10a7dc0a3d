"""Sends requests to an OpenAI-compatible endpoint. What goes wrong becomes part of the answer."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from culpa.probes.answer import Answer
from culpa.probes.request import Request
from culpa.probes.responses import Collector, event_data, read_body, read_error

if TYPE_CHECKING:
    import httpx2

_END = "[DONE]"
# Lists of models and pages of numbers are made at once, also by an engine at work, and are small.
_GET_SECONDS = 30.0
_MOST_PAGE_BYTES = 16 << 20
_JSON = {"content-type": "application/json"}


class Endpoint:
    """One engine's HTTP endpoint. No time limit on answers: the caller watches progress and cancels.

    `base_url` is the server's root, with or without `/v1`. `model` goes into bodies that name none.
    `transport` replaces the network in tests. `supports_logprobs` is what was learned: None before the
    first try. Use as an asynchronous context manager, or call `close`.
    """

    def __init__(
        self,
        base_url: str,
        model: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        transport: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        import httpx2

        self.model = model
        self.supports_logprobs: bool | None = None
        self._http = httpx2.AsyncClient(
            base_url=base_url.rstrip("/").removesuffix("/v1"),
            headers=dict(headers or {}),
            timeout=httpx2.Timeout(None, connect=connect_timeout),
            # One connection a request: a kept one that the server closes meanwhile would look like a crash.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            transport=transport,
            trust_env=False,  # a proxy has no business between culpa and an engine on this machine
        )

    async def __aenter__(self) -> "Endpoint":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop all connections."""
        await self._http.aclose()

    async def send(self, request: Request, on_tokens: Callable[[int], None] = lambda _: None) -> Answer:
        """Send one request and read its answer; `on_tokens` hears of each streamed piece as it comes.

        Never raises for anything that the engine or the network does. Cancelling drops the connection,
        which makes engines give up the request.
        """
        if not request.measured or self.supports_logprobs is False:
            return await self._send(request.endpoint, request.body, on_tokens)
        measured = {**request.body, **logprob_fields(request)}
        answer = await self._send(request.endpoint, measured, on_tokens)
        if answer.refused and self.supports_logprobs is None:
            plain = await self._send(request.endpoint, request.body, on_tokens)
            if not plain.failed:
                self.supports_logprobs = False
            return plain
        if not answer.failed:
            self.supports_logprobs = True
        return answer

    async def get(self, path: str) -> tuple[int, str] | None:
        """Status and text of a GET, or None where no answer came in time, or one that has no end."""
        import httpx2

        body = b""
        try:
            async with asyncio.timeout(_GET_SECONDS), self._http.stream("GET", path) as response:
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _MOST_PAGE_BYTES:
                        return None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError):
            return None
        return response.status_code, body.decode("utf-8", "replace")

    async def page(self, path: str) -> str:
        """The text of a page that was found, empty where it was not."""
        came = await self.get(path)
        return came[1] if came is not None and came[0] == 200 else ""

    async def count_tokens(self, text: str) -> int | None:
        """How many tokens the engine's own tokenizer makes of a text, where it has a `/tokenize` endpoint."""
        import httpx2

        # vLLM reads `prompt`, llama.cpp `content`; each ignores the other's field.
        body = {"model": self.model, "prompt": text, "content": text, "add_special_tokens": False}
        try:
            response = await self._http.post("/tokenize", json=body)
            found = response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, httpx2.StreamError, ValueError):
            return None
        tokens = found.get("tokens") if isinstance(found, dict) else None
        return len(tokens) if isinstance(tokens, list) else None

    async def _send(self, path: str, body: Mapping[str, Any], on_tokens: Callable[[int], None]) -> Answer:
        full = {"model": self.model, **body} if self.model else dict(body)
        # ASCII with escapes, so that even a lone surrogate of the user's file goes out as it came.
        return await self.post(path, json.dumps(full).encode("ascii"), on_tokens)

    async def post(
        self,
        path: str,
        content: bytes,
        on_tokens: Callable[[int], None] = lambda _: None,
        *,
        headers: Mapping[str, str] = _JSON,
        method: str = "POST",
    ) -> Answer:
        """Send bytes as they are and read the answer; else as `send`."""
        import httpx2

        started = time.monotonic()
        collector = Collector()
        status: int | None = None
        try:
            async with self._http.stream(method, path, content=content, headers=headers) as response:
                status = response.status_code
                if status < 400 and "event-stream" in response.headers.get("content-type", ""):
                    await _read_events(response, collector, on_tokens)
                    return collector.answer(status, time.monotonic() - started)
                text = (await response.aread()).decode("utf-8", "replace")
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            collector.fail("not_connected", _said(error))
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            collector.fail("connection_lost", _said(error))
        else:
            seconds = time.monotonic() - started
            answer = (read_error if status >= 400 else read_body)(status, text, seconds)
            on_tokens(answer.completion_tokens or 0)
            return answer
        return collector.answer(status, time.monotonic() - started)


def logprob_fields(request: Request, candidates: int = 5) -> dict[str, Any]:
    """The fields that ask for log-probabilities of the likeliest candidates, in the endpoint's own form."""
    if "messages" in request.body:
        return {"logprobs": True, "top_logprobs": candidates}
    return {"logprobs": candidates} if "prompt" in request.body else {}


async def _read_events(
    response: "httpx2.Response", collector: Collector, on_tokens: Callable[[int], None]
) -> None:
    """Read an event stream to its end, or to the first event that is an error or can't be read."""
    ended = False
    async for data in _event_data(response):
        if data == _END:
            ended = True
            break
        before = collector.pieces
        collector.feed(data, "an event of the stream")
        if collector.broken:
            return
        if collector.pieces > before:
            on_tokens(collector.pieces - before)
    if not ended and not collector.finished:
        collector.fail(
            "connection_lost",
            f"the stream ended after {collector.pieces} pieces, without a finish_reason or an end mark",
        )


async def _event_data(response: "httpx2.Response") -> AsyncIterator[str]:
    """The data of each event. Lines end at a newline byte only: a text may hold other line separators."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            data = event_data(line.decode("utf-8", "replace").rstrip("\r"))
            if data is not None:
                yield data


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
