"""Versions in their order, and what lies between two of them."""

import pytest

from culpa.model.bisection import Candidate
from culpa.versions import BadVersions
from culpa.versions.order import between, in_order, same_version

ROW = [Candidate(label) for label in ("0.9", "0.10", "0.11rc1", "0.11", "0.12")]


def test_version_numbers_are_ordered_as_numbers() -> None:
    assert in_order(["0.10.0", "0.9.2", "0.9.10", "nonsense"], pre=False) == ("0.9.2", "0.9.10", "0.10.0")


def test_pre_releases_are_left_out_unless_asked_for_or_an_end() -> None:
    labels = ["1.0", "1.1rc1", "1.1rc2", "1.1"]
    assert in_order(labels, pre=False) == ("1.0", "1.1")
    assert in_order(labels, pre=True) == ("1.0", "1.1rc1", "1.1rc2", "1.1")
    assert in_order(labels, pre=False, keep=("1.1rc2",)) == ("1.0", "1.1rc2", "1.1")


def test_row_goes_from_the_good_end_to_the_bad_end() -> None:
    row = between(ROW, "0.10", "0.12", "a list")
    assert row.labels == ("0.10", "0.11rc1", "0.11", "0.12")
    assert not row.turned


def test_good_end_that_is_newer_turns_the_row_round() -> None:
    row = between(ROW, "0.12", "0.9", "a list")
    assert row.labels[0] == "0.12"
    assert row.labels[-1] == "0.9"
    assert row.turned


@pytest.mark.parametrize(
    ("good", "bad", "told"),
    [
        ("0.8", "0.12", "--good 0.8: no such version in a list"),
        ("0.9", "0.13", "--bad 0.13: no such version in a list"),
        ("0.9", "0.9", "both 0.9"),
    ],
)
def test_end_that_is_not_there_is_told(good: str, bad: str, told: str) -> None:
    with pytest.raises(BadVersions, match=told):
        between(ROW, good, bad, "a list")


def test_commit_may_be_named_by_its_first_digits() -> None:
    commits = [Candidate(label) for label in ("a1b2c3d4e5f6", "a1b2ffffffff", "0123456789ab")]
    assert between(commits, "a1b2c3", "0123", "commits").labels == (
        "a1b2c3d4e5f6",
        "a1b2ffffffff",
        "0123456789ab",
    )
    with pytest.raises(BadVersions, match="several"):
        between(commits, "a1b2", "0123", "commits")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1.0", "1.0.0", True),
        ("0.28.0", "0.28.0+cpu", True),
        ("0.28.0", "0.28.1", False),
        ("0.28.0rc1", "0.28.0", False),
        ("nightly", "nightly", True),
        ("nightly", "1.0", False),
    ],
)
def test_one_version_in_two_spellings(one: str, other: str, same: bool) -> None:
    assert same_version(one, other) is same
