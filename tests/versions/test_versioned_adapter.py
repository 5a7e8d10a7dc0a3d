"""The version as a factor: what is launched for it, and whether the engine agrees that it is that version."""

import sys
from pathlib import Path

import pytest

from culpa.engines import parse_command
from culpa.host import Machine, read_machine
from culpa.model import Configuration
from culpa.versions import VersionedAdapter, find_for, other_version
from culpa.versions.provider import Placeholder

WORDS = (sys.executable, "-m", "culpa_lab", "serve", "--max-num-seqs", "7", "--build", "{version}")
LAUNCH = parse_command(WORDS)


@pytest.fixture
def machine() -> Machine:
    return read_machine()


@pytest.fixture
def adapter(machine: Machine) -> VersionedAdapter:
    one = VersionedAdapter(find_for(None), LAUNCH, Placeholder(), "64", ("1", "32"))
    one.read(LAUNCH, machine)
    return one


def test_version_is_the_first_factor_and_what_it_stands_for_is_none(
    adapter: VersionedAdapter, machine: Machine
) -> None:
    reading = adapter.read(LAUNCH, machine)
    first = reading.factors[0]
    assert (first.name, first.suspect, first.safe) == ("engine_version", "64", ("1", "32"))
    assert "engine_build" not in [factor.name for factor in reading.factors]
    assert "engine_build" in [left.name for left in reading.left_out]
    assert "max_num_seqs" in [factor.name for factor in reading.factors]


def test_launch_of_another_version_changes_nothing_else(adapter: VersionedAdapter) -> None:
    suspects = Configuration.of({"engine_version": "32", "max_num_seqs": "7"})
    assert adapter.apply(LAUNCH, suspects).argv == (*WORDS[:-1], "32")


def test_other_levels_are_applied_beside_the_version(adapter: VersionedAdapter, tmp_path: Path) -> None:
    levels = Configuration.of({"engine_version": "1", "max_num_seqs": "1"})
    launch = adapter.apply(LAUNCH, levels)
    assert launch.argv[launch.argv.index("--max-num-seqs") + 1] == "1"
    assert launch.argv[launch.argv.index("--build") + 1] == "1"
    assert "8123" in adapter.prepare(launch, 8123, tmp_path).launch.argv


def test_arm_whose_version_did_not_run_is_told(adapter: VersionedAdapter) -> None:
    levels = Configuration.of({"engine_version": "32"})
    assert adapter.mismatches(levels, {"engine_version": "0.32.0", "engine_build": "32"}) == ()
    wrong = adapter.mismatches(levels, {"engine_version": "0.64.0", "engine_build": "64"})
    assert wrong == ("engine_version was to be 32, but the engine says 0.64.0",)


@pytest.mark.parametrize(
    ("label", "said", "other"),
    [
        ("0.28.0", "0.28.0+cpu", None),
        ("0.28.0", "0.32.0", "0.32.0"),
        ("20260101", "nightly", None),
        ("nightly-a", "0.28.0", None),
        ("abcdef012345", "0.28.1.dev5+gabcdef0", None),
        ("abcdef012345", "0.28.1.dev5+g1234567", "0.28.1.dev5+g1234567"),
        ("abcdef012345", "0.28.0", None),
        ("0.28.0", "", None),
    ],
)
def test_versions_are_compared_where_they_can_be(label: str, said: str, other: str | None) -> None:
    assert other_version(label, {"engine_version": said}) == other


def test_engine_that_says_nothing_is_not_contradicted() -> None:
    assert other_version("1.0", {}) is None
