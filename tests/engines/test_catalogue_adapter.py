"""What an adapter makes of its catalogue: factors, what is left out and why, effective levels, limits."""

import pytest
from tests.engines.adapters import NO_GPU, TWO_GPUS, adapter, launch

from culpa.host.machine import Machine
from culpa.model import Configuration, LeftOut

TABLE = """
[engine]
name = "toy"
[[factor]]
name = "pp"
aliases = ["stages"]
flag = "-pp"
numeric = true
default = "1"
safe = ["1", "2"]
meaning = "Stages."
prior = 0.2
effective = [ { pattern = 'pipeline_parallel_size=(\\d+)' }, { api = "/props", key = "sizes.0.pp" } ]
[[factor.along]]
flags = ["--partition"]
switches = ["--even"]
unset = ["PARTITION"]
levels = ["1"]
[[factor]]
name = "partition"
flag = "--partition"
absent = "even"
safe = ["even"]
requires = ["pp > 1"]
[[factor]]
name = "graphs"
on = ["--graphs"]
off = ["--no-graphs"]
default = "on"
safe = ["off"]
gpus = 1
effective = { pattern = "graphs are (?P<level>enabled|disabled)", map = { enabled = "on", disabled = "off" } }
[[factor]]
name = "blocking"
env = "BLOCKING"
boolean = true
absent = "off"
safe = ["on"]
instrument = true
[[factor]]
name = "ctx"
flag = "-c"
numeric = true
default = "4096"
safe = ["4096"]
multiple = 256
resolves = ["0"]
effective = { pattern = 'n_ctx = (\\d+)', first = true }
[[factor]]
name = "batch"
flag = "-b"
numeric = true
default = "2048"
safe = ["2048"]
capped_by = "ctx"
effective = { pattern = 'n_batch = (\\d+)' }
[[factor]]
name = "share"
flag = "--share"
numeric = true
decimals = 2
maximum = 100
default = "0.5"
safe = ["0.5"]
effective = { pattern = 'share (\\S+)' }
[[factor]]
name = "effort"
flag = "--effort"
order = ["low", "mid", "high"]
default = "low"
safe = ["low"]
[[factor]]
name = "backend"
flag = "--backend"
safe = ["triton"]
effective = { pattern = 'falling back to triton', level = "triton" }
[[fact]]
name = "engine_version"
effective = { pattern = 'version (\\S+)' }
[[fact]]
name = "parallel"
effective = { api = "/metrics", key = "toy:slots" }
[[conflict]]
when = ["pp > 1", "graphs == off"]
reason = "stages need graphs"
"""
TOY = adapter(TABLE)


def names(line: str, machine: Machine = NO_GPU) -> list[str]:
    return [factor.name for factor in TOY.read(launch(line), machine).factors]


def reasons(line: str) -> dict[str, str]:
    return {out.name: out.reason for out in TOY.read(launch(line), NO_GPU).left_out}


def test_a_factor_has_the_suspect_level_and_those_that_differ_from_it() -> None:
    factor = TOY.read(launch("sh --port 1 -pp 2"), NO_GPU).factors[0]
    assert (factor.name, factor.suspect, factor.safe) == ("pp", "2", ("1",))
    assert (factor.numeric, factor.prior, factor.meaning) == (True, 0.2, "Stages.")


def test_a_factor_at_its_only_safe_level_is_left_out() -> None:
    assert (
        LeftOut("ctx", "already at its safe level 4096") in TOY.read(launch("sh --port 1"), NO_GPU).left_out
    )


def test_a_factor_that_makes_no_sense_is_left_out_with_the_reason() -> None:
    said = reasons("sh --port 1 --partition 3,1")
    assert said["partition"] == "makes sense only with pp > 1 (here pp is 1)"
    assert said["graphs"] == "needs 1 GPU, this machine has none"


def test_a_gpu_brings_its_factors() -> None:
    assert "graphs" in names("sh --port 1", TWO_GPUS)
    assert "graphs" not in names("sh --port 1")


def test_an_instrument_is_marked() -> None:
    factors = {factor.name: factor for factor in TOY.read(launch("sh --port 1"), NO_GPU).factors}
    assert factors["blocking"].instrument


def test_a_number_whose_level_is_a_word_has_no_values_in_between() -> None:
    factors = {factor.name: factor for factor in TOY.read(launch("sh --port 1 -c x"), NO_GPU).factors}
    assert not factors["ctx"].numeric


def test_a_decimal_has_values_in_between_up_to_its_maximum() -> None:
    read = TOY.read(launch("sh --port 1 --share 0.90"), NO_GPU)
    (factor,) = [factor for factor in read.factors if factor.name == "share"]
    assert (factor.numeric, factor.steps("0.90"), factor.level(85), factor.ends) == (
        True,
        90,
        "0.85",
        (1, 100),
    )


def test_a_decimal_is_confirmed_however_the_engine_writes_it() -> None:
    asked = Configuration.of({"share": "0.85"})
    assert not TOY.mismatches(asked, {"share": "0.850"})
    assert TOY.mismatches(asked, {"share": "0.9"})


