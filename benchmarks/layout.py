"""How long one layout takes: reading, planning, findings, pictures, and the command as a whole.

    python -m benchmarks.layout [--repeat N]

Times of one process are medians in milliseconds; the command's are of whole processes, set beside `python -c pass` and
`culpa --version` of the same run, so that the machine's own speed falls out.
"""

import argparse
import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from culpa.layout import Settings, find, make_plan, read_shape
from culpa.report.layout_document import layout_document, layout_json
from culpa.report.layout_svg import layout_svg
from culpa.report.layout_terminal import print_layout

MODEL = Path(__file__).parent.parent / "examples" / "incident-model"
SETTINGS = Settings(
    pipeline_parallel_size=3, partition=(23, 23, 18), max_model_len=131072, gpu_memory=(32 << 30,)
)


def median_ms(call: Callable[[], object], repeat: int) -> float:
    """Median of so many calls, in milliseconds; the first one, which fills caches, is left out."""
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def process_ms(arguments: list[str], repeat: int) -> float:
    """Median of whole processes, in milliseconds."""
    return median_ms(lambda: subprocess.run(arguments, capture_output=True, check=True), repeat)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=50)
    repeat = parser.parse_args().repeat
    config = json.loads((MODEL / "config.json").read_text(encoding="utf-8"))
    shape = read_shape(config)
    plan = make_plan(shape, SETTINGS)
    findings = find(plan)
    said: dict[str, object] = {"engine": None, "differences": [], "text": ""}
    inside = {
        "read config.json (parsed) to a shape": lambda: read_shape(config),
        "plan: stages, pages, groups, capacity": lambda: make_plan(shape, SETTINGS),
        "findings": lambda: find(plan),
        "JSON": lambda: layout_json(layout_document(plan, findings, said)),
        "SVG": lambda: layout_svg(plan, findings),
        "terminal": lambda: print_layout(plan, findings, Console(file=io.StringIO(), width=100)),
    }
    for name, call in inside.items():
        print(f"{name:45} {median_ms(call, repeat):8.2f} ms")
    whole = [
        sys.executable,
        "-m",
        "culpa",
        "layout",
        str(MODEL),
        "--partition",
        "23,23,18",
        "--blocks",
        "492",
    ]
    few = max(3, repeat // 10)
    base = process_ms([sys.executable, "-c", "pass"], few)
    for name, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("culpa --version", [sys.executable, "-m", "culpa", "--version"]),
        ("culpa layout MODEL", whole),
        ("culpa layout MODEL --json", [*whole, "--json"]),
    ):
        took = process_ms(command, few)
        print(f"{name:45} {took:8.0f} ms   {took / base:5.1f} x python -c pass")


if __name__ == "__main__":
    main()
