"""The searches of `benchmarks.bisect`, and that they are measured alike."""

import pytest
from benchmarks.bisect.__main__ import fault, measure
from benchmarks.bisect.peers import culpa, git_bayesect, repeating, repeats_needed


@pytest.mark.parametrize(
    "search", [culpa, git_bayesect, repeating(1)], ids=["culpa", "git_bayesect", "repeat"]
)
def test_each_search_finds_a_deterministic_change(search: object) -> None:
    assert callable(search)
    for first in (1, 20, 31):
        assert search(32, fault(first, 1.0, 0), 0.95).first == first


def test_repeats_are_as_many_as_the_known_rate_demands() -> None:
    assert repeats_needed(128, 1.0, 0.95) == 1
    needed = repeats_needed(128, 0.3, 0.95)
    assert (1 - 0.7**needed) ** 7 >= 0.95 > (1 - 0.7 ** (needed - 1)) ** 7


def test_deterministic_changes_take_no_more_than_two_trials_beyond_the_halving() -> None:
    row = measure("culpa", culpa, 64, 1.0, 0)
    assert row.most <= 8
    assert row.right == 1.0


def test_same_change_and_luck_for_every_search() -> None:
    first, second = fault(10, 0.5, 3), fault(10, 0.5, 3)
    assert [first(12) for _ in range(20)] == [second(12) for _ in range(20)]
    assert not any(first(9) for _ in range(20))
