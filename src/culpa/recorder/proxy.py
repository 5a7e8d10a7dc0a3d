"""The proxy: every request is written down, then forwarded; what comes back is passed on as it comes.

HTTP on both sides is aiohttp's. Bodies pass byte by byte, compressed ones too; a client that goes away takes its
request at the engine with it, and an engine that breaks off breaks off at the client.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from culpa.recorder.ring import Ring
from culpa.recorder.tally import Tally

if TYPE_CHECKING:
    import aiohttp
    from aiohttp import web

# What belongs to one connection and not to the message (RFC 9110, 7.6.1); lengths are set anew on each side.
_HOP_BY_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "expect",
    }
)  # fmt: skip
_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
# Of the query only what is known to hold no key is written down.
_PLAIN_QUERY: Final = frozenset({"api-version", "stream", "timeout", "model", "format"})
_PART_BYTES: Final = 16 << 10
# Idle connections to the engine are given up before it does: uvicorn closes them after five seconds.
_KEEP_ALIVE_SECONDS: Final = 2.0
_SAFE = re.compile(r"[^\x20-\x7e]")

Shape = Callable[[str, str, bytes], bytes]


@dataclass(slots=True)
class Counts:
    """What went through so far."""

    requests: int = 0
    answered: int = 0
    cancelled: int = 0
    lost: int = 0
    unsent: int = 0
    unwritten: int = 0
    under_way: int = 0
    problem: str = ""  # why something could not be written down


@dataclass(slots=True)
class _Exchange:
    """A request under way."""

    number: int | None
    tally: Tally
    buffer: bytearray = field(default_factory=bytearray)
    kept: int = 0
    cut: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


class Proxy:
    """Handles the requests of all connections. `upstream` is the root URL without a slash at its end.

    `shape` replaces bodies before they are written down (then no response is kept); None keeps bodies as they are.
    `keep_response` bounds what is kept of one response, `most_body` what is accepted as one request, in bytes.
    `on_lost` is called when the connection to the engine broke or was refused.
    """

    def __init__(
        self,
        upstream: str,
        ring: Ring,
        *,
        clock: Callable[[], float],
        on_lost: Callable[[str], None],
        shape: Shape | None = None,
        keep_response: int = 1 << 20,
        most_body: int = 256 << 20,
    ) -> None:
        self.counts = Counts()
        self.idle = asyncio.Event()  # set while nothing is under way
        self.idle.set()
        self._upstream = upstream
        self._ring = ring
        self._clock = clock
        self._on_lost = on_lost
        self._shape = shape
        self._keep_response = keep_response
        self._most_body = most_body
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Proxy":
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            read_bufsize=1 << 18,
            max_line_size=1 << 16,
            max_field_size=1 << 16,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def handle(self, request: "web.BaseRequest") -> "web.StreamResponse":
        """One request of a client, from its first byte to the last byte of its response."""
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return _refusal(501, "culpa record passes on HTTP requests, no WebSockets")
        if not request.raw_path.startswith("/"):
            return _refusal(400, "the target of a request to culpa record must be a path")
        body = await self._body(request)
        if body is None:
            return _refusal(413, f"a request of more than {self._most_body} bytes is not passed on")
        counts = self.counts
        told = request.method not in _READ_ONLY  # a look at the engine is no traffic
        counts.requests += told
        counts.under_way += 1
        self.idle.clear()
        exchange = _Exchange(self._write_down(request, body), Tally())
        outcome = "lost"
        try:
            response = await self._pass_on(request, body, exchange)
            outcome = exchange.fields.pop("outcome", "answered")
            return response
        except (asyncio.CancelledError, _ClientGone):
            outcome = "cancelled"
            raise
        except _Broken as broken:
            outcome = "unsent" if broken.unsent else "lost"
            exchange.fields["said"] = broken.said
            self._on_lost(broken.said)
            if broken.response is not None:
                return broken.response
            return _refusal(502, f"the engine behind culpa record broke off: {broken.said}")
        finally:
            counts.under_way -= 1
            setattr(counts, outcome, getattr(counts, outcome) + told)
            self._ended(exchange, outcome)
            if not counts.under_way:
                self.idle.set()

    # -- passing on ----------------------------------------------------------------------------------------

    async def _body(self, request: "web.BaseRequest") -> bytes | None:
        """The whole body, None if it is too large. It is written down before anything is forwarded."""
        if not request.body_exists:
            return b""
        if request.content_length is not None and request.content_length > self._most_body:
            return None
        if request.headers.get("Expect", "").lower() == "100-continue":
            assert request.transport is not None
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        parts, size = [], 0
        async for part in request.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > self._most_body:
                return None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _pass_on(
        self, request: "web.BaseRequest", body: bytes, exchange: _Exchange
    ) -> "web.StreamResponse":
        import aiohttp
        from yarl import URL

        assert self._session is not None
        response: web.StreamResponse | None = None
        try:
            async with self._session.request(
                request.method,
                URL(self._upstream + request.raw_path, encoded=True),
                headers=_forwarded(request.headers),
                data=body if body or request.body_exists else None,
                allow_redirects=False,
            ) as came:
                exchange.fields |= {
                    "status": came.status,
                    "type": _safe(came.headers.get("Content-Type", "")),
                    "encoding": _safe(came.headers.get("Content-Encoding", "")),
                }
                response = _begun(request, came)
                await _to_client(response.prepare(request))
                async for data in _stream(came):
                    self._keep(exchange, data)
                    await _to_client(response.write(data))
            await _to_client(response.write_eof())
        except _ClientGone:
            raise
        except aiohttp.ClientConnectorError as error:
            raise _Broken(_said(error), unsent=True) from None
        except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
            if response is not None and response.prepared and request.transport is not None:
                # What has begun can't become an error any more: the client must see that it broke off.
                request.transport.abort()
                raise _Broken(_said(error), response=response) from None
            raise _Broken(_said(error)) from None
        return response

    # -- writing down --------------------------------------------------------------------------------------

    def _write_down(self, request: "web.BaseRequest", body: bytes) -> int | None:
        """Write the request down; None for one that changes nothing at the engine, or where that failed."""
        if request.method in _READ_ONLY or self.counts.problem:
            self.counts.unwritten += bool(self.counts.problem)
            return None
        path = _plain_path(request.raw_path)
        kind = _safe(request.headers.get("Content-Type", ""))
        fields: dict[str, Any] = {"method": request.method, "path": path, "type": kind}
        if "Content-Encoding" in request.headers:
            fields["packed"] = _safe(request.headers["Content-Encoding"])
        if self._shape is not None:
            body = self._shape(path, kind, body)
        try:
            return self._ring.request(self._clock(), fields, body)
        except OSError as error:
            self._can_not_write(error)
            return None

    def _can_not_write(self, error: OSError) -> None:
        """Traffic goes on without the ring; it is told at once and again at the end."""
        self.counts.problem = f"the ring can't be written: {error.strerror or error}"
        self.counts.unwritten += 1

    def _keep(self, exchange: _Exchange, data: bytes) -> None:
        exchange.tally.take(data)
        if exchange.number is None or self._shape is not None:
            return
        room = self._keep_response - exchange.kept
        if room < len(data):
            exchange.cut = True
            data = data[: max(0, room)]
        exchange.buffer += data
        exchange.kept += len(data)
        if len(exchange.buffer) >= _PART_BYTES and not self.counts.problem:
            try:
                self._ring.part(exchange.number, bytes(exchange.buffer))
            except OSError as error:
                self._can_not_write(error)
            exchange.buffer.clear()

    def _ended(self, exchange: _Exchange, outcome: str) -> None:
        if exchange.number is None or self.counts.problem or self._ring.sealed:
            return
        fields: dict[str, Any] = {"outcome": outcome, **exchange.fields, **exchange.tally.fields()}
        if exchange.cut:
            fields["whole"] = False
        try:
            self._ring.end(exchange.number, self._clock(), fields, bytes(exchange.buffer))
        except OSError as error:
            self._can_not_write(error)


class _Broken(Exception):
    """The connection to the engine could not be made or broke off. `unsent`: the engine never had the request."""

    def __init__(
        self, said: str, *, unsent: bool = False, response: "web.StreamResponse | None" = None
    ) -> None:
        super().__init__(said)
        self.said = said
        self.unsent = unsent
        self.response = response


class _ClientGone(ConnectionResetError):
    """The client is not there any more to take what comes."""


async def _to_client(writing: Any) -> None:
    """A write to the client; its failure is the client's and says nothing of the engine."""
    try:
        await writing
    except ConnectionError as error:
        raise _ClientGone(*error.args) from None


