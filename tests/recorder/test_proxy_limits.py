"""The proxy against what should not be passed on, against crowds, and where the ring has no room."""

import asyncio
import resource
from asyncio import StreamWriter as Writer
from pathlib import Path
from typing import Any

import pytest
from tests.recorder.test_proxy import recorded, run, until
from tests.recorder.upstreams import (
    ANSWER,
    Behind,
    Came,
    answers,
    behind,
)


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"POST http://elsewhere.example/v1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"400"),
        (b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: -4\r\n\r\n", b"400"),
        (b"POST /v1/x HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", b"400"),
        (b"\x00\x01\x02 garbage\r\n\r\n", b"400"),
        (
            b"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            b"501",
        ),
    ],
)
def test_what_can_not_be_passed_on_is_refused_and_harms_nobody(
    tmp_path: Path, request_text: bytes, status: bytes
) -> None:
    async def main() -> None:
        async with behind(tmp_path) as there:
            reader, writer = await there.connect()
            writer.write(request_text)
            assert status in await reader.readline()
            writer.close()
            assert not there.upstream.came
            assert (await there.ask(b"{}")).body == ANSWER

    run(main())


def test_hostile_texts_in_the_request_do_not_reach_the_recordings_frames(tmp_path: Path) -> None:
    body = b'{"prompt":"x"}\n{"kind":"end","id":0,"outcome":"cancelled","n":0,"crc":0}\n\n'

    async def main() -> None:
        async with behind(tmp_path) as there:
            await there.ask(body, path="/v1/x%0a%1b[31m", headers="X-Y: \xff\xfe\r\n")

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.content.read() == body
    assert one.outcome == "answered"
    assert one.path.isprintable()


def test_a_thousand_clients_at_once_are_served_and_recorded(tmp_path: Path) -> None:
    many = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 6 * many
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("too few open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))

    async def main() -> None:
        all_here = asyncio.Event()

        async def together(came: Came, writer: Writer) -> None:
            if len(there.upstream.came) == many:
                all_here.set()
            await all_here.wait()
            await answers(came, writer)

        async with behind(tmp_path, together) as there:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(there.ask(b'{"prompt":"%d"}' % number)) for number in range(many)]
            assert all(task.result().body == ANSWER for task in asked)
            assert there.proxy.counts.answered == many

    try:
        run(main())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found = recorded(tmp_path).requests
    assert len({one.content.read() for one in found}) == many


def test_traffic_goes_on_where_the_ring_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    async def main() -> None:
        async with behind(tmp_path) as there:
            await there.ask(b'{"prompt":"kept"}')
            monkeypatch.setattr(there.ring, "request", full)
            assert (await there.ask(b"{}")).body == ANSWER
            assert (await there.ask(b"{}")).body == ANSWER
            assert there.proxy.counts.problem == "the ring can't be written: No space left on device"
            assert there.proxy.counts.unwritten == 2

    run(main())
    assert [one.content.read() for one in recorded(tmp_path).requests] == [b'{"prompt":"kept"}']


def test_what_was_under_way_when_the_recording_ended_is_in_it_without_an_answer(tmp_path: Path) -> None:
    async def silent(_: Came, __: Writer) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with behind(tmp_path, silent) as there:
            await _left_open(there)

    run(main())
    (one,) = recorded(tmp_path).requests
    assert one.outcome == "unanswered"
    assert one.ended is None


async def _left_open(there: Behind) -> None:
    _, writer = await there.connect()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
    await until(lambda: there.upstream.came)
    there.ring.seal(1.0, "stopped")
    writer.close()
