"""A launch in parts, and without some of them."""

import pytest

from culpa.engines.arguments import Grammar
from culpa.minimize.launches import free_to_go, keys_of, options_of, without
from culpa.model import Launch

GRAMMAR = Grammar(valued=frozenset({"--seqs", "--cc", "--sizes"}))


def launch(*words: str, **variables: str) -> Launch:
    return Launch(("engine", "serve", *words), tuple(variables.items()))


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--eager", "--seqs", "4"], ["--eager", "--seqs 4"]),
        (["--seqs=4", "-x"], ["--seqs=4", "-x"]),
        (["MODEL", "--eager"], ["--eager"]),
        (["--model", "m", "--eager"], ["--eager"]),
        (["--sizes", "1", "2", "4", "--eager"], ["--sizes 1 2 4", "--eager"]),
        (["--bias", "-1", "--eager"], ["--bias -1", "--eager"]),
        (["--seqs", "--4"], ["--seqs --4"]),
        (["--eager", "--", "--not-a-flag"], ["--eager"]),
    ],
)
def test_each_option_is_a_part_with_its_values(words: list[str], parts: list[str]) -> None:
    assert [part.text for part in options_of(launch(*words), 2, GRAMMAR)] == parts


def test_variables_are_parts_too() -> None:
    one = launch("--eager", A="1", B="2")
    parts = options_of(one, 2, GRAMMAR)
    assert [part.text for part in parts] == ["--eager", "A=1", "B=2"]
    assert without(one, parts[:2]) == launch(B="2")


def test_all_parts_together_leave_the_program_and_the_model() -> None:
    one = launch("--model", "m", "--eager", "--seqs", "4", A="1")
    assert without(one, options_of(one, 2, GRAMMAR)) == launch("--model", "m")


@pytest.mark.parametrize("glued", [True, False])
def test_keys_of_a_json_value_can_go_one_by_one(glued: bool) -> None:
    value = '{"mode": "FULL", "sizes": [1, 2]}'
    one = launch(f"--cc={value}") if glued else launch("--cc", value)
    parts = keys_of(one, 2, GRAMMAR)
    assert [part.key for part in parts] == ["mode", "sizes"]
    left = without(one, parts[:1]).argv[-1]
    assert left.removeprefix("--cc=") == '{"sizes": [1, 2]}'


def test_a_json_value_of_one_key_is_left_to_its_option() -> None:
    assert keys_of(launch("--cc", '{"mode": "FULL"}'), 2, GRAMMAR) == ()


def test_a_part_that_carries_a_member_is_not_free_to_go() -> None:
    one = launch("--eager", "--seqs", "4")

    def levels(some: Launch) -> dict[str, str]:
        return {"execution": "eager" if "--eager" in some.argv else "graphs", "seqs": "unread"}

    parts = options_of(one, 2, GRAMMAR)
    assert [part.text for part in free_to_go(one, parts, levels, ["execution"])] == ["--seqs 4"]
