"""The plainest value at which something fails."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.minimize.numbers import MOST_TRIALS, Boundary, boundary, middle


def searched(
    suspect: int, safe: int, failing: set[int] | range, *, exact: bool = True
) -> tuple[Boundary, int]:
    tried: list[int] = []

    async def fails(value: int) -> bool:
        tried.append(value)
        return value in failing

    return asyncio.run(boundary("n", suspect, safe, fails, exact=exact)), len(tried)


@given(st.integers(2, 4000), st.data())
def test_a_threshold_from_above_is_found_exactly(suspect: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(2, suspect))
    found, trials = searched(suspect, 1, range(threshold, suspect + 1))
    assert trials <= MOST_TRIALS + 2
    assert found.passing < threshold <= found.failing
    if trials < MOST_TRIALS:
        assert found.failing == threshold


def test_a_threshold_from_below_is_found_too() -> None:
    found, _ = searched(1, 256, range(1, 65))
    assert (found.failing, found.passing) == (64, 65)


def test_a_number_that_does_not_matter_goes_to_its_safe_value_in_one_trial() -> None:
    found, trials = searched(64, 1, range(1, 65))
    assert (found.failing, trials) == (1, 1)


def test_a_large_number_is_not_searched_beyond_a_hundredth() -> None:
    found, trials = searched(27_000, 16, range(12_345, 27_001), exact=False)
    assert found.failing - found.passing <= 0.01 * found.failing + 1
    assert trials <= MOST_TRIALS + 2


def test_a_number_that_is_not_monotone_stays_as_it_was() -> None:
    found, _ = searched(64, 16, {64, *range(20, 41)})
    assert found.failing == 64
    assert not found.monotone
    assert "not monotone" in found.sentence()


@pytest.mark.parametrize(("one", "other"), [(1, 3), (3, 1), (16, 27_000), (0, 2), (0, 1000)])
def test_a_middle_lies_between_the_ends(one: int, other: int) -> None:
    assert min(one, other) < middle(one, other) < max(one, other)
