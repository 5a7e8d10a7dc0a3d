"""Thresholds of levels that have an order and are no integers: decimals, and names from the lowest to the highest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search.simulated import engine as simulated_engine
from tests.search.simulated import flat, search, solve

from culpa.model import Arm, Factor
from culpa.search import Strategy

MEMORY = Factor("memory", "0.9", ("0.5",), numeric=True, decimals=2, maximum=100)
LEVEL = Factor("level", "O3", ("O0",), order=("O0", "O1", "O2", "O3"))


@given(st.integers(1, 10**6), st.integers(0, 6))
def test_a_level_is_what_its_steps_stand_for(steps: int, decimals: int) -> None:
    factor = Factor("share", "0.5", ("0.25",), numeric=True, decimals=max(decimals, 2))
    assert factor.steps(factor.level(steps)) == steps


def test_a_level_keeps_the_spelling_of_the_launch() -> None:
    factor = Factor("memory", "0.90", ("0.5",), numeric=True, decimals=2)
    assert factor.level(90) == "0.90"
    assert factor.level(50) == "0.5"
    assert factor.level(85) == "0.85"


@pytest.mark.parametrize("level", ["0.123", "much", "nan", "inf"])
def test_a_level_between_the_steps_is_refused(level: str) -> None:
    with pytest.raises(ValueError, match=r"no multiple|no number"):
        MEMORY.steps(level)


def test_the_threshold_of_a_decimal_is_found_to_its_last_place() -> None:
    run = solve([MEMORY, *flat(5)], "memory>=0.73 && f1")
    (condition,) = [one for one in run.conclusion.findings[0].conditions if one.startswith("memory:")]
    assert condition.startswith("memory: fails at 0.73 ")
    assert ", passes at 0.72 " in condition


def test_no_decimal_beyond_its_maximum_is_tried() -> None:
    run = solve([MEMORY, *flat(5)], "memory>=0.73")
    assert max(float(step.configuration["memory"]) for step in run.proposals) == 1.0


def test_a_decimal_that_fails_at_one_value_alone_has_no_threshold() -> None:
    run = solve([MEMORY, *flat(5)], "memory==0.9")
    assert any(
        "memory: no threshold: it fails at 0.9 " in one for one in run.conclusion.findings[0].conditions
    )


def test_the_threshold_of_names_lies_between_two_neighbours() -> None:
    run = solve([LEVEL, *flat(5)], "(level==O2 || level==O3) && f1")
    (condition,) = [one for one in run.conclusion.findings[0].conditions if one.startswith("level:")]
    assert condition.startswith("level: fails at O2 ")
    assert ", passes at O1 " in condition


def test_names_that_fail_in_the_middle_alone_have_no_threshold() -> None:
    factor = Factor("level", "O2", ("O0",), order=("O0", "O1", "O2", "O3", "O4"))
    run = solve([factor, *flat(5)], "level==O2")
    assert any("level: no threshold" in one for one in run.conclusion.findings[0].conditions)


def test_a_level_that_is_not_in_the_order_is_refused() -> None:
    with pytest.raises(ValueError, match="not in its order"):
        Factor("level", "O9", ("O0",), order=("O0", "O1"))


def test_an_arm_may_put_an_ordered_factor_between() -> None:
    factors = [MEMORY, LEVEL, *flat(3)]
    arm = Arm("between", (("memory", "0.65"), ("level", "O1")))
    run = search(Strategy(factors, arms=[arm]), simulated_engine(factors, "memory>=0.6 && f1"))
    (asked,) = [step.configuration for step in run.proposals if step.purpose == "arm"]
    assert (asked["memory"], asked["level"]) == ("0.65", "O1")


@pytest.mark.parametrize(
    ("level", "why"), [("1.01", "above 1.00"), ("0.655", "2 decimals"), ("1e-2", "2 decimals")]
)
def test_an_arm_is_refused_for_a_decimal_that_can_not_be(level: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"arm odd: .*{why}"):
        Strategy([MEMORY, *flat(2)], arms=[Arm("odd", (("memory", level),))])
