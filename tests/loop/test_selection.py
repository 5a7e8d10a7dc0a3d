"""The user's choice of factors and arms."""

import pytest

from culpa.engines import Reading
from culpa.model import Factor, LeftOut
from culpa.selection import MOST_LAUNCH_FACTORS, BadSelection, most_of, parse_arm, parse_arms, select

READING = Reading(
    (
        Factor("execution", "graphs", ("eager", "compiled")),
        Factor("batch", "64", ("256",), numeric=True),
        Factor("cache", "on", ("off",)),
        Factor("stream", "on", ("off",)),
        Factor("split", "23,23,18", ("default", "24,24,16")),
    ),
    (LeftOut("cuda_graphs", "needs 1 GPU, this machine has none"),),
)


def same(name: str) -> str | None:
    return {"enforce_eager": "execution"}.get(name)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("execution", {"execution": "eager"}),
        ("enforce_eager", {"execution": "eager"}),
        ("compiled", {"execution": "compiled"}),
        ("batch=100", {"batch": "100"}),
        ("cache=off,eager", {"cache": "off", "execution": "eager"}),
        ("execution=graphs", {"execution": "graphs"}),
    ],
)
def test_arm_is_read(text: str, levels: dict[str, str]) -> None:
    arm = parse_arm(text, READING, same)
    assert dict(arm.levels) == levels
    assert arm.name == text


@pytest.mark.parametrize(
    ("text", "name", "levels"),
    [
        ("slow: eager", "slow", {"execution": "eager"}),
        ("split=24,24,16", "split=24,24,16", {"split": "24,24,16"}),
        ("even: split=24,24,16,eager", "even", {"split": "24,24,16", "execution": "eager"}),
        ("cache=off, split=default", "cache=off, split=default", {"cache": "off", "split": "default"}),
    ],
)
def test_arm_may_have_a_name_and_levels_with_commas(text: str, name: str, levels: dict[str, str]) -> None:
    arm = parse_arm(text, READING, same)
    assert arm.name == name
    assert dict(arm.levels) == levels


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("off", "cache=off or stream=off"),
        ("cuda_graphs", "needs 1 GPU"),
        ("excution", "did you mean execution"),
        ("cache=maybe", "no level 'maybe'"),
        ("batch=many", "no level 'many'"),
    ],
)
def test_arm_that_can_not_be_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(BadSelection, match=told):
        parse_arm(text, READING, same)


def test_skipped_factor_is_left_out_with_that_reason() -> None:
    chosen = select(READING, (), ("cache",))
    assert [factor.name for factor in chosen.factors] == ["execution", "batch", "stream", "split"]
    assert LeftOut("cache", "left out on request (--skip)") in chosen.left_out


def test_only_named_factors_are_varied() -> None:
    assert [factor.name for factor in select(READING, ("cache",), ()).factors] == ["cache"]


def test_likeliest_factors_stay_where_there_are_too_many() -> None:
    many = tuple(Factor(f"f{n:02d}", "on", ("off",), prior=0.01 * (n + 1)) for n in range(40))
    chosen = select(Reading(many), (), ())
    assert [factor.name for factor in chosen.factors] == [
        f"f{n:02d}" for n in range(40 - MOST_LAUNCH_FACTORS, 40)
    ]
    assert len(chosen.left_out) == 40 - MOST_LAUNCH_FACTORS


def test_named_factor_stays_however_unlikely() -> None:
    many = tuple(Factor(f"f{n:02d}", "on", ("off",), prior=0.01 * (n + 1)) for n in range(30))
    names = tuple(factor.name for factor in many)
    assert len(select(Reading(many), names, ()).factors) == 30


def test_more_named_factors_than_can_be_varied_are_refused() -> None:
    many = tuple(Factor(f"f{n:02d}", "on", ("off",)) for n in range(40))
    with pytest.raises(BadSelection, match="more than 32"):
        select(Reading(many), tuple(factor.name for factor in many), ())


def test_most_of_keeps_the_order() -> None:
    factors = (
        Factor("a", "1", ("0",), prior=0.1),
        Factor("b", "1", ("0",)),
        Factor("c", "1", ("0",), prior=0.3),
    )
    assert [factor.name for factor in most_of(factors, 2)] == ["a", "c"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("a: eager", "a: cache=off"), "another arm has the name a already"),
        (("baseline: eager",), "is the name of the launch as it is"),
        (("eager,execution=compiled",), "can't be eager and compiled at once"),
    ],
)
def test_arms_that_can_not_be_told_apart_are_refused(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(BadSelection, match=told):
        parse_arms(texts, READING, same)


def test_an_arm_that_is_named_twice_is_run_once() -> None:
    assert len(parse_arms(("eager", "eager", "compiled"), READING, same)) == 2
