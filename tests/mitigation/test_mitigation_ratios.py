"""Spread, paired ratios with their interval, and what they add up to."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.mitigation.ratios import Sample, cost, measured
from culpa.model.mitigation import Measured


def only(samples: list[Sample | None], failing: list[Sample | None]) -> Measured:
    (found,) = measured(samples, failing)
    return found


def test_a_ratio_is_taken_within_a_repeat_so_that_a_slow_machine_cancels_out() -> None:
    # The machine is ten times slower in the second repeat; both launches meet it.
    found = only([{"throughput": 50.0}, {"throughput": 5.0}], [{"throughput": 100.0}, {"throughput": 10.0}])
    assert found.ratio == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5)
    assert found.high == pytest.approx(0.5)
    assert (found.lowest, found.median, found.highest) == (5.0, 27.5, 50.0)


def test_the_interval_is_students_on_logarithms() -> None:
    found = only([{"throughput": 1.0}, {"throughput": 2.0}, {"throughput": 4.0}], [{"throughput": 1.0}] * 3)
    assert found.ratio == pytest.approx(2.0)
    # mean ln 2, deviation ln 2, t(0.975, 2) = 4.3027
    assert found.low == pytest.approx(2.0 ** (1 - 4.302653 / 3**0.5), rel=1e-5)
    assert found.high == pytest.approx(2.0 ** (1 + 4.302653 / 3**0.5), rel=1e-5)


def test_one_repeat_gives_a_ratio_and_no_interval() -> None:
    found = only([{"first_token": 0.2}], [{"first_token": 0.1}])
    assert found.ratio == pytest.approx(2.0)
    assert found.low is None
    assert found.high is None


def test_a_repeat_that_told_nothing_is_left_out_on_both_sides() -> None:
    found = only([None, {"throughput": 3.0}], [{"throughput": 1.0}, {"throughput": 6.0}])
    assert found.ratio == pytest.approx(0.5)
    assert found.repeats == 1


@pytest.mark.parametrize("value", [0.0, nan, inf, -1.0])
def test_a_number_that_is_none_is_left_out(value: float) -> None:
    assert measured([{"throughput": value}], [{"throughput": 1.0}]) == ()


def test_without_the_failing_launch_there_are_values_and_no_ratios() -> None:
    found = only([{"capacity": 1000.0}], [])
    assert (found.median, found.ratio) == (1000.0, None)
    assert cost([found]) is None


def test_the_cost_turns_every_metric_so_that_more_is_worse() -> None:
    found = measured([{"throughput": 50.0, "inter_token": 0.4}], [{"throughput": 100.0, "inter_token": 0.1}])
    assert cost(found) == pytest.approx((2 * 4) ** 0.5)


positive = st.floats(1e-3, 1e6)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=8))
def test_the_ratio_lies_in_its_interval_and_is_the_reverse_the_other_way_round(
    pairs: list[tuple[float, float]],
) -> None:
    ours: list[Sample | None] = [{"throughput": one} for one, _ in pairs]
    theirs: list[Sample | None] = [{"throughput": other} for _, other in pairs]
    there, back = only(ours, theirs), only(theirs, ours)
    assert there.ratio is not None
    assert back.ratio is not None
    assert there.low is not None
    assert there.high is not None
    assert there.low <= there.ratio * (1 + 1e-9)
    assert there.high >= there.ratio * (1 - 1e-9)
    assert there.ratio * back.ratio == pytest.approx(1.0)
