"""Each fault fires where its condition holds, and not where any one part of it does not."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.lab.engine.engines import Prompt, answer, engine, prompt, right

from culpa_lab.faults.registry import FAULTS
from culpa_lab.faults.table import document, faults

A, B = prompt(100, seed=1), prompt(100, seed=2)
SHORT = prompt(10, seed=3)
Rounds = Sequence[Sequence[Prompt]]
FOUR = [prompt(10, seed=seed) for seed in range(4)]
EIGHT = [prompt(10, seed=seed) for seed in range(8)]
ALL_SIZES = {"max_num_seqs": 8, "capture_sizes": (1, 2, 4, 8), "max_num_batched_tokens": 256}


@dataclass(frozen=True)
class Case:
    """A launch and requests that show a fault, and changes of either that each avoid it."""

    fault: str
    launch: dict[str, Any]
    rounds: Rounds
    safe: Sequence[dict[str, Any]]
    safe_rounds: Sequence[Rounds] = ()
    error: str | None = None
    length: int = 8
    also_fails: Sequence[dict[str, Any]] = field(default_factory=tuple)


CASES = (
    Case(
        "incident",
        {"partition": (3, 3, 2)},
        [[A]],
        [{"enforce_eager": True}, {"partition": (8,)}, {"max_num_batched_tokens": 128}],
        [[[SHORT]]],
        error="an illegal memory access was encountered",
        # The cut of the layers does not matter, nor how many stages there are if there are several.
        also_fails=[{"partition": (4, 2, 2)}, {"partition": (4, 4)}, {"async_scheduling": False}],
    ),
    Case(
        "bucket-overflow",
        {"capture_sizes": (1, 2)},
        [FOUR],
        [{"enforce_eager": True}, {"max_num_seqs": 2}, {"capture_sizes": (1, 2, 4)}],
        [[FOUR[:2]]],
    ),
    Case(
        "prefix-state-not-restored",
        {},
        [[A], [B], [A]],
        [{"enable_prefix_caching": False}, {"mamba_cache_mode": "none"}],
        [[[A], [A]], [[A]], [[SHORT], [B[:10]], [SHORT]]],
    ),
    Case(
        "state-not-cleared",
        {"enable_prefix_caching": False, "num_gpu_blocks_override": 24},
        [[SHORT]] * 8,
        [{"enable_prefix_caching": True, "mamba_cache_mode": "align"}, {"num_gpu_blocks_override": 160}],
        [[[SHORT]]],
    ),
    Case(
        "group-off-by-one",
        {"partition": (3, 5)},
        [[SHORT]],
        [{"partition": (4, 4)}, {"partition": (8,)}, {"partition": (2, 6)}, {"block_size": 32}],
    ),
    Case(
        "chunk-ends-on-block",
        {},
        [[A]],
        [{"max_num_batched_tokens": 128}, {"max_num_batched_tokens": 30}],
        [[[SHORT]]],
    ),
    Case(
        "freed-two-steps-early",
        {},
        [[SHORT]],
        [{"async_scheduling": False}, {"enable_prefix_caching": False}],
        error="an illegal memory access was encountered",
    ),
    Case(
        "shared-group-metadata",
        {},
        [FOUR[:2]],
        [{"enforce_eager": True}, {"max_num_seqs": 1}],
        [[FOUR[:1], FOUR[1:2]]],
    ),
    Case(
        "race-hidden-by-blocking",
        {"partition": (4, 4), "max_num_batched_tokens": 1024, "max_model_len": 1024, "block_size": 256},
        [[prompt(600)]],
        [{"launch_blocking": True}, {"partition": (8,)}, {"max_num_batched_tokens": 256}],
        [[[prompt(500)]]],
        length=1,
    ),
    Case(
        "concurrency-4-only",
        ALL_SIZES,
        [FOUR],
        [{"enforce_eager": True}, {"max_num_seqs": 3}, {"capture_sizes": (1, 2, 8)}],
        [[FOUR[:3]], [EIGHT]],
    ),
    Case(
        "nan",
        {},
        [[SHORT]],
        [{"enable_prefix_caching": False}, {"mamba_cache_mode": "none"}],
    ),
    Case(
        "oom-like-incident",
        {
            "partition": (3, 3, 2),
            "max_num_batched_tokens": 3072,
            "max_model_len": 4096,
            "num_gpu_blocks_override": 64,
            "block_size": 256,
        },
        [[prompt(2900)]],
        [{"enforce_eager": True}, {"partition": (8,)}, {"gpu_memory_utilization": 0.5}],
        [[[SHORT]]],
        error="CUDA out of memory",
        length=1,
    ),
    Case(
        "two-faults",
        {"capture_sizes": (1, 2)},
        [FOUR],
        [{"enforce_eager": True}],
        [[FOUR[:2]]],
    ),
    Case(
        "two-faults",
        {"enforce_eager": True, "num_gpu_blocks_override": 24},
        [[prompt(60, seed=seed) for seed in range(4)]],
        [{"num_gpu_blocks_override": 160}, {"max_num_seqs": 1}, {"enable_prefix_caching": False}],
        [[[prompt(60)]]],
        length=40,
    ),
    Case(
        "since-build-37",
        {"build": 37},
        [[A], [A]],
        [{"build": 36}, {"enable_prefix_caching": False}],
        [[[A], [B]], [[SHORT], [SHORT]]],
        also_fails=[{"build": 64}],
    ),
    Case(
        "eager-only",
        {"enforce_eager": True},
        [FOUR[:2]],
        [{"enforce_eager": False}, {"max_num_seqs": 1}],
        [[FOUR[:1]]],
    ),
    Case(
        "preempted-state",
        {"num_gpu_blocks_override": 24},
        [[prompt(60, seed=seed) for seed in range(4)]],
        [{"num_gpu_blocks_override": 160}, {"max_num_seqs": 1}, {"enable_prefix_caching": False}],
        [[[prompt(60)]]],
        length=40,
    ),
    Case(
        "continued-on-block",
        {},
        [[A[:96]], [A]],
        [{"enable_prefix_caching": False}, {"mamba_cache_mode": "none"}, {"block_size": 64}],
        [[[A[:95]], [A]], [[A]], [[A[:96]], [B]], [[A], [A[:96]]], [[A[:96]], [A[:96]]]],
        error="an illegal memory access was encountered",
    ),
)
# These need processes and are in test_lab_server_faults.py.
NEED_PROCESSES = {"silent-hang", "stage-killed-silently", "arm-ignored"}


def outcome(case: Case, launch: dict[str, Any], rounds: Rounds) -> str:
    """What the requests come to: "right", "wrong", or the error that ends the engine."""
    core = engine(armed=(case.fault,), **launch)
    try:
        found = answer(core, rounds, case.length)
    except RuntimeError as error:
        return str(error)
    return "right" if right(found, rounds) else "wrong"


def names(cases: Sequence[Case]) -> list[str]:
    return [case.fault for case in cases]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_a_fault_fires_where_its_condition_holds(case: Case) -> None:
    for change in ({}, *case.also_fails):
        assert (case.error or "wrong") in outcome(case, case.launch | change, case.rounds), change


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_any_one_part_of_the_condition_that_does_not_hold_avoids_it(case: Case) -> None:
    for change in case.safe:
        launch = case.launch | change
        if launch.get("enable_prefix_caching") is False:
            launch = {**launch, "mamba_cache_mode": "none"}
        assert outcome(case, launch, case.rounds) == "right", change
    for rounds in case.safe_rounds:
        assert outcome(case, case.launch, rounds) == "right"


def test_every_fault_is_tested() -> None:
    assert {case.fault for case in CASES} | NEED_PROCESSES == set(FAULTS)


def test_without_prefix_caching_the_incident_is_wrong_answers_and_no_crash() -> None:
    case = CASES[0]
    launch = {**case.launch, "enable_prefix_caching": False}
    assert outcome(case, launch, [[A]]) == "wrong"
    assert outcome(case, launch, [[SHORT]]) == "wrong"
    assert outcome(case, {**launch, "enforce_eager": True}, [[A]]) == "right"


def test_the_table_holds_every_fault_in_the_same_order() -> None:
    assert [fault.name for fault in faults()] == list(FAULTS)


def test_the_page_on_faults_is_made_from_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "faults.md"
    assert page.read_text(encoding="utf-8") == document()
