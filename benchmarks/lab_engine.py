"""What the reference engine costs: its start, one trial, its memory, and captured against eager decode, in one run.

    python -m benchmarks.lab_engine [--stages 3] [--rounds 3] [--tokens 64] [--json]

A trial is what `culpa` does with an engine: start, a short question three times, one long prompt, stop. Captured and
eager decode take turns on the same machine, one request at a time and four at once; the ratio of their speeds is what
counts, since the machine is never quiet. Speeds in tokens a second are those of the whole engine, HTTP included.
Resident memory is that of all processes, shared pages counted once (PSS).
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import psutil


class Engine:
    """A running `culpa-lab serve` on the model that ships."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "culpa_lab", "serve", "--port", "0", *arguments]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        url = ""
        for line in self.process.stdout:
            found = re.search(r"Starting vLLM server on (http://\S+)", line)
            url = found[1] if found else url
            if "Application startup complete" in line:
                break
        self._client = httpx2.Client(base_url=url, timeout=300, trust_env=False)
        assert self._client.get("/health").status_code == 200
        self.start_seconds = time.perf_counter() - began
        # The pipe must not fill up.
        threading.Thread(target=lambda: list(self.process.stdout or ()), daemon=True).start()

    def ask(self, prompt: str | list[int], tokens: int, **fields: Any) -> int:
        """Tokens of an answer to a completion at temperature 0."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, **fields}
        found = self._client.post("/v1/completions", json=body).json()
        return int(found["usage"]["completion_tokens"])

    def decode_speed(self, requests: int, tokens: int) -> float:
        """Tokens a second of so many requests at once, which all run to their limit."""
        with ThreadPoolExecutor(requests) as pool:
            began = time.perf_counter()
            made = sum(pool.map(lambda _: self.ask("2+2=", tokens, ignore_eos=True), range(requests)))
            return made / (time.perf_counter() - began)

    def memory(self) -> int:
        """Proportional set size of all processes in bytes."""
        root = psutil.Process(self.process.pid)
        return sum(one.memory_full_info().pss for one in (root, *root.children(recursive=True)))

    def stop(self) -> None:
        """End it."""
        self._client.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def trial(stages: int, prompt: list[int]) -> dict[str, float]:
    """Seconds of one trial's parts, and memory at its end."""
    engine = Engine("-pp", str(stages))
    began = time.perf_counter()
    for _ in range(3):
        engine.ask("2+2=", 8)
    short = time.perf_counter() - began
    began = time.perf_counter()
    engine.ask(prompt, 8)
    long = time.perf_counter() - began
    memory = engine.memory()
    began = time.perf_counter()
    engine.stop()
    stop = time.perf_counter() - began
    return {
        "start": engine.start_seconds,
        "short": short,
        "long": long,
        "stop": stop,
        "megabytes": memory / 1e6,
    }


def decode(stages: int, rounds: int, tokens: int) -> dict[str, dict[str, float]]:
    """Speeds of captured and eager decode by requests at once, and how many times faster captured is."""
    engines = {"graphs": Engine("-pp", str(stages)), "eager": Engine("-pp", str(stages), "--enforce-eager")}
    found: dict[str, dict[str, float]] = {}
    for requests in (1, 4):
        speeds: dict[str, list[float]] = {name: [] for name in engines}
        for one in engines.values():
            one.decode_speed(requests, 8)
        for _ in range(rounds):
            for name, one in engines.items():
                speeds[name].append(one.decode_speed(requests, tokens))
        ratios = [a / b for a, b in zip(speeds["graphs"], speeds["eager"], strict=True)]
        found[f"{requests} at once"] = {
            **{name: statistics.median(values) for name, values in speeds.items()},
            "ratio": statistics.median(ratios),
        }
    for one in engines.values():
        one.stop()
    return found


def median_of(parts: list[dict[str, float]]) -> dict[str, float]:
    """The median of each part."""
    pick: Callable[[str], float] = lambda key: statistics.median(one[key] for one in parts)  # noqa: E731
    return {key: pick(key) for key in parts[0]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stages", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64, help="of each answer whose speed is measured")
    parser.add_argument("--prompt", type=int, default=8000, help="tokens of a trial's long prompt")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    prompt = [33 + i * 7 % 90 for i in range(asked.prompt)]
    one = median_of([trial(asked.stages, prompt) for _ in range(asked.rounds)])
    speeds = decode(asked.stages, asked.rounds, asked.tokens)
    if asked.json:
        print(
            json.dumps({"stages": asked.stages, "trial": one, "decode": speeds, "load": os.getloadavg()[0]})
        )
        return
    print(f"{asked.stages} stages, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"start {one['start']:.2f} s, 3 short answers {one['short']:.2f} s, {asked.prompt} tokens {one['long']:.2f} s, "
        f"stop {one['stop']:.2f} s, memory {one['megabytes']:.0f} MB"
    )
    for name, values in speeds.items():
        print(
            f"decode, {name}: graphs {values['graphs']:.0f} tokens/s, eager {values['eager']:.0f} tokens/s, "
            f"ratio {values['ratio']:.2f}"
        )


if __name__ == "__main__":
    main()
