"""The search for the version with which a failure came in."""

import random
from collections.abc import Callable
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.model import Outcome
from culpa.search.change_point import ChangeFound, VersionSearch, VersionStep, VersionTrial
from culpa.search.change_posterior import change_posterior

PASS, FAIL = Outcome.PASS, Outcome.FAIL


def run(
    count: int, outcome: Callable[[int], Outcome], confidence: float = 0.95, most: int = 400
) -> tuple[ChangeFound, list[VersionTrial]]:
    search = VersionSearch(count, confidence)
    history: list[VersionTrial] = []
    while len(history) < most:
        step = search.next(history)
        if isinstance(step, ChangeFound):
            return step, history
        history.append(VersionTrial(step.position, outcome(step.position)))
    return search.conclude(history), history


def fails_from(first: int) -> Callable[[int], Outcome]:
    return lambda position: FAIL if position >= first else PASS


def at_rate(first: int, rate: float, seed: int) -> Callable[[int], Outcome]:
    chance = random.Random(seed)
    return lambda position: FAIL if position >= first and chance.random() < rate else PASS


@pytest.mark.parametrize("count", [2, 3, 5, 16, 100, 128])
def test_deterministic_fault_is_found_in_two_trials_beyond_the_halving(count: int) -> None:
    for first in range(1, count):
        found, history = run(count, fails_from(first))
        assert (found.first, found.last, found.found) == (first, first, True)
        # The first trial only shows the failure that is looked for.
        assert len(history) - 1 <= ceil(log2(count)) + 2


def test_thousand_versions_take_twelve_trials() -> None:
    found, history = run(1024, fails_from(700))
    assert found.first == found.last == 700
    assert len(history) - 1 == 12


def test_bad_end_is_tried_until_it_fails() -> None:
    passes = [VersionTrial(9, PASS)] * 3
    step = VersionSearch(10).next(passes)
    assert isinstance(step, VersionStep)
    assert (step.position, step.purpose) == (9, "baseline")


def test_good_end_that_fails_is_said() -> None:
    found, _ = run(20, fails_from(0))
    assert found.good_fails
    assert not found.found


def test_both_sides_of_the_answer_are_confirmed() -> None:
    found, history = run(64, fails_from(40))
    tried = [trial.position for trial in history]
    assert found.first == 40
    assert 39 in tried
    assert 40 in tried
    assert len(tried) - len(set(tried)) >= 2


def test_version_that_cannot_be_tried_makes_the_answer_an_interval() -> None:
    def outcome(position: int) -> Outcome:
        return Outcome.UNTESTABLE if position == 12 else fails_from(13)(position)

    found, history = run(32, outcome)
    assert (found.first, found.last, found.found) == (12, 13, True)
    assert found.left_out == (12,)
    # It gets a second chance before that is the last word, and no third.
    assert sum(trial.position == 12 for trial in history) == 2


def test_version_that_can_be_tried_the_second_time_leaves_no_interval() -> None:
    tries: dict[int, int] = {}

    def outcome(position: int) -> Outcome:
        tries[position] = tries.get(position, 0) + 1
        return Outcome.OTHER if position == 12 and tries[12] == 1 else fails_from(13)(position)

    found, _ = run(32, outcome)
    assert (found.first, found.last) == (13, 13)


def test_versions_that_cannot_be_tried_elsewhere_cost_nothing() -> None:
    def outcome(position: int) -> Outcome:
        return Outcome.UNTESTABLE if position % 3 == 1 else fails_from(48)(position)

    found, _ = run(64, outcome)
    assert found.last == 48
    assert found.first >= 47


def test_all_between_untestable_leaves_the_whole_interval() -> None:
    def outcome(position: int) -> Outcome:
        return Outcome.UNTESTABLE if 0 < position < 9 else fails_from(5)(position)

    found, _ = run(10, outcome)
    assert (found.first, found.last, found.found) == (1, 9, True)


