"""What the guard costs in vLLM: decode and prefill, with and without it, the same requests in turn, in one run.

    python -m benchmarks.guard [--rounds 12] [--pages 8] [--vllm-python PATH] [--model FOLDER] [--json]

Three servers of the same model live side by side: without the guard, with it, and with checks of content of so many
cache blocks a step. Each round asks every one of them the same requests, in an order that changes from round to round;
the others are idle meanwhile. Figures are ratios of speeds, paired by request: the machine is never quiet. All answers
have to be the same, token for token. From the guard's own summaries: its seconds per step, and per block whose content
is read.

Needs vLLM's CPU build (`make vllm-env`); the model is a small random one, made on the spot.
"""

import argparse
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culpa.host import free_port
from culpa_guard.install import write_plugin

ROOT = Path(__file__).parent.parent
WITHOUT, WITH, CONTENT = "without", "with", "content"
START_SECONDS = 300
PREFILL_TOKENS = 2000
DECODE_TOKENS = 96


@dataclass(frozen=True)
class Answer:
    """Text, seconds to the first piece, seconds from the first to the last one."""

    text: str
    first: float
    rest: float


class Server:
    """One vLLM on the CPU."""

    def __init__(self, arm: str, python: str, model: Path, folder: Path, pages: int) -> None:
        self.arm = arm
        self.seen = folder / f"seen-{arm}"
        self._log = folder / f"{arm}.log"
        self._port = free_port()
        environment = {
            **os.environ,
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        environment.pop("PYTHONPATH", None)
        if arm != WITHOUT:
            environment["PYTHONPATH"] = str(write_plugin(folder / "plugin"))
            environment["CULPA_GUARD"] = "log"
            environment["CULPA_GUARD_OUT"] = str(self.seen)
            environment["CULPA_GUARD_PAGES"] = str(pages if arm == CONTENT else 0)
        command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--enforce-eager", "--max-model-len", "4096", "--num-gpu-blocks-override", "512"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def ready(self) -> None:
        """Wait until the health check answers."""
        for _ in range(START_SECONDS * 2):
            assert self._process.poll() is None, self._log.read_text(errors="replace")[-4000:]
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.5)
            finally:
                connection.close()
        raise TimeoutError(f"{self.arm}: not ready after {START_SECONDS} s")

    def ask(self, prompt: str, tokens: int) -> Answer:
        """A completion, as it comes."""
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=300)
        began = time.perf_counter()
        connection.request(
            "POST",
            "/v1/completions",
            json.dumps({**body, "ignore_eos": True}),
            {"Content-Type": "application/json"},
        )
        text, moments = "", []
        for line in connection.getresponse():
            if line.startswith(b"data: {"):
                text += json.loads(line[6:])["choices"][0]["text"]
                moments.append(time.perf_counter())
        connection.close()
        return Answer(text, moments[0] - began, moments[-1] - moments[0])

    def stop(self) -> None:
        """End the server and what it started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def summary(self) -> dict[str, Any]:
        """The worker's last summary."""
        last: dict[str, Any] = {}
        for path in self.seen.glob("guard-*.jsonl"):
            for line in path.read_text(encoding="ascii").splitlines():
                event = json.loads(line)
                if event["event"] == "summary" and event["steps"]:
                    last = event
        return last


def prompt_of(number: int, length: int) -> str:
    """Text that no other request shares a beginning with. The model's tokens are bytes."""
    letters = random.Random(number)
    return f"{number} " + "".join(letters.choice("abcdefgh ") for _ in range(length - len(str(number)) - 1))


def measure(rounds: int, pages: int, python: str, model: Path | None) -> dict[str, Any]:
    """All figures, by name."""
    with tempfile.TemporaryDirectory(prefix="culpa-guard-") as name:
        folder = Path(name)
        if model is None:
            model = folder / "model"
            script = ROOT / "tests" / "real" / "make_checkpoint.py"
            subprocess.run([python, str(script), str(model)], check=True, capture_output=True)
        servers: list[Server] = []
        try:
            for arm in (WITHOUT, WITH, CONTENT):
                servers.append(Server(arm, python, model, folder, pages))
                servers[-1].ready()
            decode, prefill, same = ask_all(servers, rounds)
        finally:
            for server in servers:
                server.stop()
        figures: dict[str, Any] = {"rounds": rounds, "answers_the_same": same, "pages": pages}
        for arm in (WITH, CONTENT):
            figures[f"decode_{arm}_to_without"] = ratio(decode[WITHOUT], decode[arm])
            figures[f"prefill_{arm}_to_without"] = ratio(prefill[WITHOUT], prefill[arm])
        figures["decode_tokens_per_second_without"] = (DECODE_TOKENS - 1) / statistics.median(decode[WITHOUT])
        figures["prefill_tokens_per_second_without"] = PREFILL_TOKENS / statistics.median(prefill[WITHOUT])
        figures.update(own(servers))
        return figures


def ask_all(
    servers: list[Server], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]], bool]:
    """Seconds of decoding and of prefill by arm, and whether all answers were the same."""
    decode: dict[str, list[float]] = {server.arm: [] for server in servers}
    prefill: dict[str, list[float]] = {server.arm: [] for server in servers}
    same = True
    for turn in range(-1, rounds):
        order = servers[turn % 3 :] + servers[: turn % 3]
        short = {server.arm: server.ask(prompt_of(2 * turn + 3, 20), DECODE_TOKENS) for server in order}
        long = {server.arm: server.ask(prompt_of(2 * turn + 4, PREFILL_TOKENS), 1) for server in order}
        same = same and all(len({one.text for one in arms.values()}) == 1 for arms in (short, long))
        if turn < 0:
            continue  # the first requests of an engine are slower than all others
        for arm in decode:
            decode[arm].append(short[arm].rest)
            prefill[arm].append(long[arm].first)
    return decode, prefill, same


def ratio(without: list[float], guarded: list[float]) -> dict[str, float]:
    """Speed with to speed without: the median of the pairs, and between which values half of them lie."""
    pairs = [a / b for a, b in zip(without, guarded, strict=True)]
    low, middle, high = statistics.quantiles(pairs, n=4)
    return {"median": middle, "low": low, "high": high}


def own(servers: list[Server]) -> dict[str, float]:
    """The guard's own account of its time."""
    figures: dict[str, float] = {}
    for server in servers:
        found = server.summary()
        if not found:
            continue
        figures[f"own_milliseconds_per_step_{server.arm}"] = 1000 * found["own_seconds"] / found["steps"]
        figures[f"violations_{server.arm}"] = found["violations"]
        if found["checked"].get("pages"):
            figures["microseconds_per_block_read"] = (
                1e6 * found["seconds"]["pages"] / found["checked"]["pages"]
            )
    return figures


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--model", type=Path)
    parser.add_argument(
        "--vllm-python",
        default=os.environ.get("CULPA_VLLM_PYTHON") or str(ROOT / ".venvs" / "vllm" / "bin" / "python"),
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("at least two rounds, so that there is something to compare")
    if not Path(arguments.vllm_python).exists():
        parser.error(f"no {arguments.vllm_python}: run `make vllm-env`, or set CULPA_VLLM_PYTHON")
    figures = measure(arguments.rounds, arguments.pages, arguments.vllm_python, arguments.model)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    for figure, value in figures.items():
        text = (
            f"{value['median']:.3f} (half of the pairs: {value['low']:.3f} to {value['high']:.3f})"
            if isinstance(value, dict)
            else f"{value:.3f}"
            if isinstance(value, float)
            else str(value)
        )
        print(f"  {figure.replace('_', ' '):45s} {text}")


if __name__ == "__main__":
    main()
