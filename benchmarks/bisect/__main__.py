"""Searches for the version with which a failure came in, on simulated versions: trials and how often they are right.

    python -m benchmarks.bisect [--runs 400] [--versions 128,1024] [--rates 1,0.8,0.5,0.3,0.2] [--json]

All searches face the same changes and the same luck (a seed for each change). Deterministic faults are tried with every
change point there is.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import fmean

from benchmarks.bisect.peers import Answer, Fails, culpa, git_bayesect, repeating, repeats_needed

Search = Callable[[int, Fails, float], Answer]


@dataclass(frozen=True, slots=True)
class Row:
    """What one search did at one rate: trials (mean, 95th percentile, most), share right, milliseconds a trial."""

    versions: int
    rate: float
    search: str
    runs: int
    mean: float
    high: int
    most: int
    hunt: float
    right: float
    milliseconds: float


def fault(first: int, rate: float, seed: int) -> Fails:
    """Versions from `first` on fail at this rate, those before it never."""
    chance = random.Random(seed)
    return lambda position: position >= first and chance.random() < rate


def measure(
    name: str, search: Search, versions: int, rate: float, runs: int, confidence: float = 0.95
) -> Row:
    """One row of the table."""
    pick = random.Random(f"{versions}|{rate}")
    every = rate >= 1.0
    firsts = list(range(1, versions)) if every else [pick.randrange(1, versions) for _ in range(runs)]
    began = time.perf_counter()
    answers = [search(versions, fault(first, rate, seed), confidence) for seed, first in enumerate(firsts)]
    seconds = time.perf_counter() - began
    trials = sorted(answer.trials for answer in answers)
    return Row(
        versions,
        rate,
        name,
        len(answers),
        fmean(trials),
        trials[int(0.95 * (len(trials) - 1))],
        trials[-1],
        fmean(answer.hunt for answer in answers),
        fmean(answer.first == first for answer, first in zip(answers, firsts, strict=True)),
        1000 * seconds / max(1, sum(answer.trials + answer.hunt for answer in answers)),
    )


def searches(versions: int, rate: float) -> dict[str, Search]:
    """Those of the table. The repeats of the last one are chosen with the rate known, which nobody has."""
    times = repeats_needed(versions, rate, 0.95)
    found: dict[str, Search] = {"culpa": culpa, "git_bayesect": git_bayesect}
    for count in sorted({1, 3, times}):
        known = ", rate known" if count == times and rate < 1.0 else ""
        found[f"repeat {count}{known}"] = repeating(count)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--versions", default="128,1024")
    parser.add_argument("--rates", default="1,0.8,0.5,0.3,0.2")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = [
        measure(name, search, versions, rate, asked.runs)
        for versions in map(int, asked.versions.split(","))
        for rate in map(float, asked.rates.split(","))
        for name, search in searches(versions, rate).items()
    ]
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print("| versions | rate | search | trials, mean | 95% of runs | most | before | right | ms a trial |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(
            f"| {row.versions} | {row.rate:g} | {row.search} | {row.mean:.1f} | {row.high} | {row.most} | "
            f"{row.hunt:.1f} | {row.right:.1%} | {row.milliseconds:.2f} |"
        )


if __name__ == "__main__":
    main()
