"""Every kind of violation is explained, with candidates that exist and on one side only."""

import pytest

import culpa_guard
from culpa.guard.kinds import UNKNOWN, explain, explanations, parse

HYPOTHESIS = '[[hypothesis]]\nid = "H1"\ntext = "something is wrong"\nsource = "https://example.org/1"\n'
KIND = (
    '[[kind]]\nname = "bad"\nmeaning = "it is bad, and so on"\nsource = "https://example.org/2"\n'
    'supports = ["H1"]\nrules_out = []\n'
)


def test_the_guards_own_kinds_are_all_explained_and_no_others() -> None:
    assert set(explanations()) == set(culpa_guard.KINDS)


def test_a_kind_speaks_for_something() -> None:
    assert all(one.supports for one in explanations().values())


def test_every_hypothesis_is_told_apart_by_some_kind() -> None:
    told = {h.id for one in explanations().values() for h in (*one.supports, *one.rules_out)}
    assert told == {f"H{number}" for number in range(1, 12)}


def test_a_kind_that_is_not_in_the_table_says_so() -> None:
    assert explain("brand_new").meaning == UNKNOWN
    assert explain("brand_new").supports == ()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (HYPOTHESIS + KIND.replace('"H1"', '"H9"'), "kind bad: unknown hypothesis H9"),
        (HYPOTHESIS + KIND.replace("rules_out = []", 'rules_out = ["H1"]'), "H1 is supported and ruled out"),
        (HYPOTHESIS + KIND + KIND, "kind bad is given twice"),
        (HYPOTHESIS + KIND.replace("https://example.org/2", "nowhere"), "source"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(table: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(table)
