"""The guard in a real vLLM: silent on a healthy engine, and each planted fault caught and named.

One launch each, eager with one stage; the faults of the second launch are planted in different steps.
"""

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from culpa.host import free_port
from culpa_guard.install import write_plugin

START_SECONDS = 300
PLANTS = (
    "swap_bindings",
    "state_index:step=12:steps=2",
    "foreign_block:step=20:steps=2",
    "shared_metadata:step=28:steps=2",
    "stale_pointer:step=36",
    "scribble:step=44",
)

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2 * START_SECONDS)]


class Engine:
    """A running server, its port and the folder that the guard writes to."""

    def __init__(self, port: int, seen: Path) -> None:
        self._port = port
        self._seen = seen

    def ask(self, prompt: str, tokens: int) -> str:
        """The text of a completion."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=200)
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text
        return str(json.loads(text)["choices"][0]["text"])

    def settle(self) -> None:
        """Ask until the guard has written a summary of all that went before: it does so at the start of a step."""
        written = len(self.events("summary"))
        while len(self.events("summary")) == written:
            self.ask("more", 1)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All lines of one kind, of all processes."""
        return [
            event
            for path in sorted(self._seen.glob("guard-*.jsonl"))
            for event in map(json.loads, path.read_text(encoding="ascii").splitlines())
            if event["event"] == kind
        ]


def healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def serving(vllm: str, checkpoint: Path, folder: Path, plant: str = "") -> Iterator[Engine]:
    port, log = free_port(), folder / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CULPA_")}
    environment |= {
        "PYTHONPATH": str(write_plugin(folder / "plugin")),
        "CULPA_GUARD": "log",
        "CULPA_GUARD_OUT": str(folder / "seen"),
        "CULPA_GUARD_PAGES": "16",
        "CULPA_GUARD_PLANT": plant,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [vllm, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint)]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    command += ["--max-model-len", "2048", "--num-gpu-blocks-override", "64"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
    try:
        for _ in range(START_SECONDS):
            assert process.poll() is None, log.read_text(errors="replace")[-4000:]
            if healthy(port):
                break
            time.sleep(1)
        yield Engine(port, folder / "seen")
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def test_a_healthy_engine_raises_nothing(vllm: str, checkpoint: Path, tmp_path: Path) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 20
    with serving(vllm, checkpoint, tmp_path) as engine:
        cold = engine.ask(text, 16)
        warm = engine.ask(text, 16)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: engine.ask(f"{n} {text[: 200 + 150 * n]}", 24), range(4)))
        engine.settle()
    assert warm == cold
    assert engine.events("violation") == []
    assert engine.events("guard_error") == []
    (start,) = [event for event in engine.events("start") if event["checks"]]
    assert (start["role"], start["stage"], start["rank"]) == ("worker", 0, 0)
    assert [left["check"] for left in start["left_out"]] == ["handover"]
    summary = [event for event in engine.events("summary") if event["steps"]][-1]
    assert summary["requests"] >= 6
    checked = summary["checked"]
    assert set(start["checks"]) <= set(checked)
    assert all(checked[check] > 0 for check in start["checks"])


def test_planted_faults_are_caught_and_named(vllm: str, checkpoint: Path, tmp_path: Path) -> None:
    with serving(vllm, checkpoint, tmp_path, ",".join(PLANTS)) as engine:
        for number in range(3):
            engine.ask(f"{number} what is planted is found", 40)
    planted = {event["fault"]: event for event in engine.events("planted")}
    assert set(planted) == {plant.partition(":")[0] for plant in PLANTS}
    assert engine.events("guard_error") == []
    violations = engine.events("violation")
    for fault, event in planted.items():
        named = [
            one
            for one in violations
            if one["kind"] in event["expect"]
            and one["stage"] == 0
            and all(
                one[field] == event[field]
                for field in ("layer", "group", "request", "block")
                if field in event
            )
        ]
        assert named, (fault, event, violations)
        if "group" in event:  # those that are seen in the step in which they are planted
            assert named[0]["step"] == event["step"], fault
