"""Upstreams for the proxy: servers of a few lines on sockets, so that every byte on the wire is known."""

import asyncio
import json
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from culpa.recorder import Keep, Proxy, Ring


@dataclass
class Came:
    """One request as it came over the wire."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


Respond = Callable[[Came, Writer], Awaitable[None]]


@dataclass
class Upstream:
    """A server that hands each request to `respond`; it keeps what came and counts connections."""

    respond: Respond
    came: list[Came] = field(default_factory=list)
    connections: int = 0
    gone: int = 0
    port: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _writers: set[Writer] = field(default_factory=set)

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def die(self) -> None:
        """Drop every connection at once, as a process that is killed does, and listen no more."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (request := await read_message(reader)) is not None:
                self.came.append(request)
                watching = asyncio.ensure_future(reader.read(1))
                responding = asyncio.ensure_future(self.respond(request, writer))
                await asyncio.wait({watching, responding}, return_when=asyncio.FIRST_COMPLETED)
                if not responding.done():  # nothing comes on this connection but its end
                    responding.cancel()
                    self.gone += 1
                    self.closed.set()
                    return
                responding.result()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone += 1
            self.closed.set()
        finally:
            self._writers.discard(writer)
            writer.close()


async def read_message(reader: Reader) -> Came | None:
    """One HTTP message with its whole body, None at the end of the connection."""
    line = await reader.readline()
    if not line:
        return None
    headers = []
    while (raw := (await reader.readline()).rstrip(b"\r\n")) != b"":
        name, _, value = raw.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    found = Came(line.decode("latin-1").rstrip(), headers, b"")
    length = found.header("content-length")
    if length is not None:
        found.body = await reader.readexactly(int(length))
    elif found.header("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            found.body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return found


def response(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    """A whole response with its length."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def chunk(data: bytes) -> bytes:
    """A chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = json.dumps(
    {
        "choices": [{"text": "well", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
).encode()


async def answers(_: Came, writer: Writer) -> None:
    """A short JSON answer."""
    writer.write(response(ANSWER, headers="Content-Type: application/json\r\n"))
    await writer.drain()


@dataclass
class Behind:
    """A proxy in front of an upstream, within the test's loop."""

    upstream: Upstream
    proxy: Proxy
    ring: Ring
    port: int
    lost: list[str]

    async def connect(self) -> tuple[Reader, Writer]:
        """A new connection of a client."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(
        self, body: bytes, *, path: str = "/v1/completions", headers: str = "", method: str = "POST"
    ) -> Came:
        """One request on a connection of its own, and what came back."""
        reader, writer = await self.connect()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(body)}\r\n\r\n".encode("latin-1")
            + body
        )
        found = await read_message(reader)
        writer.close()
        assert found is not None
        return found


@asynccontextmanager
async def behind(
    folder: Path,
    respond: Respond = answers,
    *,
    keep: Keep | None = None,
    shape: Callable[[str, str, bytes], bytes] | None = None,
    most_body: int = 1 << 24,
) -> AsyncIterator[Behind]:
    """A proxy in front of an upstream that responds so; the ring lies in `folder` and is sealed at the end."""
    from aiohttp import web

    upstream = Upstream(respond)
    await upstream.start()
    ring = Ring(folder, keep or Keep(), {"mode": "shapes" if shape else "bodies"})
    loop = asyncio.get_running_loop()
    began = loop.time()
    lost: list[str] = []
    async with Proxy(
        f"http://127.0.0.1:{upstream.port}",
        ring,
        clock=lambda: loop.time() - began,
        on_lost=lost.append,
        shape=shape,
        most_body=most_body,
    ) as proxy:
        runner = web.ServerRunner(
            web.Server(proxy.handle, handler_cancellation=True, access_log=None, auto_decompress=False),
            shutdown_timeout=0.5,
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield Behind(upstream, proxy, ring, port, lost)
        finally:
            await runner.cleanup()
            ring.seal(loop.time() - began, "stopped")
            await upstream.die()
