"""Whether a set that was shrunk still fails as often as the launch did."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact
from tests.search.simulated import flat

from culpa.model import Count, Observation, Outcome
from culpa.search.feasible import Feasible
from culpa.search.rates import RateHeld, rate_held
from culpa.search.situation import Cause, Situation
from culpa.search.space import Space


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_the_chance_is_that_of_fishers_exact_test(failed: int, passed: int, alone: int, kept: int) -> None:
    held = RateHeld(Count(failed, failed + passed), Count(alone, alone + kept))
    expected = fisher_exact(np.array([[alone, kept], [failed, passed]]), alternative="less").pvalue
    assert held.chance == pytest.approx(expected)


def test_a_set_that_fails_ten_times_less_often_is_said_to() -> None:
    sentence = RateHeld(Count(18, 20), Count(2, 30)).sentence()
    assert "about 14 times less often alone" in sentence
    assert "a part of what fails there" in sentence
    assert "2 of 30 times (2% to 21%)" in sentence


def test_counts_that_chance_explains_are_no_fall() -> None:
    held = RateHeld(Count(3, 4), Count(2, 5))
    assert not held.fell
    assert held.sentence().endswith("its rate is held, as far as these trials tell")


def test_the_launchs_side_is_what_lies_near_the_users_launch() -> None:
    space = Space(flat(6))
    trials = [(0b111111, Outcome.FAIL), (0b111101, Outcome.PASS), (0b111011, Outcome.FAIL), (1, Outcome.FAIL)]
    history = [Observation(space.configuration(mask), outcome) for mask, outcome in trials]
    situation = Situation(space, Feasible(space, lambda _: None), history)
    held = rate_held(situation, Cause(1, 0, 0.97))
    assert held == RateHeld(Count(2, 3), Count(1, 1))