@pytest.mark.parametrize(("level", "ordered"), [("high", True), ("extreme", False)])
def test_named_levels_have_an_order_where_all_of_them_are_in_it(level: str, ordered: bool) -> None:
    factors = TOY.read(launch(f"sh --port 1 --effort {level}"), NO_GPU).factors
    assert {factor.name: factor.ordered for factor in factors}["effort"] is ordered


def test_changes_come_along_when_a_factor_leaves_its_level() -> None:
    given = launch("sh --port 1 -pp 2 --partition 3,1 --even -x", PARTITION="3,1")
    changed = TOY.apply(given, Configuration.of({"pp": "1"}))
    assert changed == launch("sh --port 1 -pp 1 -x")


def test_nothing_comes_along_for_another_level_or_for_the_suspect_one() -> None:
    given = launch("sh --port 1 -pp 2 --partition 3,1")
    assert "--partition" in TOY.apply(given, Configuration.of({"pp": "3"})).argv
    assert TOY.apply(given, Configuration.of({"pp": "2"})) == given


def test_levels_that_cannot_run_together_are_told_with_the_reason() -> None:
    assert TOY.can_run(Configuration.of({"pp": "2", "graphs": "off"})) == "stages need graphs"
    assert TOY.can_run(Configuration.of({"pp": "1", "graphs": "off"})) is None
    assert TOY.can_run(Configuration.of({"graphs": "off"})) is None


def test_an_inherited_variable_is_noted() -> None:
    inheriting = adapter(TABLE, {"BLOCKING": "1", "PATH": "/usr/bin:/bin"})
    assert inheriting.read(launch("sh --port 1"), NO_GPU).notes == (
        "BLOCKING=1 comes from the surrounding environment, not from the command",
    )


def test_names_and_aliases_are_one_factor() -> None:
    assert (TOY.canonical("stages"), TOY.canonical("pp"), TOY.canonical("px")) == ("pp", "pp", None)


LOG = [
    "version 1.2 with pipeline_parallel_size=2, x",
    "graphs are enabled",
    "n_ctx = 1024",
    "n_batch = 1024",
    "n_ctx = 512",
    "graphs are disabled",
    "backend x: falling back to triton",
]


def test_the_engine_is_taken_at_its_word() -> None:
    assert TOY.effective(LOG, {}) == {
        "engine_version": "1.2",
        "pp": "2",
        "graphs": "off",
        "ctx": "1024",
        "batch": "1024",
        "backend": "triton",
    }


def test_an_endpoint_wins_over_the_log() -> None:
    api = {"/props": {"sizes": [{"pp": 3}]}, "/metrics": '# TYPE x\ntoy:slots{a="b"} 4\n'}
    said = TOY.effective(LOG, api)
    assert (said["pp"], said["parallel"]) == ("3", "4")


def test_an_answer_of_another_shape_says_nothing() -> None:
    shapes: list[object] = [None, [], {"sizes": "x"}, {"sizes": []}, "text", 7]
    for answer in shapes:
        assert "pp" not in TOY.effective([], {"/props": answer})


MISMATCHES = [
    ({"pp": "2"}, {"pp": "1"}, "pp was to be 2, but the engine says that it is 1"),
    ({"pp": "2"}, {"pp": "2"}, None),
    ({"pp": "2"}, {}, None),
    ({"ctx": "1000"}, {"ctx": "1024"}, None),
    ({"ctx": "1000"}, {"ctx": "2048"}, "ctx was to be 1000"),
    ({"ctx": "0"}, {"ctx": "8192"}, None),
    ({"batch": "2048"}, {"batch": "1024", "ctx": "1024"}, None),
    ({"batch": "2048", "ctx": "1000"}, {"batch": "1000", "ctx": "1024"}, None),
    ({"batch": "2048"}, {"batch": "512", "ctx": "1024"}, "batch was to be 2048"),
    ({"batch": "512"}, {"batch": "1024", "ctx": "1024"}, "batch was to be 512"),
    ({"backend": "default"}, {"backend": "triton"}, None),
    ({"backend": "flash"}, {"backend": "triton"}, "backend was to be flash"),
]


@pytest.mark.parametrize(("asked", "said", "sentence"), MISMATCHES)
def test_an_arm_that_is_not_what_it_claims_is_told(
    asked: dict[str, str], said: dict[str, str], sentence: str | None
) -> None:
    told = TOY.mismatches(Configuration.of(asked), said)
    if sentence is None:
        assert told == ()
    else:
        assert len(told) == 1
        assert told[0].startswith(sentence)


def test_limits_come_from_facts_and_the_list_of_models() -> None:
    api = {"/v1/models": {"data": [{"id": "m", "max_model_len": 4096}]}}
    limits = TOY.limits(api, {"parallel": "4", "batch_tokens": "x"})
    assert (limits.model, limits.context_tokens, limits.parallel, limits.batch_tokens) == ("m", 4096, 4, None)


@pytest.mark.parametrize("answer", [None, {}, {"data": []}, {"data": ["x"]}, "html"])
def test_a_list_of_models_that_is_none_gives_no_limits(answer: object) -> None:
    limits = TOY.limits({"/v1/models": answer}, {})
    assert (limits.model, limits.context_tokens) == ("", None)