def test_failure_of_a_version_before_the_change_is_counted() -> None:
    trials = [VersionTrial(9, FAIL)] * 8 + [VersionTrial(2, FAIL)] + [VersionTrial(4, PASS)] * 25
    trials += [VersionTrial(2, PASS)] * 25 + [VersionTrial(5, FAIL)] * 8
    found = VersionSearch(10).conclude(trials)
    assert (found.first, found.last) == (5, 5)
    assert found.good.failed == 1


def test_version_after_the_change_that_always_passes_is_named() -> None:
    trials = [VersionTrial(position, FAIL) for position in (5, 6, 8, 9) for _ in range(4)]
    trials += [VersionTrial(4, PASS)] * 4 + [VersionTrial(7, PASS)] * 6
    found = VersionSearch(10).conclude(trials)
    assert found.unlike == (7,)


def test_dear_version_is_passed_over_for_a_cheap_one_nearby() -> None:
    history = [VersionTrial(63, FAIL)]
    costs = np.ones(64)
    alike = VersionSearch(64).next(history, costs)
    assert isinstance(alike, VersionStep)
    costs[alike.position] = 10.0
    step = VersionSearch(64).next(history, costs)
    assert isinstance(step, VersionStep)
    assert step.position != alike.position
    assert abs(step.position - alike.position) <= 2


def test_more_confidence_takes_more_trials() -> None:
    lengths = [
        sum(len(run(64, at_rate(20, 0.5, seed), confidence)[1]) for seed in range(10))
        for confidence in (0.8, 0.99)
    ]
    assert lengths[0] < lengths[1]


def test_intermittent_fault_is_found_most_of_the_time() -> None:
    right = 0
    for seed in range(40):
        first = 1 + seed * 3
        found, _ = run(128, at_rate(first, 0.3, seed))
        right += found.found and found.first == found.last == first
    assert right >= 34


def test_search_of_thousand_versions_is_bounded_where_the_fault_is_rare() -> None:
    found, history = run(1024, at_rate(300, 0.5, 5), most=200)
    assert len(history) < 200
    assert found.found


def test_one_version_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than two"):
        VersionSearch(1)
    with pytest.raises(ValueError, match="two versions"):
        change_posterior(np.array([1]), np.array([0]))


OUTCOMES = st.sampled_from(list(Outcome))


@given(st.data())
def test_any_history_gives_a_step_or_an_end_that_makes_sense(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 12))
    trials = st.builds(VersionTrial, st.integers(0, count - 1), OUTCOMES)
    history = data.draw(st.lists(trials, max_size=25))
    search = VersionSearch(count, data.draw(st.sampled_from([0.5, 0.9, 0.99])))
    step = search.next(history)
    if isinstance(step, VersionStep):
        assert 0 <= step.position < count
        assert 0 <= step.failing <= 1
        assert step == search.next(history)
    else:
        assert 0 <= step.first <= step.last < count
        assert 0 < step.probability <= 1
    assert search.expected_remaining(history) >= 0


@given(st.data())
def test_probabilities_sum_to_one_and_information_is_no_more_than_a_bit(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 40))
    counts = st.lists(st.integers(0, 200), min_size=count, max_size=count).map(np.array)
    posterior = change_posterior(data.draw(counts), data.draw(counts))
    assert posterior.weight.sum() == pytest.approx(1.0)
    assert ((posterior.information() >= 0) & (posterior.information() <= 1 + 1e-9)).all()
    assert ((posterior.failing() >= 0) & (posterior.failing() <= 1)).all()


@given(st.integers(2, 60), st.data())
def test_search_ends_whatever_cannot_be_tried(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, count - 1))
    broken = data.draw(st.sets(st.integers(1, count - 2) if count > 2 else st.nothing()))

    def outcome(position: int) -> Outcome:
        return Outcome.OTHER if position in broken else fails_from(first)(position)

    found, history = run(count, outcome)
    assert found.first <= first <= found.last
    assert all(position in broken for position in range(found.first, found.last))
    assert len(history) <= 3 * len(broken) + ceil(log2(count)) + 6
