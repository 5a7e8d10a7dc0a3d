"""Levels read from launches and written into them, by table and by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.adapters import adapter, launch

from culpa.engines import BadLaunch
from culpa.model import Configuration, Launch

TABLE = """
[[factor]]
name = "batch"
flag = "-b"
flag_aliases = ["--batch-size"]
numeric = true
env = "BATCH"
default = "2048"
safe = ["2048"]
[[factor]]
name = "fa"
flag = "-fa"
bare = "on"
boolean = true
default = "auto"
safe = ["off"]
[[factor]]
name = "cache"
on = ["--cache", "-c"]
off = ["--no-cache"]
env = "CACHE"
default = "on"
safe = ["off"]
[[factor]]
name = "full"
on = ["--full"]
safe = ["off"]
[[factor]]
name = "warmup"
off = ["--no-warmup"]
safe = ["on"]
[[factor]]
name = "blocking"
env = "BLOCKING"
boolean = true
absent = "off"
safe = ["on"]
[[factor]]
name = "mode"
json = { flag = "--config", key = "graphs.mode" }
safe = ["NONE"]
[[factor]]
name = "fuse"
json = { flag = "--config", key = "fuse" }
boolean = true
safe = ["off"]
[[factor]]
name = "execution"
safe = ["eager"]
[factor.levels]
eager = ["--eager"]
compiled = ["--compile", "full"]
graphs = []
slow = { argv = ["--eager"], env = { S = "1" } }
[[factor]]
name = "spec"
flag = "--spec"
absent = "off"
values = { off = "none" }
safe = ["off"]
"""
ADAPTER = adapter(TABLE)

READ: list[tuple[str, dict[str, str | None], str, str]] = [
    ("e", {}, "batch", "2048"),
    ("e -b 2", {}, "batch", "2"),
    ("e --batch-size=2", {}, "batch", "2"),
    ("e --batch-size 02", {}, "batch", "2"),
    ("e -b 2 -b 4", {}, "batch", "4"),
    ("e -b 2k", {}, "batch", "2000"),
    ("e -b 2K", {}, "batch", "2048"),
    ("e -b 1.5k", {}, "batch", "1500"),
    ("e -b 1.0001k", {}, "batch", "1.0001k"),
    ("e", {"BATCH": "7"}, "batch", "7"),
    ("e -b 3", {"BATCH": "7"}, "batch", "3"),
    ("e -- -b 3", {}, "batch", "2048"),
    ("e -b", {}, "batch", "2048"),
    ("e -fa", {}, "fa", "on"),
    ("e -fa -b 2", {}, "fa", "on"),
    ("e -fa 0", {}, "fa", "off"),
    ("e -fa -1", {}, "fa", "-1"),
    ("e -fa AUTO", {}, "fa", "auto"),
    ("e --no-cache", {}, "cache", "off"),
    ("e --no-cache -c", {}, "cache", "on"),
    ("e", {"CACHE": "False"}, "cache", "off"),
    ("e --full", {}, "full", "on"),
    ("e", {}, "full", "off"),
    ("e", {}, "warmup", "on"),
    ("e", {"BLOCKING": "1"}, "blocking", "on"),
    ("e", {"BLOCKING": None}, "blocking", "off"),
    ('e --config {"graphs":{"mode":"FULL"}}', {}, "mode", "FULL"),
    ("e --config.graphs.mode=FULL", {}, "mode", "FULL"),
    ("e --config.graphs.mode FULL", {}, "mode", "FULL"),
    ('e --config={"fuse":true}', {}, "fuse", "on"),
    ('e --config {"graphs":3}', {}, "mode", "default"),
    ("e --eager", {}, "execution", "eager"),
    ("e --eager", {"S": "1"}, "execution", "slow"),
    ("e --compile full", {}, "execution", "compiled"),
    ("e --compile=full", {}, "execution", "compiled"),
    ("e --compile half", {}, "execution", "custom"),
    ("e", {}, "execution", "graphs"),
    ("e --spec none", {}, "spec", "off"),
    ("e --spec ngram", {}, "spec", "ngram"),
]


@pytest.mark.parametrize(("line", "env", "name", "level"), READ)
def test_a_level_is_read(line: str, env: dict[str, str | None], name: str, level: str) -> None:
    assert ADAPTER.levels(launch(line, **env))[name] == level


WRITE = [
    ("e -x 1", {}, {"batch": "2"}, "e -x 1 -b 2", {}),
    ("e -b 2 -x", {}, {"batch": "4"}, "e -b 4 -x", {}),
    ("e --batch-size=2 -x", {}, {"batch": "4"}, "e --batch-size=4 -x", {}),
    ("e -b 2 -b 4", {}, {"batch": "2048"}, "e -b 2 -b 2048", {}),
    ("e", {"BATCH": "7"}, {"batch": "8"}, "e", {"BATCH": "8"}),
    ("e -x -- rest", {}, {"batch": "8"}, "e -x -b 8 -- rest", {}),
    ("e --no-cache -x", {}, {"cache": "on"}, "e --cache -x", {}),
    ("e", {"CACHE": "0"}, {"cache": "on"}, "e", {"CACHE": "1"}),
    ("e --full -x --full", {}, {"full": "off"}, "e -x", {}),
    ("e -x", {}, {"full": "on"}, "e -x --full", {}),
    ("e --no-warmup", {}, {"warmup": "on"}, "e", {}),
    ("e", {"BLOCKING": "1"}, {"blocking": "off"}, "e", {}),
    ("e", {}, {"blocking": "on"}, "e", {"BLOCKING": "1"}),
    ("e -fa", {}, {"fa": "off"}, "e -fa false", {}),
    ("e", {}, {"mode": "NONE"}, 'e --config {"graphs":{"mode":"NONE"}}', {}),
    ('e --config {"graphs":{"mode":"FULL"}} -x', {}, {"mode": "default"}, "e -x", {}),
    ('e --config {"graphs":{"mode":"FULL"},"a":1}', {}, {"mode": "default"}, 'e --config {"a":1}', {}),
    ("e --config.graphs.mode=FULL", {}, {"mode": "NONE"}, "e --config.graphs.mode=NONE", {}),
    ("e --config.graphs.mode FULL -x", {}, {"mode": "default"}, "e -x", {}),
    ('e --config={"fuse":true}', {}, {"fuse": "off"}, 'e --config={"fuse":false}', {}),
    ("e --eager -x", {}, {"execution": "compiled"}, "e --compile full -x", {}),
    ("e -x --compile half", {}, {"execution": "graphs"}, "e -x", {}),
    ("e --eager", {"S": "1"}, {"execution": "eager"}, "e --eager", {}),
    ("e -x", {}, {"execution": "slow"}, "e -x --eager", {"S": "1"}),
    ("e --spec ngram -x --spec y", {}, {"spec": "off"}, "e -x", {}),
    ("e -x", {}, {"unknown": "1"}, "e -x", {}),
]


@pytest.mark.parametrize(("line", "env", "levels", "expected", "expected_env"), WRITE)
def test_a_level_is_written_where_it_stands(
    line: str, env: dict[str, str], levels: dict[str, str], expected: str, expected_env: dict[str, str]
) -> None:
    assert ADAPTER.apply(launch(line, **env), Configuration.of(levels)) == launch(expected, **expected_env)


def test_an_inherited_variable_is_read_and_marked_absent_when_it_must_go() -> None:
    inheriting = adapter(TABLE, {"BLOCKING": "1"})
    plain = launch("e")
    assert inheriting.levels(plain)["blocking"] == "on"
    changed = inheriting.apply(plain, Configuration.of({"blocking": "off"}))
    assert changed.env == (("BLOCKING", None),)
    assert inheriting.levels(changed)["blocking"] == "off"


@pytest.mark.parametrize(("value", "message"), [("{", "not valid JSON"), ("[1]", "must be a JSON object")])
def test_a_json_flag_that_holds_no_object_is_refused(value: str, message: str) -> None:
    with pytest.raises(BadLaunch, match=message):
        ADAPTER.levels(Launch(("e", "--config", value)))


def test_words_in_front_of_the_program_are_never_edited() -> None:
    wrapped = launch("taskset -b 3 e -b 2")
    assert ADAPTER.apply(wrapped, Configuration.of({"batch": "9"})).argv == (
        "taskset",
        "-b",
        "3",
        "e",
        "-b",
        "9",
    )


def test_values_that_look_like_flags_stay_values() -> None:
    guarded = adapter(TABLE + '\n[engine]\nvalued = ["--alias"]\n')
    assert guarded.levels(launch("e --alias --full"))["full"] == "off"


SAFE_LEVELS = {
    "batch": ["1", "2", "2048"],
    "fa": ["on", "off", "auto"],
    "cache": ["on", "off"],
    "full": ["on", "off"],
    "warmup": ["on", "off"],
    "blocking": ["on", "off"],
    "mode": ["NONE", "FULL", "default"],
    "fuse": ["on", "off", "default"],
    "execution": ["eager", "compiled", "graphs", "slow"],
    "spec": ["off", "ngram"],
}
PIECES = st.sampled_from(
    [
        ("-b", "2"), ("--batch-size", "4"), ("--batch-size=16",), ("-fa", "off"), ("-fa", "1"), ("-fa",), ("-c",),
        ("--no-cache",), ("--full",), ("--no-warmup",), ("--config", '{"graphs": {"mode": "FULL"}, "keep":  [1]}'),
        ("--config.graphs.mode=PIECEWISE",), ("--config", '{"fuse":false}'), ("--eager",), ("--compile", "full"),
        ("--compile", "half"), ("--spec", "ngram"), ("--spec=none",), ("--unknown", "7"), ("--other=",), ("-xyz",),
    ]
)  # fmt: skip
ENVS = st.dictionaries(
    st.sampled_from(["BATCH", "CACHE", "BLOCKING", "S", "OTHER"]), st.sampled_from(["0", "1"]), max_size=4
)
CHANGES = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(levels) for name, levels in SAFE_LEVELS.items()}
)


@st.composite
def launches(draw: st.DrawFn) -> Launch:
    pieces = draw(st.lists(PIECES, max_size=6))
    return Launch(("e", *(word for piece in pieces for word in piece)), tuple(draw(ENVS).items()))


UNKNOWN = {"--unknown", "7", "--other=", "-xyz"}


@given(launches(), CHANGES)
def test_what_is_applied_is_read_back(given_launch: Launch, changes: dict[str, str]) -> None:
    changed = ADAPTER.apply(given_launch, Configuration.of(changes))
    levels = ADAPTER.levels(changed)
    assert {name: levels[name] for name in changes} == changes


@given(launches(), CHANGES)
def test_factors_that_are_not_applied_keep_their_level(given_launch: Launch, changes: dict[str, str]) -> None:
    before, after = (
        ADAPTER.levels(given_launch),
        ADAPTER.levels(ADAPTER.apply(given_launch, Configuration.of(changes))),
    )
    assert {k: v for k, v in after.items() if k not in changes} == {
        k: v for k, v in before.items() if k not in changes
    }


@given(launches())
def test_the_suspect_levels_are_the_launch_itself(given_launch: Launch) -> None:
    levels = Configuration.of(ADAPTER.levels(given_launch))
    assert ADAPTER.apply(given_launch, levels) == given_launch


@given(launches(), CHANGES)
def test_unknown_words_and_variables_stay(given_launch: Launch, changes: dict[str, str]) -> None:
    changed = ADAPTER.apply(given_launch, Configuration.of(changes))
    assert [w for w in changed.argv if w in UNKNOWN] == [w for w in given_launch.argv if w in UNKNOWN]
    assert changed.variable("OTHER") == given_launch.variable("OTHER")
    assert changed.argv[0] == "e"
