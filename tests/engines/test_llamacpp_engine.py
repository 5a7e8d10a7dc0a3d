"""The real llama.cpp server behind culpa-llamacpp: what it answers, what it logs, how it dies."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.engines.adapters import NO_GPU

from culpa.engines import find_adapter, parse_command
from culpa.model import Configuration, Launch, all_safe

pytestmark = pytest.mark.engine
pytest.importorskip("xllamacpp", reason="needs pip install culpa[llamacpp]")

COMMAND = [sys.executable, "-m", "culpa_llamacpp"]
START_SECONDS = 60


@dataclass
class Server:
    """A started server and its log."""

    process: "subprocess.Popen[bytes]"
    base: str
    log: Path

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.base + path, timeout=30) as answer:
            body = answer.read().decode()
        return json.loads(body) if body.startswith(("{", "[")) else body

    def chat(self, text: str) -> str:
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 12}
        request = urllib.request.Request(f"{self.base}/v1/chat/completions", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def started(launch: Launch, base: str, folder: Path) -> Iterator[Server]:
    log = folder / "engine.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(launch.argv, stdout=stream, stderr=subprocess.STDOUT)
    server = Server(process, base, log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if server.get("/health")["status"] == "ok":
                    break
            except OSError:
                time.sleep(0.05)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def prepared(line: str, folder: Path, levels: dict[str, str] | None = None) -> tuple[Launch, str]:
    launch = parse_command([*COMMAND, *line.split()])
    adapter = find_adapter(launch, None)
    ready = adapter.prepare(adapter.apply(launch, Configuration.of(levels or {})), free_port(), folder)
    return ready.launch, ready.base_url


def test_a_healthy_server_answers_and_says_what_it_is(tmp_path: Path) -> None:
    launch, base = prepared("-c 1000 -np 2 -ctk q8_0", tmp_path)
    adapter = find_adapter(launch, None)
    with started(launch, base, tmp_path) as server:
        assert "4" in server.chat("What is 2+2? Answer with one number.")
        api = {path: server.get(path) for path in adapter.api_paths()}
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        said = adapter.effective(server.lines(), api)
    asked = {factor.name: factor.suspect for factor in adapter.read(launch, NO_GPU).factors}
    assert adapter.mismatches(Configuration.of({"batch_size": "2048", **asked}), said) == ()
    assert said["cache_type_k"] == "q8_0"
    assert said["flash_attn"] == "on"
    assert (said["parallel"], said["kv_unified"], said["ctx_size"]) == ("2", "off", "1024")
    limits = adapter.limits(api, said)
    assert (limits.context_tokens, limits.parallel) == (512, 2)
    assert "llamacpp:prompt_tokens_total" in api["/metrics"]


def test_every_safe_level_together_starts_and_is_what_it_claims(tmp_path: Path) -> None:
    given = parse_command([*COMMAND, "-c", "1024", "-ctv", "q4_0", "-fa", "off"])
    adapter = find_adapter(given, None)
    safe = all_safe(adapter.read(given, NO_GPU).factors)
    ready = adapter.prepare(adapter.apply(given, safe), free_port(), tmp_path)
    with started(ready.launch, ready.base_url, tmp_path) as server:
        api = {path: server.get(path) for path in adapter.api_paths()}
        assert "4" in server.chat("What is 2+2? Answer with one number.")
        assert adapter.mismatches(safe, adapter.effective(server.lines(), api)) == ()


QUANTISED = "E llama_init_from_model: quantized V cache requires flash_attn to be enabled"


def test_a_quantised_v_cache_without_flash_attention_dies_at_start(tmp_path: Path) -> None:
    launch, base = prepared("-c 1024 -ctv q4_0 -fa off", tmp_path)
    with started(launch, base, tmp_path) as server:
        assert server.process.wait(START_SECONDS) == 1
        errors = [line for line in server.lines() if " E " in line]
    assert QUANTISED in errors[0]
    assert "exiting due to model loading error" in errors[-1]


@pytest.mark.parametrize("levels", [{"cache_type_v": "f16"}, {"flash_attn": "auto"}])
def test_either_one_made_safe_starts(tmp_path: Path, levels: dict[str, str]) -> None:
    launch, base = prepared("-c 1024 -ctv q4_0 -fa off", tmp_path, levels)
    with started(launch, base, tmp_path) as server:
        assert server.get("/health") == {"status": "ok"}


def test_a_batch_smaller_than_the_slots_aborts_with_the_signal(tmp_path: Path) -> None:
    launch, base = prepared("-c 1024 -b 2 -np 4", tmp_path)
    with started(launch, base, tmp_path) as server:
        assert server.process.wait(START_SECONDS) == -signal.SIGABRT
        assert any(
            "GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed" in line for line in server.lines()
        )


def test_a_port_that_is_taken_ends_with_exit_code_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        line = [*COMMAND, "-c", "512", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(line, capture_output=True, timeout=START_SECONDS, check=False)
    assert done.returncode == 1
    assert b"couldn't bind HTTP server socket" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_signal_ends_a_start_that_hangs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [*COMMAND, "-c", "800000000", "--port", str(free_port())], stdout=stream, stderr=subprocess.STDOUT
        )
    deadline = time.monotonic() + START_SECONDS
    while b"loading model" not in log.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
