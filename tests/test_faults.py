"""The little language of faults that simulated and fake engines understand."""

import pytest
from tests.faults import BadExpression, parse_fault

LEVELS = {"eager": "on", "pp": "3", "n_batch": "2", "n_parallel": "4", "dtype": "fp8"}
SUSPECTS = {"eager": "on", "pp": "3", "dtype": "fp8"}


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("eager", True),
        ("!eager", False),
        ("eager && pp>1", True),
        ("eager && pp>3", False),
        ("pp>3 || dtype", True),
        ("pp>3 || dtype==auto", False),
        ("dtype!=auto", True),
        ("n_batch < n_parallel", True),
        ("n_batch >= n_parallel", False),
        ("!(eager && pp==3)", False),
        ("eager || pp>9 && dtype==auto", True),
        ("pp==03", True),
        ("1==2", False),
    ],
)
def test_expressions_tell_which_levels_fail(text: str, fails: bool) -> None:
    assert parse_fault(text, SUSPECTS)(LEVELS) is fails


def test_a_name_alone_needs_its_suspect_level() -> None:
    assert not parse_fault("pp", SUSPECTS)({"pp": "1"})


def test_without_suspect_levels_a_name_alone_means_anything_that_is_on() -> None:
    assert parse_fault("stream")({"stream": "yes"})
    assert not parse_fault("stream")({"stream": "off"})
    assert not parse_fault("stream")({})


@pytest.mark.parametrize("text", ["", "eager &&", "(eager", "eager pp", "&& eager", "eager < ", "a ; b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(BadExpression):
        parse_fault(text)


def test_order_comparisons_need_numbers() -> None:
    with pytest.raises(BadExpression, match="needs numbers"):
        parse_fault("dtype > 3")({"dtype": "fp8"})
