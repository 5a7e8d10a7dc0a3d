"""Factors files: what is understood, and how a mistake is told."""

from pathlib import Path

import pytest
from tests.engines.adapters import catalogue

from culpa.engines import BadFactors, closest
from culpa.engines.catalogue import embedded_catalogue, read_catalogue

FACTOR = '[[factor]]\nname = "f"\nsafe = ["1"]\n'

MISTAKES = [
    ("[[factor]", "test.toml: not valid TOML"),
    ('[[factor]]\nname = "f"\nflag = "-f"\n', 'factor "f", key safe: Field required'),
    (FACTOR, 'factor "f": needs exactly one of flag, on/off, json, levels, env'),
    (FACTOR + 'flag = "-f"\non = ["-g"]', 'factor "f": needs exactly one of'),
    (FACTOR + 'flag = "-f"\nprior = 2', 'factor "f", key prior: Input should be less than 1'),
    (FACTOR + 'flag = "-f"\nsave = ["2"]', 'factor "f", key save: Extra inputs are not permitted'),
    (FACTOR + 'flag = "-f"\nrequires = ["pp"]', "key requires.0: 'pp' is not of the form"),
    (FACTOR + 'flag = "-f"\ndefault = "2"\nabsent = "3"', "default and absent exclude each other"),
    (FACTOR + 'env = "F"\nbare = "1"', "flag_aliases and bare belong to flag"),
    (FACTOR + "levels = { a = [] }", "safe level '1' is not in levels"),
    (FACTOR + 'levels = { "1" = ["x"] }', "'x' is no flag"),
    (
        FACTOR + 'flag = "-f"\neffective = { pattern = "(" }',
        "key effective.0.pattern: not a regular expression",
    ),
    (FACTOR + 'flag = "-f"\neffective = { pattern = "a" }', "a pattern without a group needs level"),
    (FACTOR + 'flag = "-f"\neffective = { api = "/x" }', "api and key belong together"),
    ('[[factor]]\nname = "f"\nsafe = ["x"]\nflag = "-f"\nnumeric = true', "safe level 'x' is no integer"),
    ('[[factor]]\nname = "Bad Name"\nsafe = ["x"]\nflag = "-f"', "'Bad Name' must be lower-case"),
    ("[[factor]]\n", "factor number 1, key name: Field required"),
    (f'{FACTOR}flag = "-f"\n{FACTOR}flag = "-g"', "factor name 'f' is given twice"),
    ('[engine]\nport = { flag = "-p", env = "P" }', "key engine.port: needs exactly one of flag and env"),
    ('[engine]\nhealth = "health"', "key engine.health"),
    ('[[conflict]]\nreason = "r"\nwhen = []', "conflict number 1, key when"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadFactors) as raised:
        catalogue(text)
    assert message in str(raised.value)
    assert str(raised.value).startswith("test.toml: ")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFactors, match="does not exist"):
        read_catalogue(tmp_path / "none.toml")


def test_a_folder_is_no_factors_file(tmp_path: Path) -> None:
    with pytest.raises(BadFactors, match="can't be read"):
        read_catalogue(tmp_path)


def test_more_factors_replace_those_of_the_same_name_and_follow_the_rest() -> None:
    base = catalogue('[[factor]]\nname="a"\nflag="-a"\nsafe="1"\n[[factor]]\nname="b"\nflag="-b"\nsafe="1"')
    more = catalogue('[[factor]]\nname="c"\nflag="-c"\nsafe="1"\n[[factor]]\nname="a"\nflag="-A"\nsafe="1"')
    both = base.extended(more)
    assert [(factor.name, factor.flag) for factor in both.factors] == [("a", "-A"), ("b", "-b"), ("c", "-c")]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("prefix_cachin", "prefix_caching"), ("Flash-Attn", "flash_attn"), ("zzz", None)],
)
def test_a_typo_finds_the_near_name(typed: str, meant: str | None) -> None:
    assert closest(typed, ["prefix_caching", "flash_attn", "eager"]) == meant


def test_llamacpp_has_a_rich_and_explained_catalogue() -> None:
    factors = embedded_catalogue("llamacpp").factors
    assert len(factors) >= 16
    for factor in factors:
        assert factor.meaning.endswith("."), factor.name
        assert factor.source.startswith("https://github.com/"), factor.name
        assert factor.title, factor.name


@pytest.mark.parametrize("name", ["factors.toml", "sglang.toml"])
def test_the_example_files_are_valid(name: str) -> None:
    example = read_catalogue(Path(__file__).parents[2] / "examples" / name)
    assert example.names_engine
    assert example.factors