async def _stream(came: "aiohttp.ClientResponse") -> AsyncIterator[bytes]:
    while True:
        data = await came.content.readany()
        if not data:
            return
        yield data


def _forwarded(headers: Mapping[str, str]) -> Any:
    """The headers that go on to the engine: all but those of the connection. Multiple ones stay multiple."""
    from multidict import CIMultiDict

    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = _HOP_BY_HOP | named | {"host", "content-length"}
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def _begun(request: "web.BaseRequest", came: "aiohttp.ClientResponse") -> "web.StreamResponse":
    from aiohttp import web

    headers = _forwarded(came.headers)
    response = web.StreamResponse(status=came.status, reason=came.reason, headers=headers)
    length = came.headers.get("Content-Length", "")
    if length.isdecimal():
        response.content_length = int(length)
    elif request.version >= (1, 1) and came.status not in (204, 304) and request.method != "HEAD":
        response.enable_chunked_encoding()
    return response


def _refusal(status: int, message: str) -> "web.StreamResponse":
    """An error of the proxy's own, in the form that clients of this API read."""
    from aiohttp import web

    return web.json_response(
        {"error": {"message": message, "type": "culpa_record", "code": status}}, status=status
    )


def _plain_path(raw: str) -> str:
    """The path with what of the query is known to be no key."""
    path, _, query = raw.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query) if name.lower() in _PLAIN_QUERY]
    return _safe(f"{path}?{urlencode(kept)}" if kept else path)


def _safe(text: str) -> str:
    return _SAFE.sub("?", text)[:4096]


def _said(error: BaseException) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientPayloadError):
        return "the response broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without a response"
    text = " ".join(_safe(str(error)).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
