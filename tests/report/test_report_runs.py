"""The list of runs."""

import io
import json
from math import nan

import pytest
from rich.console import Console
from tests.report import golden
from tests.report.cases import CASES

from culpa.model.summary import RunSummary, summarise
from culpa.report.runs import print_runs, runs_json

RUNS = [summarise(make()) for make in CASES.values()]


def printed(runs: list[RunSummary], width: int) -> str:
    stream = io.StringIO()
    print_runs(runs, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_list_is_the_golden_one(width: int) -> None:
    golden.check(f"runs.{width}.txt", printed(RUNS, width))


def test_empty_list_is_said_to_be_empty() -> None:
    assert printed([], 80) == "no runs here\n"


def test_json_list_has_one_entry_a_run_and_no_nan() -> None:
    rows = json.loads(runs_json([*RUNS, RunSummary("x", "", "", "running", elapsed_seconds=nan)]))
    assert [row["outcome"] for row in rows][:2] == ["isolated", "isolated"]
    assert rows[-1]["elapsed_seconds"] is None
    assert rows[0]["finding"] == "execution=eager + pipeline_parallel_size=3"
