"""What --dry-run prints."""

import io
import json

import pytest
from rich.console import Console
from tests.report import golden
from tests.report.blocks import FACTORS, LAUNCH, LEFT_OUT

from culpa.model import Plan, PlannedArm
from culpa.model.layout_finding import LayoutFinding
from culpa.report.plan import plan_json, print_plan

PLAN = Plan(
    engine="vLLM",
    launch=LAUNCH,
    factors=FACTORS,
    left_out=LEFT_OUT,
    arms=(
        PlannedArm("baseline", "baseline", (), "the launch as it is, until it has failed"),
        PlannedArm("eager", "arm", (("execution", "eager"),), "asked for"),
    ),
    probes=("short", "cold", "warm"),
    predicted_trials=9,
    predicted_seconds=420.0,
    max_trials=40,
    notes=("the port of the launch is replaced by a free one",),
    layout=(
        LayoutFinding("capacity_below_request", "error", "one request takes 174 blocks", ("max_model_len",)),
        LayoutFinding(
            "boundary_inside_period", "note", "layers repeat every 4, and layer 23 cuts into a period"
        ),
    ),
)


@pytest.mark.parametrize("width", [80, 120])
def test_plan_is_the_golden_one(width: int) -> None:
    stream = io.StringIO()
    print_plan(PLAN, Console(file=stream, width=width, highlight=False))
    golden.check(f"plan.{width}.txt", stream.getvalue())


def test_plan_without_estimates_says_so() -> None:
    stream = io.StringIO()
    print_plan(Plan("generic", LAUNCH), Console(file=stream, width=80))
    assert "nothing is known yet of how long it takes" in stream.getvalue()


def test_json_plan_holds_factors_arms_and_estimates() -> None:
    document = json.loads(plan_json(PLAN))
    assert document["schema"] == "culpa.plan/1"
    assert document["factors"][1]["safe"] == ["1", "2"]
    assert document["arms"][1]["levels"] == {"execution": "eager"}
    assert document["left_out"][0]["name"] == "cuda_graph_mode"
    assert document["predicted_trials"] == 9
    assert document["launch"] == LAUNCH.command_line()
