"""The environment on this machine: of a launch, of another Python, with its secrets left out."""

import os
import sys
from pathlib import Path

import pytest

from culpa.engines import parse_command
from culpa.environment import BadEnvironment, interpreter_in, read_environment
from culpa.environment.interpreter import interpreter_of
from culpa.environment.packages import installed
from culpa.environment.secrets import shown_variable
from culpa.host import Machine

MACHINE = Machine((), 2, 8 << 30, without_gpu_reason="none in this test")


def packages_in(folder: Path, **versions: str) -> Path:
    """A folder of installed distributions, of which nothing but the metadata is there."""
    for name, version in versions.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder


def around(*folders: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, folders))}


def test_another_python_tells_what_is_installed_for_it_without_importing_it(tmp_path: Path) -> None:
    folder = packages_in(
        tmp_path, vllm="0.32.0", torch="2.13.0+cu130", nvidia_nccl_cu13="2.28.9", unrelated="1"
    )
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (folder / "torch" / "version.py").write_text(
        "from typing import Optional\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
        "git_version = 'cf30153c4c131c8164ee7798'\n"
    )
    found = read_environment(python=Path(sys.executable), machine=MACHINE, surrounding=around(folder))
    assert found.get("engine.name") == "vllm"
    assert found.get("engine.version") == "0.32.0"
    assert found.get("torch.cuda") == "13.0"
    assert found.get("torch.commit") == "cf30153c4c13"
    assert found.get("package.nvidia-nccl-cu13") == "2.28.9"
    assert found.get("package.unrelated") is None


def test_a_library_that_is_installed_twice_is_told_with_the_release_that_is_imported(tmp_path: Path) -> None:
    first = packages_in(tmp_path / "first", torch="2.13.0")
    second = packages_in(tmp_path / "second", torch="2.9.1")
    found = installed(Path(sys.executable), around(first, second))
    assert found.packages is not None
    assert found.packages["torch"] == "2.13.0"
    assert "torch 2.9.1" in found.hidden


@pytest.mark.parametrize("program", ["import sys; sys.exit('no such module')", "print('not json')"])
def test_a_python_that_does_not_answer_is_a_reason_and_no_crash(tmp_path: Path, program: str) -> None:
    broken = tmp_path / "python3"
    broken.write_text(f"#!{sys.executable}\n{program}\n")
    broken.chmod(0o755)
    found = read_environment(python=broken, machine=MACHINE, surrounding=around())
    torch = found.fact("package.torch")
    assert torch is not None
    assert torch.value is None
    assert "exit code" in torch.reason


def test_the_launch_gives_engine_settings_and_the_defaults_that_it_leaves_alone() -> None:
    launch = parse_command(["culpa-lab serve -pp 3 --enforce-eager"])
    found = read_environment(launch, machine=MACHINE)
    assert found.get("engine.name") == "culpa-lab"
    assert found.get("setting.pp") == "3"
    assert found.get("setting.eager") == "on"
    default = found.fact("setting.prefix_caching")
    assert default is not None
    assert (default.value, default.source) == ("on", "the engine's default")
    assert dict(found.settings)["pp"] == 3


def test_what_the_engine_decides_at_its_start_is_said_to_be_unknown() -> None:
    found = read_environment(parse_command(["culpa-lab serve"]), machine=MACHINE)
    backend = found.fact("backend.attention")
    assert backend is not None
    assert backend.value is None
    assert "--from-log" in backend.reason


def test_variables_of_the_launch_stand_beside_the_relevant_ones_around_it() -> None:
    launch = parse_command(["NCCL_DEBUG=INFO", "MY_SWITCH=1", "culpa-lab", "serve"])
    found = read_environment(launch, machine=MACHINE, surrounding={**around(), "VLLM_X": "2", "EDITOR": "vi"})
    variables = {fact.key: (fact.value, fact.source) for fact in found.facts if fact.section == "variable"}
    assert variables["variable.NCCL_DEBUG"] == ("INFO", "the launch")
    assert variables["variable.MY_SWITCH"] == ("1", "the launch")
    assert variables["variable.VLLM_X"] == ("2", "surroundings")
    assert "variable.EDITOR" not in variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "hf_AbCdEfGhIjKlMnOpQrSt"),
        ("HUGGING_FACE_HUB_TOKEN", "plain-looking"),
        ("VLLM_API_KEY", "secret-value"),
        ("LMCACHE_REMOTE_PASSWORD", "correct horse"),
        ("RAY_AUTH_TOKEN", "x1"),
        ("NCCL_SOMETHING", "https://user:pass@host/x"),
        ("VLLM_S3_ACCESS_KEY_ID", "AKIAABCDEFGHIJKLMNOP"),
        ("VLLM_NOTE", "Bearer abcdefghijklmnop"),
    ],
)
def test_no_secret_is_shown(name: str, value: str) -> None:
    shown = shown_variable(name, value)
    assert value not in shown
    assert "pass@" not in shown
    assert "[redacted]" in shown


@pytest.mark.parametrize(
    ("name", "value"), [("VLLM_USE_TOKEN_CACHE", "1"), ("NCCL_DEBUG", "INFO"), ("HF_HOME", "/x")]
)
def test_what_is_no_secret_is_shown(name: str, value: str) -> None:
    assert shown_variable(name, value) == value


def test_the_users_home_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert shown_variable("HF_HOME", "/home/somebody/models") == "~/models"


def test_a_secret_in_the_launch_is_in_no_fact() -> None:
    launch = parse_command(
        ["HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt", "culpa-lab", "serve", "--api-key", "sesame-open"]
    )
    text = repr(read_environment(launch, machine=MACHINE))
    assert "hf_AbCd" not in text
    assert "sesame" not in text


def test_the_interpreter_of_a_script_is_found_behind_its_shebang(tmp_path: Path) -> None:
    script = tmp_path / "sglang"
    script.write_text(f"#!{sys.executable}\nprint()\n")
    script.chmod(0o755)
    found, _ = interpreter_of(parse_command([str(script), "serve"]), around())
    assert found == Path(sys.executable)


def test_the_interpreter_of_a_script_with_a_long_path_is_found_behind_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n")
    script.chmod(0o755)
    found, _ = interpreter_of(parse_command([str(script)]), around())
    assert found == Path(sys.executable)


def test_the_folder_of_an_environment_stands_for_its_interpreter(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert interpreter_in(tmp_path) == tmp_path / "bin" / "python"
    with pytest.raises(BadEnvironment, match="without bin/python"):
        interpreter_in(tmp_path / "bin")
    with pytest.raises(BadEnvironment, match="no such file"):
        interpreter_in(tmp_path / "nothing")
