"""What the harness itself costs: a trial against the bare start, request and stop of the same engine, in one run.

    python -m benchmarks.harness [--rounds 15] [--json]

Three figures, each over pairs that run in turn:
- own time of a passing trial: its seconds without the engine's start and its requests, and the whole trial as a
  ratio to the same start, request and stop done by hand;
- from the engine's writing of its root event to the verdict;
- from the same to the end of the trial, every process gone and the evidence on disk.
The engine is the fake one of the tests, which starts in a tenth of a second, so nothing hides behind it.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from culpa.engines import find_adapter, parse_command
from culpa.executors import LocalExecutor
from culpa.host import free_port, read_machine
from culpa.hunt import in_order
from culpa.model import Configuration, Outcome
from culpa.probes import Probe, Request
from culpa.session import Patience
from culpa.trial import TrialRequest, TrialRunner

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "tests" / "fake_engine.py"
FACTORS = ROOT / "tests" / "loop" / "factors.toml"
BODY = {"messages": [{"role": "user", "content": "What is 2+2?"}], "temperature": 0, "max_tokens": 8}


def by_hand(folder: Path) -> float:
    """Start, wait, ask once, stop: what a person's script would do. Seconds."""
    port = free_port()
    began = time.perf_counter()
    with (folder / "by-hand.log").open("ab") as log:
        engine = subprocess.Popen(
            [sys.executable, str(ENGINE), "--port", str(port)], stdout=log, stderr=log, start_new_session=True
        )
    try:
        while not answers(port):
            time.sleep(0.01)
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            json.dumps(BODY).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).read()
    finally:
        os.killpg(engine.pid, signal.SIGTERM)
        engine.wait()
    return time.perf_counter() - began


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).read()
    except (urllib.error.URLError, ConnectionError):
        return False
    return True


class Bench:
    """Trials on the fake engine through the real runner."""

    def __init__(self, folder: Path) -> None:
        self._launch = parse_command([sys.executable, str(ENGINE)])
        self._adapter = find_adapter(self._launch, FACTORS)
        self._machine = read_machine()
        self._adapter.read(self._launch, self._machine)
        self._folder = folder
        self._probe = Probe("one", ((Request("/v1/chat/completions", BODY),),))
        self._next = 0

    async def trial(self, surrounding: dict[str, str]) -> dict[str, float]:
        """Seconds of one trial: in all, by itself, and (for a failing one) from root event to verdict and end."""
        self._next += 1
        clock = self._folder / f"clock-{self._next}"
        runner = TrialRunner(
            self._adapter,
            self._launch,
            LocalExecutor({**os.environ, **surrounding, "FAKE_CLOCK": str(clock)}),
            self._machine,
            patience=Patience(),
            folder=self._folder,
            run_tag=f"bench-{os.getpid()}",
            port=None,
            on_progress=lambda *_: None,
        )
        began = time.perf_counter()
        nothing = Configuration(())
        result = await runner.run(
            TrialRequest(self._next, nothing, nothing, "bench", "bench", in_order((self._probe,)))
        )
        await runner.close()
        ended = time.time()
        whole = time.perf_counter() - began
        trial = result.trial
        expected = Outcome.FAIL if surrounding else Outcome.PASS
        assert trial.outcome is expected, trial
        asked = sum(answer.seconds for one in result.asked for answer in one.answers)
        figures = {"whole": whole, "own": whole - (trial.start_seconds or 0.0) - asked}
        if clock.exists():
            written = float(clock.read_text())
            assert trial.verdict_delay_seconds is not None
            figures["event_to_end"] = ended - written
        if trial.verdict_delay_seconds is not None:
            figures["seen_to_verdict"] = trial.verdict_delay_seconds
        return figures


def median(values: list[float]) -> float:
    return statistics.median(values)


def measure(rounds: int) -> dict[str, float]:
    passing: list[dict[str, float]] = []
    failing: list[dict[str, float]] = []
    bare: list[float] = []
    fault = {"FAKE_FAULT": "port>0", "FAKE_SYMPTOM": "crash"}
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        for _ in range(rounds):
            bare.append(by_hand(Path(name)))
            passing.append(asyncio.run(bench.trial({})))
            failing.append(asyncio.run(bench.trial(fault)))
    return {
        "by_hand_seconds": median(bare),
        "passing_trial_seconds": median([one["whole"] for one in passing]),
        "passing_trial_to_by_hand": median(
            [one["whole"] / hand for one, hand in zip(passing, bare, strict=True)]
        ),
        "own_seconds_of_a_passing_trial": median([one["own"] for one in passing]),
        "root_event_seen_to_verdict_seconds": median([one["seen_to_verdict"] for one in failing]),
        "root_event_written_to_trial_over_seconds": median([one["event_to_end"] for one in failing]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"medians of {arguments.rounds} rounds")
    for figure, value in figures.items():
        print(f"  {figure.replace('_', ' '):45s} {value:8.3f}")


if __name__ == "__main__":
    main()
