"""Experiments that the guard has looked into: one whose finding is located, one in which nothing was violated."""

from dataclasses import replace

from tests.report.cases import isolated

from culpa.guard import explain
from culpa.model import Experiment, Level
from culpa.model.guard import GuardedProcess, GuardedTrial, GuardRecord, LeftOutCheck, Located, Violation

VIOLATION = Violation(
    kind="captured_pointer_stale",
    stage="PP1",
    rank=1,
    layer="model.layers.24.linear_attn",
    layer_type="linear_attention",
    group=0,
    step=2,
    request="cmpl-1",
    block=1,
    index=0,
    expected="5",
    found="1",
    detail="the state: block of the capture",
    time=1764600000.25,
)
PROCESS = GuardedProcess(
    role="worker",
    stage="PP1",
    rank=1,
    mode="log",
    version="0.1.0",
    engine="culpa-lab",
    engine_version="0.64.0",
    checks=("bindings", "tables"),
    left_out=(LeftOutCheck("pages", "not asked for"),),
    steps=12,
    requests=2,
    checked=(("tables", 24),),
    own_seconds=0.004,
)


def located() -> Experiment:
    """A finding with the place where it begins."""
    experiment = isolated()
    (finding,) = experiment.conclusion.findings
    place = Located(9, VIOLATION, explain(VIOLATION.kind))
    findings = (replace(finding, level=Level.LOCATED, located=place),)
    record = GuardRecord((replace(PROCESS, violations=3),), (VIOLATION,), 3, ((VIOLATION.kind, 3),))
    return replace(
        experiment,
        conclusion=replace(experiment.conclusion, findings=findings),
        guarded=(GuardedTrial(9, True, record),),
    )


def watched_in_vain(failed: bool = True) -> Experiment:
    """The guard saw nothing."""
    return replace(isolated(), guarded=(GuardedTrial(9, failed, GuardRecord((PROCESS,))),))
