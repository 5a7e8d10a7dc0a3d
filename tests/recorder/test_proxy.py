"""What passes the proxy passes byte by byte, breaks off where it broke off, and is in the ring."""

import asyncio
import gzip
import json
from asyncio import StreamWriter as Writer
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.recorder.upstreams import (
    ANSWER,
    STREAM,
    Came,
    behind,
    chunk,
    read_message,
    response,
)

from culpa.recorder import Shaper
from culpa.traffic import Recording, read_folder

PATIENCE = 60.0


def run(work: Coroutine[Any, Any, None]) -> None:
    """A test in a loop of its own, with an end."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await work

    asyncio.run(bounded())


async def until(condition: Any) -> None:
    """Wait for what other tasks do."""
    while not condition():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.005)


def recorded(folder: Path) -> Recording:
    return read_folder(folder)


async def event(writer: Writer, text: str) -> None:
    writer.write(chunk(f'data: {{"choices":[{{"text":"{text}"}}]}}\n\n'.encode()))
    await writer.drain()


def test_a_request_and_its_answer_pass_and_are_written_down(tmp_path: Path) -> None:
    body = b'{"prompt": "caf\xc3\xa9",  "odd" :[1 ,2]}'

    async def main() -> None:
        async with behind(tmp_path) as there:
            came = await there.ask(body)
            assert came.line == "HTTP/1.1 200 OK"
            assert came.body == ANSWER
            assert there.upstream.came[0].body == body
            assert there.upstream.came[0].header("content-type") == "application/json"

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.content.read() == body
    assert one.outcome == "answered"
    assert one.status == 200
    assert one.response is not None
    assert one.response.read() == ANSWER
    assert (one.prompt_tokens, one.completion_tokens) == (3, 1)


def test_every_byte_value_passes_both_ways_unchanged(tmp_path: Path) -> None:
    every = bytes(range(256)) * 40

    async def echo(came: Came, writer: Writer) -> None:
        writer.write(response(came.body, headers="Content-Type: application/octet-stream\r\n"))

    async def main() -> None:
        async with behind(tmp_path, echo) as there:
            assert (await there.ask(every)).body == every

    run(main())
    assert recorded(tmp_path).requests[0].content.read() == every


def test_a_compressed_response_stays_compressed_and_can_be_read_from_the_ring(tmp_path: Path) -> None:
    packed = gzip.compress(ANSWER)

    async def pack(_: Came, writer: Writer) -> None:
        writer.write(response(packed, headers="Content-Encoding: gzip\r\nContent-Type: application/json\r\n"))

    async def main() -> None:
        async with behind(tmp_path, pack) as there:
            came = await there.ask(b"{}", headers="Accept-Encoding: gzip\r\n")
            assert came.body == packed
            assert came.header("content-encoding") == "gzip"
            assert there.upstream.came[0].header("accept-encoding") == "gzip"

    run(main())
    assert recorded(tmp_path).requests[0].response_text() == ANSWER.decode()


def test_events_come_through_one_by_one_while_the_stream_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def stream(_: Came, writer: Writer) -> None:
            writer.write(STREAM)
            await event(writer, "first")
            await go_on.wait()
            await event(writer, "second")
            writer.write(b"0\r\n\r\n")
            await writer.drain()

        async with behind(tmp_path, stream) as there:
            reader, writer = await there.connect()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"text/event-stream" in head
            assert b"first" in await reader.readuntil(b"}\n\n")
            go_on.set()
            rest = await reader.readuntil(b"0\r\n\r\n")
            assert b"second" in rest
            writer.close()

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.pieces == 2
    assert one.outcome == "answered"


def test_one_connection_serves_many_requests_on_both_sides(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            reader, writer = await there.connect()
            for number in range(20):
                body = json.dumps({"prompt": str(number)}).encode()
                writer.write(
                    b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
                came = await read_message(reader)
                assert came is not None
                assert came.body == ANSWER
            writer.close()
            assert there.upstream.connections == 1

    run(main())
    prompts = [json.loads(one.content.read())["prompt"] for one in recorded(tmp_path).requests]
    assert prompts == [str(number) for number in range(20)]


def test_a_client_that_hangs_up_takes_its_request_at_the_engine_with_it(tmp_path: Path) -> None:
    async def endless(_: Came, writer: Writer) -> None:
        writer.write(STREAM)
        while True:
            await event(writer, "more")
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with behind(tmp_path, endless) as there:
            reader, writer = await there.connect()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            for _ in range(3):
                await reader.readuntil(b"}\n\n")
            writer.close()
            await there.upstream.closed.wait()
            await until(lambda: there.proxy.counts.cancelled == 1)
            assert not there.lost

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.outcome == "cancelled"
    assert one.pieces >= 3
    assert one.ended is not None


def test_a_client_that_hangs_up_before_any_answer_is_a_cancellation_too(tmp_path: Path) -> None:
    async def silent(_: Came, __: Writer) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with behind(tmp_path, silent) as there:
            _, writer = await there.connect()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            await until(lambda: there.upstream.came)
            writer.close()
            await there.upstream.closed.wait()
            await until(lambda: there.proxy.counts.cancelled == 1)

    run(main())
    assert recorded(tmp_path).requests[0].outcome == "cancelled"


def test_a_stream_that_breaks_off_at_the_engine_breaks_off_at_the_client(tmp_path: Path) -> None:
    async def main() -> None:
        async def breaks(_: Came, writer: Writer) -> None:
            writer.write(STREAM)
            await event(writer, "some")
            await asyncio.sleep(0.05)
            writer.transport.abort()

        async with behind(tmp_path, breaks) as there:
            reader, writer = await there.connect()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            await reader.readuntil(b"}\n\n")
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readuntil(b"0\r\n\r\n")
            writer.close()
            assert there.lost == ["the response broke off"]

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.outcome == "lost"
    assert one.open
    assert "some" in (one.response_text() or "")


def test_an_engine_that_closes_without_a_word_gives_the_client_an_error_that_says_so(tmp_path: Path) -> None:
    async def hangs_up(_: Came, writer: Writer) -> None:
        writer.transport.abort()

    async def main() -> None:
        async with behind(tmp_path, hangs_up) as there:
            came = await there.ask(b"{}")
            assert came.line.startswith("HTTP/1.1 502")
            assert "broke off" in json.loads(came.body)["error"]["message"]

    run(main())
    assert recorded(tmp_path).requests[0].outcome == "lost"


def test_keys_are_passed_on_and_never_written_down(tmp_path: Path) -> None:
    secret = "sk-very-secret"
    headers = "".join(
        f"{name}: {secret}\r\n" for name in ("Authorization", "Api-Key", "X-Api-Key", "Cookie", "X-Custom")
    )

    async def main() -> None:
        async with behind(tmp_path) as there:
            await there.ask(b"{}", path=f"/v1/completions?api-key={secret}&api-version=7", headers=headers)
            came = there.upstream.came[0]
            assert came.header("authorization") == secret
            assert came.header("x-custom") == secret
            assert f"api-key={secret}" in came.line

    run(main())
    assert recorded(tmp_path).requests[0].path == "/v1/completions?api-version=7"
    assert not [path for path in tmp_path.iterdir() if secret.encode() in path.read_bytes()]


def test_with_shapes_nothing_of_what_people_wrote_reaches_the_disk(tmp_path: Path) -> None:
    secret = "Quuxington"

    async def told(_: Came, writer: Writer) -> None:
        body = ANSWER.replace(b"well", f"yes, {secret}".encode())
        writer.write(response(body, headers="Content-Type: application/json\r\n"))

    async def main() -> None:
        async with behind(tmp_path, told, shape=Shaper().shape) as there:
            asked = json.dumps({"prompt": f"I am {secret}", "temperature": 0, "max_tokens": 5}).encode()
            assert secret.encode() in (await there.ask(asked)).body
            assert there.upstream.came[0].body == asked

    run(main())
    assert not [path for path in tmp_path.iterdir() if secret.encode() in path.read_bytes()]
    found = recorded(tmp_path)
    assert found.shapes
    (one,) = found.requests
    body = one.body()
    assert body is not None
    assert (body["temperature"], body["max_tokens"], len(body["prompt"].split())) == (0, 5, 4)
    assert (one.prompt_tokens, one.completion_tokens, one.response) == (3, 1, None)


def test_headers_of_the_connection_stay_on_their_side(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            await there.ask(
                b"{}", headers="Connection: close, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: 2\r\nTE: 3\r\n"
            )
            names = {name.lower() for name, _ in there.upstream.came[0].headers}
            assert not names & {"x-hop", "proxy-authorization", "te"}

    run(main())


def test_a_look_at_the_engine_is_passed_on_and_not_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            assert (await there.ask(b"", path="/health", method="GET")).line == "HTTP/1.1 200 OK"
            assert there.ring.requests == 0

    run(main())


def test_a_chunked_request_body_arrives_whole(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            reader, writer = await there.connect()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(chunk(b'{"prompt":') + chunk(b'"x"}') + b"0\r\n\r\n")
            assert await read_message(reader) is not None
            writer.close()
            assert there.upstream.came[0].body == b'{"prompt":"x"}'

    run(main())


def test_a_client_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            reader, writer = await there.connect()
            writer.write(
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            )
            assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"{}")
            came = await read_message(reader)
            assert came is not None
            assert came.body == ANSWER
            writer.close()

    run(main())
