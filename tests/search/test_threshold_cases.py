"""Numeric factors: thresholds, comparisons, and what is neither."""

import pytest
from tests.search.simulated import flat, solve

from culpa.model import Factor


def test_a_comparison_of_two_numbers_is_told_from_two_thresholds() -> None:
    factors = [
        Factor("batch_size", "2", ("2048",), numeric=True),
        Factor("parallel", "4", ("1",), numeric=True),
        *flat(7),
    ]
    run = solve(factors, "batch_size < parallel")
    assert run.found == [{"batch_size", "parallel"}]
    assert run.conclusion.findings[0].conditions[0].startswith("batch_size < parallel: ")


def test_two_thresholds_that_meet_are_not_called_a_comparison() -> None:
    factors = [
        Factor("batch_size", "8", ("2048",), numeric=True),
        Factor("parallel", "64", ("1",), numeric=True),
        *flat(4),
    ]
    run = solve(factors, "batch_size<=63 && parallel>=9")
    conditions = run.conclusion.findings[0].conditions
    assert any("thresholds of each explain the trials as well" in sentence for sentence in conditions)
    assert any(sentence.startswith("batch_size: fails at 63") for sentence in conditions)


def test_an_exact_threshold_is_found_by_few_trials() -> None:
    factors = [Factor("seqs", "256", ("16",), numeric=True), *flat(5)]
    run = solve(factors, "seqs>=100 && f1")
    assert run.purposes().count("threshold") <= 8 + 3
    assert run.conclusion.findings[0].conditions[0].startswith("seqs: fails at 100 ")
    assert "passes at 99 " in run.conclusion.findings[0].conditions[0]


def test_a_threshold_beyond_the_budget_is_an_interval() -> None:
    factors = [Factor("tokens", "1000000", ("16",), numeric=True), *flat(3)]
    run = solve(factors, "tokens>=70001")
    assert 8 <= run.purposes().count("threshold") <= 8 + 3
    assert "where not all values were tried" in run.conclusion.findings[0].conditions[0]


@pytest.mark.parametrize(
    ("fault", "safe"),
    [
        ("seqs==64 && f1", ("1",)),
        ("seqs>=40 && seqs<=64 && f1", ("16",)),
        ("seqs==64 && f1", ("32", "256")),
        ("(seqs==64 || seqs==56 || seqs<=50 && seqs>=48) && f1", ("1",)),
    ],
)
def test_what_fails_in_the_middle_is_not_forced_into_a_threshold(fault: str, safe: tuple[str, ...]) -> None:
    factors = [Factor("seqs", "64", safe, numeric=True), *flat(4)]
    run = solve(factors, fault)
    assert run.found == [{"seqs", "f1"}]
    (sentence,) = [one for one in run.conclusion.findings[0].conditions if one.startswith("seqs: ")]
    assert sentence.startswith("seqs: no threshold: it fails at ")
    assert "64 (trial" in sentence


def test_a_threshold_is_tested_beyond_the_users_value_too() -> None:
    factors = [Factor("seqs", "64", ("1",), numeric=True), *flat(4)]
    run = solve(factors, "seqs>=40 && f1")
    values = {int(step.configuration["seqs"]) for step in run.proposals if step.purpose == "threshold"}
    assert 128 in values
    assert any(40 < value < 64 for value in values)
    assert run.conclusion.findings[0].conditions[0].startswith("seqs: fails at 40 ")


def test_no_value_below_the_minimum_is_tried() -> None:
    factors = [Factor("tokens", "64", ("0",), numeric=True, minimum=16), *flat(3)]
    run = solve(factors, "tokens>=20")
    values = {int(step.configuration["tokens"]) for step in run.proposals}
    assert not any(0 < value < 16 for value in values)


def test_thresholds_can_be_left_out() -> None:
    factors = [Factor("seqs", "256", ("16",), numeric=True), *flat(5)]
    assert "threshold" not in solve(factors, "seqs>=100", thresholds=False).purposes()
