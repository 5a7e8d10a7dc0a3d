"""`culpa record` as a person runs it: it is killed, its engine is killed, and nothing that was sent is lost."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from culpa.cli.app import _run
from culpa.host import free_port
from culpa.traffic import read_folder

SERVER = Path(__file__).parent / "slow_server.py"
PATIENCE = 60.0


def wait_for(condition: Any, what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False


class Pair:
    """A server and `culpa record` in front of it, each a process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder / "recording"
        self.log = folder / "came.jsonl"
        self.upstream, self.port = free_port(), free_port()
        self.server = subprocess.Popen([sys.executable, str(SERVER), str(self.upstream), str(self.log)])
        wait_for(lambda: answers(self.upstream), "the server")
        self.recorder = subprocess.Popen(
            [
                *(sys.executable, "-m", "culpa", "record", "--out", str(self.folder), *options),
                *("--upstream", f"http://127.0.0.1:{self.upstream}", "--listen", f"127.0.0.1:{self.port}"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: answers(self.port), "culpa record")

    def came(self) -> list[str]:
        """The prompts that reached the server, by its own account."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["prompt"] for line in lines]

    def recorded(self) -> list[str]:
        return [json.loads(one.content.read())["prompt"] for one in read_folder(self.folder).requests]

    def ended(self) -> tuple[int, str, str]:
        out, err = self.recorder.communicate(timeout=PATIENCE)
        return self.recorder.returncode, out, err

    def close(self) -> None:
        for process in (self.recorder, self.server):
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    both = Pair(tmp_path)
    yield both
    both.close()


async def _send(port: int, prompt: str) -> None:
    body = json.dumps({"prompt": prompt}).encode()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        await reader.read(1)
        writer.close()
    except OSError:
        pass  # what is killed here answers nobody


def under_load(port: int, prompts: list[str], kill: Any) -> None:
    """Send all at once; kill while they are under way."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for prompt in prompts:
                group.create_task(_send(port, prompt))
            group.create_task(asyncio.to_thread(kill))

    asyncio.run(main())


def test_an_engine_that_is_killed_leaves_every_request_that_it_had(pair: Pair) -> None:
    prompts = [f"quick {number}" for number in range(20)] + [f"slow {number}" for number in range(30)]

    def kill() -> None:
        wait_for(lambda: sum("slow" in one for one in pair.came()) >= 30, "requests under way")
        os.kill(pair.server.pid, signal.SIGKILL)

    under_load(pair.port, prompts, kill)
    code, out, _ = pair.ended()
    assert code == 1
    assert "the engine died" in out
    assert sorted(pair.recorded()) == sorted(prompts)
    assert set(pair.came()) <= set(pair.recorded())
    found = read_folder(pair.folder)
    assert found.died
    lost = [json.loads(one.content.read())["prompt"] for one in found.requests if one.open]
    assert sorted(lost) == sorted(one for one in prompts if "slow" in one)


def test_a_recorder_that_is_killed_has_written_down_all_that_it_forwarded(pair: Pair) -> None:
    prompts = [f"slow {number}" for number in range(60)]

    def kill() -> None:
        wait_for(lambda: len(pair.came()) >= 25, "requests under way")
        os.kill(pair.recorder.pid, signal.SIGKILL)

    under_load(pair.port, prompts, kill)
    pair.recorder.communicate()
    assert len(pair.came()) >= 25
    assert set(pair.came()) <= set(pair.recorded())
    assert read_folder(pair.folder).sealed == ""


def test_ctrl_c_seals_the_recording_and_says_what_is_in_it(pair: Pair) -> None:
    asyncio.run(_send(pair.port, "quick 1"))
    pair.recorder.send_signal(signal.SIGINT)
    code, out, err = pair.ended()
    assert code == 0
    assert "Recorded 1 requests" in out
    assert "ended by SIGINT" in out
    assert f"culpa replay {pair.folder}" in out
    assert "(up); keeps the last 10 min" in err
    assert read_folder(pair.folder).sealed == "stopped"


def test_an_idle_engine_that_dies_ends_the_recording_too(pair: Pair) -> None:
    asyncio.run(_send(pair.port, "quick 1"))
    pair.server.kill()
    assert pair.ended()[0] == 1


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert _run(["record", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--upstream", "localhost:1"], "begins with http://"),
        (["--upstream", "http://127.0.0.1:1?x=1"], "begins with http://"),
        (["--listen", "8001"], "host and port"),
        (["--listen", "127.0.0.1:99999"], "host and port"),
        (["--last", "soon"], "no duration"),
        (["--last", "1m", "--last-requests", "5"], "exclude each other"),
        (["--max-disk", "lots"], "write a size"),
        (["--max-disk", "1KB"], "at least 1MiB"),
        ([], "nothing answers there"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given = ["--out", str(tmp_path / "r"), *words]
    if "--upstream" not in words:
        given += ["--upstream", f"http://127.0.0.1:{free_port()}"]
    assert says in complaint(capsys, *given)
    assert not (tmp_path / "r").exists()


def test_a_port_that_is_taken_and_a_folder_that_is_are_told(
    pair: Pair, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    upstream = ["--upstream", f"http://127.0.0.1:{pair.upstream}"]
    said = complaint(
        capsys, *upstream, "--listen", f"127.0.0.1:{pair.port}", "--out", str(tmp_path / "other")
    )
    assert f"port {pair.port} is taken by pid {pair.recorder.pid}" in said
    listen = ["--listen", f"127.0.0.1:{free_port()}"]
    assert "holds a recording already" in complaint(capsys, *upstream, *listen, "--out", str(pair.folder))
