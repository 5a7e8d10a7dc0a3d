"""How soon the page of a run is on the screen: 1,000 trials with a log of 100 MB, beside a small run, in one go.

    python -m benchmarks.report [--trials 1000] [--megabytes 100] [--rounds 5] [--json]

Both runs are made for the occasion, as folders with a journal, a result, and logs. `read` is reading the folder, cut
and redacted, `write` the making of the page from it. The rest is Chromium, offline, the median of the rounds, in
windows of 1,280 and 360 px: to the end of the `load` event, and to the first frame drawn, as the browser counts it by
the clock; and the processor time of the page's main thread until then, which a busy machine changes little. The small
run says what the machine is like.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.report.html.conftest import ARGUMENTS, CHROMIUM
from tests.report.html.sources import large

from culpa.model import Experiment, RootEvent
from culpa.record import Record
from culpa.report.deliver import write_reports
from culpa.report.html import page
from culpa.report.source import ReportSource, load
from culpa.store import create_run

_LINE = (
    "(Worker_PP1 pid=13) INFO 12-01 15:19:56 [runner.py:2602] step {}: 2048 tokens of 8 requests in 0.09 s\n"
)
_FAULT = "(Worker_PP1 pid=13) ERROR 12-01 15:19:58 [exec.py:71] RuntimeError: an illegal memory access\n"


def make_run(folder: Path, source: ReportSource, megabytes: int) -> None:
    """A run's folder: the first trial has a log of that size with the fault at two thirds of it."""
    experiment = _with_folders(source.experiment)
    header = {
        "started": experiment.started,
        "engine": "vllm",
        "words": list(experiment.launch.argv),
        "options": {},
    }
    journal = create_run(folder, {**header, "factors": [one.name for one in experiment.factors]})
    record = Record(journal)
    lines = megabytes * 1_000_000 // len(_LINE)
    fault = lines * 2 // 3
    for one in experiment.trials:
        record.next_id(0.0, "to learn more")
        record.note_trial(one, 0.0)
        told = source.trials[one.id - 1].told
        if told is not None:
            record.note_told(told)
        where = folder / one.folder
        where.mkdir(parents=True)
        first = one.id == 1
        with (where / "engine.log").open("w") as file:
            for start in range(0, lines if first else 300, 1000):
                file.writelines(_LINE.format(number) for number in range(start, start + 1000))
                if first and start <= fault < start + 1000:
                    file.write(_FAULT)
        (where / "launch.sh").write_text("vllm serve model -pp 3\n")
        root = RootEvent(fault // 1000 * 1000 + 1001, _FAULT.strip(), None, "worker", "PP1")
        incident = {"symptom": "cuda_illegal_access", "root": _plain(root)} if first else None
        (where / "trial.json").write_text(json.dumps({"incident": incident}))
    write_reports(experiment, folder)


def _with_folders(experiment: Experiment) -> Experiment:
    trials = tuple(replace(one, folder=f"trials/{one.id:04}") for one in experiment.trials)
    return replace(experiment, trials=trials, root=None)


def _plain(root: RootEvent) -> dict[str, Any]:
    return {
        "line": root.line,
        "text": root.text,
        "time": root.time,
        "process": root.process,
        "rank": root.rank,
    }


def opening(file: Path, rounds: int, width: int) -> dict[str, float]:
    """Medians in milliseconds: to the end of the load event, to the first frame with content, of processor time."""
    from playwright.sync_api import sync_playwright

    found = next(path for name in CHROMIUM if (path := shutil.which(name)))
    loads, paints, works = [], [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        for _ in range(rounds + 1):  # the first warms the browser and does not count
            window = browser.new_context(offline=True, viewport={"width": width, "height": 900})
            tab = window.new_page()
            session = window.new_cdp_session(tab)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            tab.goto(file.as_uri(), wait_until="load")
            tab.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
            loads.append(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            paint = (
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"
            )
            paints.append(tab.evaluate(paint))
            told = session.send("Performance.getMetrics")["metrics"]
            works.append(1000 * next(one["value"] for one in told if one["name"] == "TaskDuration"))
            window.close()
        browser.close()
    medians = (statistics.median(values[1:]) for values in (loads, paints, works))
    return dict(zip(("load", "paint", "work"), medians, strict=True))


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Reading, writing and opening of one run."""
    begun = time.perf_counter()
    source = load(folder)
    read = time.perf_counter()
    text = page(source)
    wrote = time.perf_counter()
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    failing = source.failing()
    shown = sum(len(log.lines) for one in source.trials for log in one.logs)
    return {
        "trials": len(source.trials),
        "log_lines": max(log.total for one in source.trials for log in one.logs),
        "shown_lines": shown,
        "root_shown": failing is not None
        and any(line.role == "root" for log in failing.logs for line in log.lines),
        "megabytes": len(text.encode()) / 1e6,
        "read_seconds": read - begun,
        "write_seconds": wrote - read,
        "wide": opening(file, rounds, 1280),
        "narrow": opening(file, rounds, 360),
    }


def main() -> None:
    """Make both runs, measure them, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="culpa-") as folder:
        found = {}
        for name, trials, megabytes in (("small", 30, 0), ("large", asked.trials, asked.megabytes)):
            make_run(Path(folder) / name, large(trials), megabytes)
            found[name] = measure(Path(folder) / name, asked.rounds)
    if asked.json:
        print(json.dumps(found, indent=2))
        return
    heads = (
        "run",
        "trials",
        "log lines",
        "page MB",
        "read s",
        "write s",
        "load",
        "paint",
        "cpu",
        "360: load",
        "cpu",
    )
    print(("{:<7}" + "{:>10}" * 10).format(*heads))
    for name, one in found.items():
        cells = (one["trials"], one["log_lines"], f"{one['megabytes']:.2f}")
        times = (f"{one['read_seconds']:.2f}", f"{one['write_seconds']:.2f}")
        wide, narrow = one["wide"], one["narrow"]
        opened = (wide["load"], wide["paint"], wide["work"], narrow["load"], narrow["work"])
        print(
            ("{:<7}" + "{:>10}" * 10).format(name, *cells, *times, *(f"{value:.0f} ms" for value in opened))
        )
    ratio = found["large"]["wide"]["work"] / found["small"]["wide"]["work"]
    print(f"the large page takes {ratio:.1f} times the processor time of the small one")


if __name__ == "__main__":
    main()
