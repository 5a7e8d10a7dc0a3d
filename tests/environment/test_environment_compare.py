"""Two environments side by side, stored and read again."""

import json
from pathlib import Path

import pytest

from culpa.environment import BadEnvironment, compare, load_environment, read_stored, write_environment
from culpa.environment.compare import NO_SUCH_GPU, NOT_INSTALLED, NOT_SET
from culpa.model.environment import Environment, Fact

NAMES = ("a", "b")


def machine(**values: str | None) -> Environment:
    facts = {"python.version": "CPython 3.12.3", "gpu.count": "1", **values}
    return Environment(
        "this machine",
        tuple(Fact(key, value, reason="" if value else "refused") for key, value in facts.items()),
        (("pp", 3),),
        "2026-12-01T10:00:00+00:00",
    )


def log(**values: str) -> Environment:
    return Environment("log: x", tuple(Fact(key, value) for key, value in values.items()))


def test_what_matters_comes_first() -> None:
    left = machine(
        **{"python.executable": "/a", "engine.version": "0.28.0", "gpu.driver": "570", "setting.eager": "on"}
    )
    right = machine(
        **{"python.executable": "/b", "engine.version": "0.32.0", "gpu.driver": "580", "setting.eager": "off"}
    )
    found = compare(left, right, NAMES)
    order = [one.key for one in found.differences]
    assert order == ["engine.version", "setting.eager", "gpu.driver", "python.executable"]
    assert all(one.source.startswith("https://") for one in found.differences)


def test_the_same_is_no_difference() -> None:
    found = compare(machine(**{"engine.version": "1"}), machine(**{"engine.version": "1"}), NAMES)
    assert (found.differences, found.unreadable, found.same) == ((), (), 3)


@pytest.mark.parametrize(
    ("key", "missing"),
    [("package.triton", NOT_INSTALLED), ("variable.NCCL_DEBUG", NOT_SET), ("gpu.1.name", NO_SUCH_GPU)],
)
def test_what_a_machine_does_not_have_is_a_difference(key: str, missing: str) -> None:
    (found,) = compare(machine(**{key: "x"}), machine(), NAMES).differences
    assert (found.left, found.right) == ("x", missing)


def test_what_a_log_does_not_say_is_no_difference() -> None:
    found = compare(machine(**{"package.triton": "3.9.0"}), log(**{"engine.version": "0.32.0"}), NAMES)
    assert found.differences == ()
    assert {one.key for one in found.unreadable} >= {"package.triton", "engine.version"}


def test_what_can_not_be_read_on_one_side_is_no_difference() -> None:
    found = compare(machine(**{"gpu.0.ecc": None}), machine(**{"gpu.0.ecc": "on"}), NAMES)
    assert found.differences == ()
    assert [one.key for one in found.unreadable] == ["gpu.0.ecc"]


def test_a_log_that_names_nccl_without_its_wheel_is_compared_with_the_wheel() -> None:
    wheel, plain = {"package.nvidia-nccl-cu13": "2.28.9"}, {"package.nvidia-nccl": "2.28.9"}
    assert compare(machine(**wheel), log(**plain), NAMES).differences == ()
    older = compare(machine(**wheel), log(**{"package.nvidia-nccl": "2.27.5"}), NAMES)
    assert [one.key for one in older.differences] == ["package.nvidia-nccl"]


def test_a_stored_environment_is_read_as_it_was_written(tmp_path: Path) -> None:
    environment = machine(**{"engine.version": "0.32.0", "gpu.0.ecc": None})
    write_environment(environment, tmp_path)
    assert read_stored(tmp_path) == environment
    assert load_environment(tmp_path) == environment
    assert load_environment(tmp_path / "environment.json") == environment


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"schema": "culpa.environment/1"},
        {"schema": "culpa.environment/1", "origin": "x", "facts": [{"key": 1, "value": None}]},
        {"schema": "culpa.environment/1", "origin": "x", "facts": {}, "settings": []},
        [],
    ],
)
def test_a_file_that_is_none_is_told_in_one_line(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BadEnvironment) as caught:
        read_stored(path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_an_environment_is_read_by_its_engines_log(tmp_path: Path) -> None:
    trial = tmp_path / "trials" / "0001"
    trial.mkdir(parents=True)
    (trial / "engine.log").write_text("vLLM API server version 0.32.0\n")
    assert load_environment(tmp_path).get("engine.version") == "0.32.0"
    with pytest.raises(BadEnvironment, match="older culpa"):
        load_environment(trial)
