"""The guard of a process: settings, lines, modes, and what happens when a check itself fails."""

import ast
import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

import culpa_guard
from culpa_guard import KINDS, Guard, GuardViolation, Place, Settings, Violation, read_settings
from culpa_guard.install import write_plugin
from culpa_guard.settings import BadSetting, read_plants
from culpa_guard.sink import Sink

PACKAGE = Path(culpa_guard.__file__).parent
PLACE = Place("vllm", "0.32.0", "worker", stage=1, rank=1)


def lines(folder: Path) -> list[dict[str, object]]:
    (path,) = folder.glob("guard-*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def guard(folder: Path, mode: str = "log", every: int = 1) -> Guard:
    return Guard(Settings(mode, every, folder), PLACE)


def test_without_the_switch_there_are_no_settings() -> None:
    assert read_settings({}) is None
    assert read_settings({"CULPA_GUARD": " ", "CULPA_GUARD_OUT": "/x"}) is None


@pytest.mark.parametrize(
    ("switch", "mode", "every"), [("log", "log", 1), ("raise", "raise", 1), ("sample:16", "log", 16)]
)
def test_modes_are_read(switch: str, mode: str, every: int) -> None:
    settings = read_settings({"CULPA_GUARD": switch})
    assert settings is not None
    assert (settings.mode, settings.every, settings.text) == (mode, every, switch)


@pytest.mark.parametrize(
    "switch", ["on", "sample", "sample:0", "sample:-1", "sample:x", "raise:3", "sample:²"]
)
def test_a_mode_that_is_none_is_refused_by_name(switch: str) -> None:
    with pytest.raises(BadSetting, match="CULPA_GUARD"):
        read_settings({"CULPA_GUARD": switch})


def test_plants_have_a_name_and_options() -> None:
    first, second = read_plants("state_index:stage=1:after=1000,scribble")
    assert (first.fault, first.options) == ("state_index", {"stage": "1", "after": "1000"})
    assert (second.fault, second.options) == ("scribble", {})
    assert read_plants("") == ()
    with pytest.raises(BadSetting, match="after"):
        read_plants("state_index:after")


def test_violations_are_lines_with_place_and_step(tmp_path: Path) -> None:
    one = guard(tmp_path)
    one.next_step(1)
    one.run("states", lambda: [Violation("freed_state_read", layer="a\x1b[31m", found=3)])
    (found,) = [line for line in lines(tmp_path) if line["event"] == "violation"]
    assert (found["kind"], found["stage"], found["rank"], found["step"]) == ("freed_state_read", 1, 1, 1)
    assert found["layer"] == "a\x1b[31m"
    assert found["expected"] is None


def test_no_control_character_reaches_the_file(tmp_path: Path) -> None:
    guard(tmp_path).report([Violation("bind_mismatch", layer="\x1b[2J\u2028\n", detail="ö")])
    (path,) = tmp_path.glob("guard-*.jsonl")
    text = path.read_bytes()
    assert text.count(b"\n") == 1
    assert all(byte == 10 or 32 <= byte < 127 for byte in text)


def test_raise_mode_stops_at_the_first_violation_and_writes_it_first(tmp_path: Path) -> None:
    one = guard(tmp_path, "raise")
    with pytest.raises(GuardViolation, match="bind_mismatch"):
        one.run("bindings", lambda: [Violation("bind_mismatch"), Violation("bind_mismatch")])
    assert [line["event"] for line in lines(tmp_path)] == ["violation", "summary"]


def test_a_check_that_fails_is_recorded_and_switched_off(tmp_path: Path) -> None:
    one = guard(tmp_path, "raise")
    calls = []

    def broken() -> list[Violation]:
        calls.append(1)
        raise KeyError("layer")

    one.run("tables", broken)
    one.run("tables", broken)
    assert len(calls) == 1
    (line,) = lines(tmp_path)
    assert (line["event"], line["check"], line["error"]) == ("guard_error", "tables", "KeyError('layer')")


def test_a_left_out_check_is_said_at_the_start_and_never_runs(tmp_path: Path) -> None:
    one = guard(tmp_path)
    one.start(["tables", "pages"], [("pages", "CULPA_GUARD_PAGES is 0")])
    one.run("pages", lambda: [Violation("bind_mismatch")])
    one.finish()
    first, last = lines(tmp_path)
    assert first["checks"] == ["tables"]
    assert first["left_out"] == [{"check": "pages", "reason": "CULPA_GUARD_PAGES is 0"}]
    assert last["violations"] == 0


def test_a_process_in_which_nothing_is_checked_writes_no_summary(tmp_path: Path) -> None:
    code = (
        "from culpa_guard import Guard, Place, Settings; from pathlib import Path;"
        f"one = Guard(Settings('log', 1, Path({str(tmp_path)!r})), Place('vllm', '0', 'server')); one.start()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(PACKAGE.parent)})
    assert [line["event"] for line in lines(tmp_path)] == ["start"]


def test_sampling_looks_at_every_nth_step(tmp_path: Path) -> None:
    one = guard(tmp_path, every=3)
    looked = []
    for _ in range(7):
        one.next_step(0)
        looked.append(one.looks)
    assert looked == [False, False, True, False, False, True, False]


def test_the_summary_counts_what_was_checked(tmp_path: Path) -> None:
    one = guard(tmp_path)
    one.next_step(2)
    one.run("tables", lambda: None, count=5)
    one.run("tables", list, count=6)
    one.finish()
    last = lines(tmp_path)[-1]
    assert (last["steps"], last["requests"], last["checked"]) == (1, 2, {"tables": 11})


def test_a_flood_of_one_kind_is_counted_but_not_written_in_full(tmp_path: Path) -> None:
    one = guard(tmp_path)
    one.report([Violation("bind_mismatch")] * 500)
    one.finish()
    found = lines(tmp_path)
    assert len([line for line in found if line["event"] == "violation"]) == 100
    assert found[-1]["violations"] == 500


def test_a_sink_that_cannot_write_ends_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="ascii")
    Sink(blocked / "below").write("start")


def test_kinds_are_unique() -> None:
    assert len(set(KINDS)) == len(KINDS)


def test_the_plugin_folder_is_found_by_its_entry_point(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugin")
    folder = write_plugin(tmp_path / "plugin")
    (found,) = [one for one in distributions(path=[str(folder)]) if one.name == "culpa_guard"]
    (entry,) = found.entry_points.select(group="vllm.general_plugins")
    assert entry.value == "culpa_guard.vllm:register"


def test_the_copy_in_the_plugin_folder_imports_nothing_but_the_standard_library(tmp_path: Path) -> None:
    folder = write_plugin(tmp_path / "plugin")
    code = (
        "import sys, culpa_guard, culpa_guard.vllm;"
        "outside = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'culpa_guard', '__main__'};"
        "print(sorted(outside))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_modules_import_only_the_standard_library_and_each_other_at_import_time(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    assert names <= {*sys.stdlib_module_names, "culpa_guard"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_module_imports_culpa_and_none_is_longer_than_a_sitting(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = {
        name
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert not {name for name in names if name.split(".")[0] == "culpa"}
    assert len(text.splitlines()) <= 400
