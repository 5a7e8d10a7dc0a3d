"""Traffic of many clients through `culpa record` to the reference engine, until one request breaks what another left.

A small random model behind the whole engine: mixed traffic with one poisonous pair, recorded, replayed and reduced.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lab.engine.engines import checkpoint
from tests.traffic_client import Ask, mixed, send_all

import culpa_lab
from culpa.host import free_port
from culpa.traffic import read_folder

pytestmark = pytest.mark.engine
BLOCK = 32
FIRST = [(7 * place) % 200 + 20 for place in range(2 * BLOCK)]


def launch(model: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "culpa_lab", "serve", str(model), "--fault", "continued-on-block"),
        *("--max-model-len", "512", "--block-size", str(BLOCK), "--max-num-batched-tokens", "256"),
        *("--num-gpu-blocks-override", "8000"),
    ]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(checkpoint(), tmp_path / "model"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(culpa_lab.__file__).parent / "checkpoint" / name, folder)
    return folder


@contextmanager
def recorded_engine(
    model: Path, folder: Path
) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[bytes], int]]:
    """`culpa record` in front of the engine: both processes and the port for clients."""
    upstream, port = free_port(), free_port()
    with (folder.parent / "engine.log").open("wb") as log:
        engine = subprocess.Popen([*launch(model), "--port", str(upstream)], stdout=log, stderr=log)
    recorder = subprocess.Popen(
        [
            *(sys.executable, "-m", "culpa", "record", "--quiet", "--out", str(folder), "--wait", "60s"),
            *("--upstream", f"http://127.0.0.1:{upstream}", "--listen", f"127.0.0.1:{port}"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield recorder, engine, port
    finally:
        for process in (recorder, engine):
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=60)


def test_a_poisonous_pair_in_mixed_traffic_is_found_and_shrunk_to_the_pair(
    model: Path, tmp_path: Path
) -> None:
    asks = mixed(240)
    asks[70] = Ask("/v1/completions", {"prompt": FIRST, "max_tokens": 2, "temperature": 0})
    asks[225] = Ask("/v1/completions", {"prompt": [*FIRST, 5, 6, 7], "max_tokens": 2, "temperature": 0})
    folder = tmp_path / "recording"
    with recorded_engine(model, folder) as (recorder, _, port):
        seen = asyncio.run(send_all(f"http://127.0.0.1:{port}", asks, 8))
        printed, _ = recorder.communicate(timeout=90)
        assert recorder.returncode == 1, printed
    assert seen.lost
    found = read_folder(folder)
    assert found.died
    bodies = [one.body() for one in found.requests]
    assert all(body in bodies for body in seen.bodies)

    out = tmp_path / "reduced"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "culpa", "replay", str(folder), "--reduce", "--speed", "max", "--json"),
            *("--out", str(out), "--", *launch(model)),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    left = [one.body() for one in read_folder(out / "reduced").requests]
    assert [body["prompt"] for body in left if body] == [FIRST, [*FIRST, 5, 6, 7]]
    assert result["minimal"]
    assert result["rate_held"]
    assert result["signature"]["symptom"] == "cuda_illegal_access"
    assert result["trials"] <= 30


def test_an_engine_that_is_killed_in_the_middle_leaves_every_request_in_the_ring(
    model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "recording"
    with recorded_engine(model, folder) as (recorder, engine, port):

        async def main() -> list[dict[str, object]]:
            sending = asyncio.ensure_future(send_all(f"http://127.0.0.1:{port}", mixed(400, seed=2), 16))
            while sum(path.stat().st_size for path in folder.glob("*.seg")) < 60_000:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            os.kill(engine.pid, signal.SIGKILL)
            return (await sending).bodies

        sent = asyncio.run(main())
        printed, _ = recorder.communicate(timeout=90)
        assert recorder.returncode == 1, printed
    kept = [one.body() for one in read_folder(folder).requests]
    missing = [body for body in sent if body not in kept]
    # The last ones found nobody listening any more: those never reached the engine.
    assert all(body in sent[-16:] for body in missing)
    assert any(one.open for one in read_folder(folder).requests)
