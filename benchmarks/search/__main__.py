"""Every search method on the same faults in the same run.

    python -m benchmarks.search [--quick] [--runs 100] [--n 8,12,16,24,32] [--k 1,2,3] [--rates 1,0.8,0.5,0.3,0.1]
                                [--false-rates 0,0.01,0.05] [--kinds flat,two,...] [--journal FILE] [--json FILE]
    python -m benchmarks.search --calibration [--runs 2000] [--plot FILE.svg]
    python -m benchmarks.search --speed [--runs 6] [--rates 1,0.5]
    python -m benchmarks.search --parallel [--runs 12] [--rates 1,0.5]

The first prints a table of all methods and the goals with what was measured; the second tells whether the claimed
probabilities are right; the third how long a choice among 32 factors takes; the fourth what several machines save.
With a journal, an interrupted run of the first two goes on where it stopped.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from benchmarks.search import parallel, speed
from benchmarks.search.calibration import Claim, claims, ended, moments, report
from benchmarks.search.figures import summarised
from benchmarks.search.measure import Record, Row, digest, measured
from benchmarks.search.plot import calibration_svg
from benchmarks.search.simulate import KINDS, Kind
from benchmarks.search.table import LEGEND, goals, kinds_shown, table

_PATIENT_UP_TO = (
    12  # intermittent faults take hundreds of trials: more factors only where no fewer are asked for
)


def numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers, such as 8,12") from None


def whole_numbers(text: str) -> list[int]:
    found = numbers(text)
    if any(number != int(number) or number < 1 for number in found):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers from 1 on")
    return [int(number) for number in found]


def kinds(text: str) -> list[Kind]:
    known = {kind: kind for kind in get_args(Kind)}
    chosen: list[Kind] = []
    for part in text.split(","):
        if part not in known:
            raise argparse.ArgumentTypeError(f"there is no kind {part!r}: choose of {', '.join(KINDS)}")
        chosen.append(known[part])
    return chosen


def rows_of(
    sizes: Sequence[int],
    ks: Sequence[int],
    rates: Sequence[float],
    false_rates: Sequence[float],
    asked: Sequence[Kind],
) -> Iterator[Row]:
    """The rows of the table: deterministic faults at every size; failure rates up to 12 factors; false failures and
    the other kinds at one size in the middle."""
    middle = min(sizes, key=lambda size: abs(size - 12))
    if "flat" in asked:
        for rate in rates:
            some = sizes if rate == 1.0 else [size for size in sizes if size <= _PATIENT_UP_TO] or [middle]
            yield from (Row("flat", size, k, rate) for size in some for k in ks)
        for false_rate in false_rates:
            some_rates = [rate for rate in rates if rate in (1.0, 0.5)] if false_rate else []
            yield from (Row("flat", middle, k, rate, false_rate) for rate in some_rates for k in ks)
    for kind in asked:
        if kind == "zoo":
            yield Row("zoo", 0, 0)
        elif kind != "flat":
            yield from (Row(kind, middle, k) for k in ks)


def quick(row: Row) -> bool:
    """Whether a row is among the few that show the most in two minutes."""
    if row.kind != "flat":
        return row.k in (0, 2)
    return (
        row.n <= 12
        and row.rate >= 0.5
        and (row.deterministic or row.n == 12)
        and row.false_rate in (0.0, 0.05)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, help="faults of each row (100), searches (2000, 6)")
    parser.add_argument("--n", type=whole_numbers, default=[8, 12, 16, 24, 32], help="numbers of factors")
    parser.add_argument("--k", type=whole_numbers, default=[1, 2, 3], help="numbers of members")
    parser.add_argument("--rates", type=numbers, default=[1.0, 0.8, 0.5, 0.3, 0.1], help="failure rates")
    parser.add_argument("--false-rates", type=numbers, default=[0.0, 0.01, 0.05])
    parser.add_argument("--kinds", type=kinds, default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--quick", action="store_true", help="few faults and sizes: about two minutes")
    parser.add_argument("--brief", action="store_true", help="of each row, culpa and the best peer only")
    parser.add_argument(
        "--journal", type=Path, help="records, one JSON line a fault; the run can go on from it"
    )
    parser.add_argument("--json", type=Path, help="the figures of the table, as JSON")
    parser.add_argument("--calibration", action="store_true", help="are claimed probabilities right?")
    parser.add_argument("--speed", action="store_true", help="how long does a choice take?")
    parser.add_argument("--parallel", action="store_true", help="what do several machines save?")
    parser.add_argument("--plot", type=Path, help="with --calibration: an SVG of claimed against measured")
    parser.add_argument("--confidence", type=float, default=0.95, help="what culpa is asked for")
    asked = parser.parse_args(arguments)
    wrong = what_is_wrong(asked)
    if wrong:
        parser.error(wrong)
    if asked.calibration:
        calibrate(asked)
    elif asked.speed or asked.parallel:
        rates = [rate for rate in asked.rates if rate in (1.0, 0.5)] or asked.rates
        lines = (
            speed.report(asked.runs or 6, rates) if asked.speed else parallel.report(asked.runs or 12, rates)
        )
        print("\n".join(lines))
    else:
        compare(asked)


def what_is_wrong(asked: argparse.Namespace) -> str:
    """Why these options can't be run, empty if they can."""
    if asked.runs is not None and asked.runs < 1:
        return "--runs must be at least 1"
    if max(asked.k) >= min(asked.n):
        return "a fault needs fewer members than factors: every --k below every --n"
    if not all(0.0 < rate <= 1.0 for rate in asked.rates):
        return "--rates must lie above 0 and at most 1"
    if not all(0.0 <= rate < min(asked.rates) for rate in asked.false_rates):
        return "--false-rates must lie from 0 on, below every failure rate"
    if not 0.0 < asked.confidence < 1.0:
        return "--confidence must lie between 0 and 1"
    return ""


def calibrate(asked: argparse.Namespace) -> None:
    """Claimed probabilities against what came true."""
    runs = asked.runs or (100 if asked.quick else 2000)
    some: list[Claim] = []
    for claim in claims(runs, asked.confidence, asked.journal):
        some.append(claim)
        if sys.stderr.isatty():
            print(f"\r{len(some)} of {runs} searches", end="", file=sys.stderr)
    print("\n".join(report(some, asked.confidence)))
    if asked.plot is not None:
        title = f"{runs} searches at --confidence {asked.confidence:g}"
        asked.plot.write_text(calibration_svg(moments(some), ended(some), title), encoding="utf-8")


def compare(asked: argparse.Namespace) -> None:
    """The table and the goals."""
    runs = asked.runs or 100
    rows = list(dict.fromkeys(rows_of(asked.n, asked.k, asked.rates, asked.false_rates, asked.kinds)))
    if asked.quick:
        runs = asked.runs or 20
        rows = [row for row in rows if quick(row)]
    records: dict[Row, list[Record]] = {row: [] for row in rows}
    for count, record in enumerate(measured(rows, runs, asked.journal, confidence=asked.confidence), start=1):
        records[record.row].append(record)
        if sys.stderr.isatty():
            print(f"\r{count} of {len(rows) * runs} faults", end="", file=sys.stderr)
    figures = [summarised(records[row]) for row in rows]
    print(table(figures, brief=asked.brief))
    print(f"\n{LEGEND}\n{kinds_shown(figures)}\n")
    print("\n".join(goals(figures, records)))
    if asked.json is not None:
        whole = {"digest": digest(), "runs": runs, "rows": [asdict(row) for row in figures]}
        asked.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
