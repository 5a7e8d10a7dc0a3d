"""How a launch gets the guard: variables and a folder of the run, nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from culpa.engines import find_adapter, parse_command
from culpa.guard import BadGuard, Guard, check_mode, why_unguarded
from culpa.guard.launching import out_folder
from culpa.model import Launch

LAUNCH = Launch(("vllm", "serve", "m"), (("PYTHONPATH", "/mine"),))


def test_every_process_gets_switch_folder_and_path(tmp_path: Path) -> None:
    launch = Guard(tmp_path / "plugin", "sample:4", pages=2).into(LAUNCH, tmp_path, {})
    assert launch.argv == LAUNCH.argv
    assert launch.variable("CULPA_GUARD") == "sample:4"
    assert launch.variable("CULPA_GUARD_PAGES") == "2"
    assert launch.variable("CULPA_GUARD_OUT") == str(out_folder(tmp_path).resolve())
    assert launch.variable("PYTHONPATH") == f"{tmp_path / 'plugin'}{os.pathsep}/mine"
    assert out_folder(tmp_path).is_dir()


def test_a_path_of_the_surrounding_environment_is_kept(tmp_path: Path) -> None:
    launch = Guard(tmp_path).into(Launch(("x",)), tmp_path, {"PYTHONPATH": "/around"})
    assert launch.variable("PYTHONPATH") == f"{tmp_path}{os.pathsep}/around"


def test_a_fault_planted_in_the_surrounding_environment_is_taken_out(tmp_path: Path) -> None:
    launch = Guard(tmp_path).into(LAUNCH, tmp_path, {"CULPA_GUARD_PLANT": "swap"})
    assert "CULPA_GUARD_PLANT" not in launch.environment({"CULPA_GUARD_PLANT": "swap"})


def test_where_plugins_are_chosen_the_guard_is_among_them(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    assert guard.into(LAUNCH, tmp_path, {}).variable("VLLM_PLUGINS") is None
    chosen = guard.into(LAUNCH, tmp_path, {"VLLM_PLUGINS": "other"})
    assert chosen.variable("VLLM_PLUGINS") == "other,culpa_guard"
    none = guard.into(LAUNCH.with_variable("VLLM_PLUGINS", ""), tmp_path, {})
    assert none.variable("VLLM_PLUGINS") == "culpa_guard"


def test_the_plugin_is_found_by_its_entry_point_and_imports_nothing_of_culpa(tmp_path: Path) -> None:
    guard = Guard.write(tmp_path)
    code = (
        "import sys; from importlib.metadata import entry_points\n"
        "(one,) = entry_points(group='vllm.general_plugins', name='culpa_guard'); import culpa_guard\n"
        "assert not [name for name in sys.modules if name == 'culpa' or name.startswith('culpa.')]\n"
        "print(culpa_guard.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(guard.plugin), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith(str(guard.plugin))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "guard-plugin").write_text("a file")
    with pytest.raises(BadGuard, match="the guard can't be written to"):
        Guard.write(tmp_path)


@pytest.mark.parametrize("mode", ["log", "raise", "sample:1", "sample:250"])
def test_modes(mode: str) -> None:
    assert check_mode(mode) == mode


@pytest.mark.parametrize("mode", ["", "loud", "sample", "sample:0", "sample:-1", "sample:x", "log "])
def test_other_modes_are_refused_in_one_line(mode: str) -> None:
    with pytest.raises(BadGuard, match="there are log, raise, or sample:N"):
        check_mode(mode)


@pytest.mark.parametrize(
    ("command", "guarded"),
    [
        (("vllm", "serve", "m"), True),
        (("culpa-lab", "serve"), True),
        (("llama-server", "-m", "x.gguf"), False),
    ],
)
def test_engines_that_can_have_it(command: tuple[str, ...], guarded: bool) -> None:
    why = why_unguarded(find_adapter(parse_command(command), None, {}))
    assert (why == "") == guarded
    assert guarded or why == "llama.cpp has no guard: there is one for vLLM and culpa-lab"
