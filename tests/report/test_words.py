"""The shared sentences and the rates behind them."""

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.cases import incident, isolated

from culpa.model import Count, Finding, Level, Member
from culpa.report import words
from culpa.search.exposure import excluded_rate, rate_interval


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.24, "0.2 s"),
        (9.97, "10 s"),
        (59.6, "60 s"),
        (120, "2 min"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 00 min"),
        (3930, "1 h 05 min"),
        (nan, "unknown"),
        (inf, "unknown"),
        (-1, "unknown"),
    ],
)
def test_duration_is_said_as_a_person_says_it(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.9999, "over 99.9%"),
        (0.0002, "under 0.1%"),
        (0.9791, "97.9%"),
        (nan, "unknown"),
    ],
)
def test_share_rounds_to_certainty_only_if_it_is_certain(share: float, text: str) -> None:
    assert words.percent(share) == text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("lines 17 and 18 are consequences", "Lines 17 and 18 are consequences."),
        ("n_batch is smaller", "n_batch is smaller."),
        ("Said already.", "Said already."),
    ],
)
def test_sentence_begins_with_a_capital_unless_it_begins_with_a_name(text: str, whole: str) -> None:
    assert words.sentence(text) == whole


def test_posterior_of_one_is_never_printed_as_certainty() -> None:
    assert words.probability(1.0) == "over 99.9%"


@pytest.mark.parametrize(
    ("level", "verb"),
    [
        (Level.OBSERVED, "was seen with"),
        (Level.CONTRAST, "depends on"),
        (Level.ISOLATED, "needs"),
        (Level.LOCATED, "needs"),
    ],
)
def test_claim_is_no_stronger_than_its_level(level: Level, verb: str) -> None:
    finding = Finding((Member("a", "1", "0"),), level, 0.9, Count(1, 1), ())
    assert f"The failure {verb} a=1 ({level.value}, probability 90%)" in words.claim(finding)


def test_passes_of_an_intermittent_failure_are_weighed_against_luck() -> None:
    text = " ".join(words.mitigation_sentences(incident()))
    assert "at the rate of the baseline (2 of 3) so many passes come by chance with probability 33.3%" in text


def test_intermittent_baseline_gets_its_interval() -> None:
    experiment = replace(isolated(), baseline=Count(2, 5))
    assert "a rate between 11.8% and 76.9% agrees with that" in words.baseline_sentence(experiment)


@given(st.integers(1, 10_000))
def test_excluded_rate_solves_its_equation(passes: int) -> None:
    assert (1 - excluded_rate(passes)) ** passes == pytest.approx(0.05)


def test_forty_passes_exclude_what_the_tables_say() -> None:
    assert excluded_rate(40) == pytest.approx(0.0722, abs=1e-4)
    assert excluded_rate(0) == 1.0


@given(st.integers(0, 50), st.integers(0, 50))
def test_interval_holds_the_observed_rate(failed: int, passed: int) -> None:
    low, high = rate_interval(Count(failed, failed + passed))
    assert 0.0 <= low <= high <= 1.0
    if failed + passed:
        assert low <= failed / (failed + passed) <= high
