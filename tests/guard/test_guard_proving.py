"""A planted fault counts as caught only if what is reported names it, no earlier than it was planted."""

import pytest

import culpa_guard
from culpa.guard.proving import PlantRun, inapplicable, plant_runs, prove
from culpa.model.guard import GuardRecord, PlantedFault, Violation
from culpa_guard.vllm.plants import FAULTS as VLLM_FAULTS
from culpa_lab.guard.plant import FAULTS as LAB_FAULTS

RUN = PlantRun(engine="culpa-lab", mode="log", plants=("state_index:step=4",), probes=("cold",))
PLANTED = PlantedFault("state_index", "PP1", 4, expect=("state_index_not_scheduled",))
NAMED = Violation("state_index_not_scheduled", stage="PP1", step=4)


def record(*violations: Violation, planted: tuple[PlantedFault, ...] = (PLANTED,)) -> GuardRecord:
    return GuardRecord(violations=violations, total=len(violations), planted=planted)


@pytest.mark.parametrize(("engine", "faults"), [("culpa-lab", LAB_FAULTS), ("vllm", VLLM_FAULTS)])
def test_every_fault_that_an_engine_can_be_given_is_planted(
    engine: str, faults: dict[str, tuple[str, ...]]
) -> None:
    planted = [fault for run in plant_runs(engine) for fault in run.faults]
    assert sorted(planted) == sorted(faults)


def test_the_reference_engine_shows_every_kind_but_those_that_need_two_requests_or_groups_to_clash() -> None:
    shown = {kind for kinds in LAB_FAULTS.values() for kind in kinds}
    assert set(culpa_guard.KINDS) - shown == {"block_owned_by_two_groups", "block_owned_by_two_requests"}


def test_the_right_kind_at_the_right_step_is_a_catch() -> None:
    (proof,) = prove(RUN, record(NAMED))
    assert proof.caught
    assert proof.found == NAMED


@pytest.mark.parametrize(
    "violation",
    [
        Violation("state_not_finite", stage="PP1", step=4),
        Violation("state_index_not_scheduled", stage="PP1", step=3),
        Violation("state_index_not_scheduled", stage="PP0", step=5),
    ],
    ids=["another kind", "before it was planted", "a stage before"],
)
def test_anything_else_is_none(violation: Violation) -> None:
    (proof,) = prove(RUN, record(violation))
    assert not proof.caught
    assert "expected state_index_not_scheduled" in proof.reason


def test_the_stage_after_sees_a_hand_over() -> None:
    run = PlantRun(engine="vllm", mode="log", plants=("handover",), probes=("cold",))
    planted = PlantedFault("handover", "PP0", 1, expect=("handover_mismatch",))
    found = Violation("handover_mismatch", stage="PP1", step=1)
    assert prove(run, record(found, planted=(planted,)))[0].caught


def test_one_violation_names_one_fault() -> None:
    run = RUN.model_copy(update={"plants": ("state_index", "foreign_state")})
    both = (PLANTED, PlantedFault("foreign_state", "PP1", 4, expect=PLANTED.expect))
    assert [proof.caught for proof in prove(run, record(NAMED, planted=both))] == [True, False]


def test_a_fault_that_was_never_planted_is_not_caught_and_says_so() -> None:
    (proof,) = prove(RUN, record(NAMED, planted=()))
    assert not proof.caught
    assert proof.reason == "it did not come to be planted in what was asked"


def test_a_fault_without_a_place_in_the_launch_does_not_apply() -> None:
    (proof,) = inapplicable(RUN, "needs 2 stages, this launch has 1")
    assert not proof.applies
