"""How fast a large log is read, against `grep -c` and ripgrep that only count the same words, in one run.

    python -m benchmarks.triage [--megabytes 1000] [--rounds 3] [--json]

The log is made for the occasion: eight ranks, an engine core and an API server write what they write on a busy day,
with warnings and failed requests among it, and at two thirds one rank hits an illegal access that takes the engine
down. culpa must find that line and rank. Each reader is a process of its own and finds the file in the page cache.
Speeds are per second of processor time, start of the program included, so that a busy machine changes little; the
time on the clock stands beside them. Peak memory is culpa's own, as the kernel counts it.
"""

import argparse
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from culpa.triage.tables import load_tables

ROOT = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
#: What a person would search for who is in a hurry.
_WORDS = "ERROR|CRITICAL|FATAL|Traceback|Error:|NVRM:|illegal memory"
_READ = """
import json, sys
from pathlib import Path
from culpa.sources import read_log
from culpa.triage import LogDocument
document = LogDocument()
document.begin(sys.argv[1])
for piece in read_log(Path(sys.argv[1])):
    document.feed(piece)
document.end()
incident = document.incident()
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(json.dumps({
    "peak_megabytes": int(peak.split()[1]) / 1024,
    "line": incident.root.line if incident and incident.root else None,
    "rank": incident.rank if incident else None,
    "lines": document.reader.lines,
}))
"""


def busy_day(chance: random.Random, count: int) -> Iterator[str]:
    """Lines of an engine at work."""
    for number in range(count):
        clock = f"07-15 {number // 36000 % 24:02d}:{number // 600 % 60:02d}:{number // 10 % 60:02d}"
        rank = chance.randrange(8)
        kind = chance.random()
        if kind < 0.70:
            yield (
                f"(Worker_TP{rank} pid={4302 + rank}) DEBUG {clock} [v1/worker/gpu_model_runner.py:2602] step {number}:"
                f" {chance.randrange(512)} tokens of {chance.randrange(64)} requests in {chance.random():.4f} s"
            )
        elif kind < 0.90:
            yield (
                f"(APIServer pid=4100) INFO:     10.0.0.{chance.randrange(250)}:{chance.randrange(60000)} -"
                ' "POST /v1/chat/completions HTTP/1.1" 200 OK'
            )
        elif kind < 0.97:
            yield (
                f"(APIServer pid=4100) INFO {clock} [loggers.py:273] Engine 000: Avg prompt throughput:"
                f" {chance.random() * 5000:.1f} tokens/s, Avg generation throughput: {chance.random() * 900 + 1:.1f}"
                f" tokens/s, Running: {chance.randrange(1, 64)} reqs, Waiting: 0 reqs, GPU KV cache usage: 31.2%,"
                " Prefix cache hit rate: 61.4%, Corrupted: 0 reqs"
            )
        elif kind < 0.9997:
            yield (
                f"(Worker_TP{rank} pid={4302 + rank}) WARNING {clock} [jit_monitor.py:135] Triton kernel JIT"
                " compilation during inference: _prepare_inputs_kernel. This causes a latency spike"
            )
        else:
            yield f"(APIServer pid=4100) ERROR {clock} [serving.py:908] Error in preprocessing prompt inputs"


def failure() -> Iterator[str]:
    """One rank fails and takes the others along."""
    head = "(Worker_TP3 pid=4305) ERROR 07-16 03:00:01 [multiproc_executor.py:1007] "
    yield f"{head}WorkerProc hit an exception."
    yield f"{head}Traceback (most recent call last):"
    yield f'{head}  File "/app/vllm/v1/worker/gpu_model_runner.py", line 4120, in execute_model'
    yield f"{head}    output = self.model("
    yield f"{head}{ROOT}"
    for rank in (0, 1, 2, 4, 5, 6, 7):
        other = f"(Worker_TP{rank} pid={4302 + rank}) ERROR 07-16 03:00:02 [multiproc_executor.py:1007] "
        yield f"{other}Traceback (most recent call last):"
        yield f"{other}RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
    yield (
        "(APIServer pid=4100) ERROR 07-16 03:00:03 [async_llm.py:708] vllm.v1.engine.exceptions.EngineDeadError:"
        " EngineCore encountered an issue. See stack trace (above) for the root cause."
    )


