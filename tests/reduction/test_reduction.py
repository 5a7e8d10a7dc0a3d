"""Which part of a sequence is found to be needed, and in how many trials."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.reduction import Reduced, Reduction

Fails = Callable[[tuple[int, ...]], bool]


def needs(*items: int) -> Fails:
    return lambda kept: set(items) <= set(kept)


def carried_out(reduction: Reduction, fails: Fails, last: int | None = None, most: int = 600) -> int:
    """Run to the end; the number of trials. `last` is the item at which the failure shows, where it does."""
    trials = 0
    while (step := reduction.next()) is not None:
        trials += 1
        assert trials <= most, "the reduction does not end"
        failed = fails(step.kept)
        reached = step.kept.index(last) + 1 if failed and last is not None and last in step.kept else None
        reduction.tell(step, failed, reached)
    return trials


def reduced(count: int, fails: Fails, last: int | None = None) -> tuple[Reduced, int]:
    reduction = Reduction(count)
    trials = carried_out(reduction, fails, last)
    return reduction.result(), trials


@pytest.mark.parametrize(
    ("cause", "most"),
    [
        ((700,), 10),
        ((1998, 1999), 10),
        ((3, 1990), 25),
        ((0, 1999), 25),
        ((1000, 1500), 25),
        ((10, 600, 1300), 36),
    ],
)
def test_a_cause_among_two_thousand_is_found_in_few_trials(cause: tuple[int, ...], most: int) -> None:
    found, trials = reduced(2000, needs(*cause), max(cause))
    assert found.kept == cause
    assert found.minimal
    assert found.held
    assert found.failed == found.trials >= 2
    assert trials <= most


def test_it_is_found_too_where_nobody_says_at_which_request_the_failure_came() -> None:
    found, trials = reduced(2000, needs(400, 1300))
    assert found.kept == (400, 1300)
    assert trials <= 36


def test_a_failure_that_is_never_seen_gives_nothing() -> None:
    found, trials = reduced(50, lambda _: False)
    assert found == Reduced((), False, 0, 0, (0, 3), True)
    assert trials == 3


def test_nothing_at_all_is_no_trial() -> None:
    assert Reduction(0).next() is None


def test_one_of_two_independent_causes_is_found_whole() -> None:
    found, _ = reduced(300, lambda kept: {10, 200} <= set(kept) or {40, 250} <= set(kept))
    assert found.kept in ((10, 200), (40, 250))
    assert found.minimal


def test_any_of_many_partners_will_do() -> None:
    found, _ = reduced(300, lambda kept: 299 in kept and any(one % 7 == 0 for one in kept), 299)
    assert len(found.kept) == 2
    assert found.minimal


def test_a_part_that_can_not_be_tried_is_gone_round() -> None:
    reduction = Reduction(64)
    refused: list[tuple[int, ...]] = []
    while (step := reduction.next()) is not None:
        if len(step.kept) == 32 and not refused:
            refused.append(step.kept)
            reduction.tell(step, None)
        else:
            assert step.kept not in refused
            reduction.tell(step, {5, 40} <= set(step.kept))
    assert reduction.result().kept == (5, 40)


def test_a_reduction_that_is_stopped_has_the_smallest_part_that_failed() -> None:
    reduction = Reduction(1000)
    for _ in range(6):
        step = reduction.next()
        assert step is not None
        failed = {100, 900} <= set(step.kept)
        reduction.tell(step, failed, step.kept.index(900) + 1 if failed else None)
    found = reduction.result()
    assert {100, 900} <= set(found.kept)
    assert len(found.kept) <= 901
    assert not found.minimal


def test_the_same_outcomes_lead_the_same_way() -> None:
    first, again = Reduction(500), Reduction(500)
    carried_out(first, needs(20, 400), 400)
    for told in first.history:
        step = again.next()
        assert step is not None
        assert step.kept == told.kept
        again.tell(step, told.failed, told.reached)
    assert again.next() is None
    assert again.result() == first.result()


@pytest.mark.parametrize("rate", [0.7, 0.4])
def test_a_failure_that_comes_only_sometimes_is_found_most_of_the_time(rate: float) -> None:
    right = 0
    for seed in range(12):
        rng = random.Random(seed)
        reduction = Reduction(60, tries=12)
        carried_out(reduction, lambda kept, rng=rng: {10, 45} <= set(kept) and rng.random() < rate, 45)  # type: ignore[misc]
        right += reduction.result().kept == (10, 45)
    assert right >= 9


def test_a_part_that_fails_far_more_seldom_than_the_whole_is_told_apart() -> None:
    rng = random.Random(3)
    reduction = Reduction(40, tries=10)

    def fails(kept: tuple[int, ...]) -> bool:
        return {5, 30} <= set(kept) and rng.random() < (1.0 if len(kept) > 4 else 0.12)

    carried_out(reduction, fails)
    found = reduction.result()
    assert not found.held or len(found.kept) > 4


@given(
    count=st.integers(1, 300),
    cause=st.sets(st.integers(0, 299), min_size=1, max_size=3),
    tells=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_certain_failure_is_always_cut_down_to_its_cause(count: int, cause: set[int], tells: bool) -> None:
    items = tuple(sorted(one % count for one in cause))
    items = tuple(dict.fromkeys(items))
    found, trials = reduced(count, needs(*items), max(items) if tells else None)
    assert found.kept == items
    assert found.minimal
    assert trials <= 8 + len(items) * (8 + 2 * math.log2(count + 1))


@given(count=st.integers(1, 40), seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_whatever_the_outcomes_it_ends_with_a_part_that_failed(count: int, seed: int) -> None:
    rng = random.Random(seed)
    outcomes: dict[tuple[int, ...], bool | None] = {}
    reduction = Reduction(count)
    trials = 0
    while (step := reduction.next()) is not None and trials < 300:
        trials += 1
        failed = outcomes.setdefault(step.kept, rng.choice((True, False, False, None)))
        reduction.tell(step, failed)
    assert trials < 300
    kept = reduction.result().kept
    assert not kept or outcomes.get(kept) is True