def write_log(path: Path, megabytes: int) -> int:
    """Write the log and return the line of its root event."""
    chance = random.Random(4)
    size, lines, root = 0, 0, 0
    end = megabytes * 1_000_000
    blocks = [list(busy_day(chance, 40_000)) for _ in range(3)]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            "(APIServer pid=4100) INFO 07-15 00:00:00 [api_server.py:1850] vLLM API server version 0.25.0\n"
        )
        lines += 1
        while size < end:
            if not root and size > end * 2 // 3:
                failing = list(failure())
                root = lines + 1 + next(index for index, line in enumerate(failing) if line.endswith(ROOT))
                file.write("\n".join(failing) + "\n")
                lines += len(failing)
            block = blocks[lines % len(blocks)]
            text = "\n".join(block) + "\n"
            size += file.write(text)
            lines += len(block)
    return root


def timed(command: list[str]) -> tuple[float, float, str]:
    """Processor seconds, seconds on the clock, and the output of a command; a count of none is exit code 1."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True)
    clock = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if out.returncode > 1:
        raise SystemExit(f"{command[0]} failed: {out.stderr.strip()[-300:]}")
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return max(spent, 0.01), clock, out.stdout


def measure(megabytes: int, rounds: int) -> dict[str, object]:
    pattern = "|".join(load_tables("generic").scan)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "engine.log"
        root = write_log(path, megabytes)
        size = path.stat().st_size / 1e6
        expressions = Path(folder) / "words.txt"
        expressions.write_text(pattern, encoding="utf-8")
        commands = {
            "culpa": [sys.executable, "-c", _READ, str(path)],
            "ripgrep": ["rg", "-c", "-j1", "--no-unicode", "-f", str(expressions), str(path)],
            "grep_words": ["grep", "-cE", _WORDS, str(path)],
        }
        if megabytes <= 200:  # grep with Perl's expressions takes minutes on more
            commands["grep_perl"] = ["grep", "-cP", pattern, str(path)]
        commands = {name: command for name, command in commands.items() if shutil.which(command[0])}
        spent: dict[str, list[float]] = {name: [] for name in commands}
        clock: dict[str, list[float]] = {name: [] for name in commands}
        reports: list[dict[str, object]] = []
        for _ in range(rounds):
            for name, command in commands.items():
                processor, seconds, output = timed(command)
                spent[name].append(processor)
                clock[name].append(seconds)
                if name == "culpa":
                    reports.append(json.loads(output))
    speed = {name: size / statistics.median(values) for name, values in spent.items()}
    return {
        "megabytes": size,
        "megabytes_per_second": speed,
        "clock_seconds": {name: statistics.median(values) for name, values in clock.items()},
        "culpa_to_ripgrep": speed["culpa"] / speed["ripgrep"] if "ripgrep" in speed else None,
        "peak_megabytes": max(float(str(report["peak_megabytes"])) for report in reports),
        "root_found": all(report["line"] == root and report["rank"] == "TP3" for report in reports),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.megabytes, arguments.rounds)
    if arguments.json:
        print(json.dumps(figures, indent=1))
        return
    print(f"a log of {figures['megabytes']:.0f} MB, medians of {arguments.rounds} rounds")
    speeds, clock = figures["megabytes_per_second"], figures["clock_seconds"]
    assert isinstance(speeds, dict)
    assert isinstance(clock, dict)
    for name, speed in speeds.items():
        print(f"  {name.replace('_', ' '):28s} {speed:9.1f} MB/s {clock[name]:9.1f} s on the clock")
    print(f"  {'peak memory of culpa':28s} {figures['peak_megabytes']:9.1f} MB")
    print(f"  {'root line and rank found':28s} {figures['root_found']!s:>9s}")


if __name__ == "__main__":
    main()
