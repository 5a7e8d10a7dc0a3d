"""How a version of a package gets to run: unpacked before the launch's environment, or in one of its own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.versions.wheels import make_wheel

from culpa.model import Launch
from culpa.versions import BadVersions, CannotPrepare
from culpa.versions.cache import Cache
from culpa.versions.installed import Installed, unmet
from culpa.versions.packages import Packages, Way
from culpa.versions.redirect import check_sees_path, in_environment, interpreter_of, with_first_on_path

MODULE = Launch((sys.executable, "-m", "tinyengine", "--port", "1"))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("UV_OFFLINE", "1")
    return dict(os.environ)


def provider(
    folder: Path, environment: dict[str, str], way: Way, launch: Launch = MODULE, limit: int = 10**9
) -> Packages:
    cache = Cache(folder / "cache", limit)
    return Packages(("tinyengine",), "tinyengine", launch, environment, cache, way, folder / "wheels")


def make_ready(packages: Packages, label: str) -> list[str]:
    told: list[str] = []
    asyncio.run(packages.make_ready(label, told.append))
    return told


def version_of(launch: Launch) -> str:
    words = [*launch.argv[:1], "-c", "import tinyengine; print(tinyengine.__version__)"]
    done = subprocess.run(
        words, env=launch.environment(os.environ), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_unpacked_version_comes_before_everything_else(tmp_path: Path, environment: dict[str, str]) -> None:
    for version in ("1.0", "1.1"):
        make_wheel(tmp_path / "wheels", version)
    packages = provider(tmp_path, environment, "overlay")
    assert not packages.is_ready("1.1")
    assert make_ready(packages, "1.1")
    make_ready(packages, "1.0")
    assert packages.is_ready("1.1")
    assert version_of(packages.redirect(MODULE, "1.1")) == "1.1"
    assert version_of(packages.redirect(MODULE, "1.0")) == "1.0"


def test_what_is_ready_is_not_made_again(tmp_path: Path, environment: dict[str, str]) -> None:
    make_wheel(tmp_path / "wheels", "1.0")
    make_ready(provider(tmp_path, environment, "overlay"), "1.0")
    assert make_ready(provider(tmp_path, environment, "overlay"), "1.0") == []


def test_half_made_version_is_made_anew(tmp_path: Path, environment: dict[str, str]) -> None:
    make_wheel(tmp_path / "wheels", "1.0")
    packages = provider(tmp_path, environment, "overlay")
    make_ready(packages, "1.0")
    next((tmp_path / "cache").glob("*/ready.json")).unlink()
    assert not packages.is_ready("1.0")
    assert make_ready(packages, "1.0")
    assert version_of(packages.redirect(MODULE, "1.0")) == "1.0"


def test_version_that_is_not_there_is_told_in_one_line(tmp_path: Path, environment: dict[str, str]) -> None:
    make_wheel(tmp_path / "wheels", "1.0")
    with pytest.raises(CannotPrepare, match="no wheel") as told:
        make_ready(provider(tmp_path, environment, "overlay"), "2.0")
    assert "\n" not in str(told.value)


@pytest.mark.slow
def test_environment_of_its_own_has_interpreter_and_command(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    make_wheel(tmp_path / "wheels", "1.0")
    command = Launch(("tinyengine-serve", "--port", "1"))
    packages = provider(tmp_path, environment, "own", command)
    make_ready(packages, "1.0")
    redirected = packages.redirect(command, "1.0")
    assert Path(redirected.argv[0]).is_file()
    assert redirected.argv[0].endswith("/bin/tinyengine-serve")
    assert version_of(packages.redirect(MODULE, "1.0")) == "1.0"


def test_longest_unused_goes_first_when_room_is_short(tmp_path: Path, environment: dict[str, str]) -> None:
    for version in ("1.0", "1.1", "1.2"):
        make_wheel(tmp_path / "wheels", version)
    for place, version in enumerate(("1.0", "1.1")):
        make_ready(provider(tmp_path, environment, "overlay"), version)
        for marker in (tmp_path / "cache").glob("*/ready.json"):
            if version in marker.read_text():
                os.utime(marker, (1000 + place, 1000 + place))
    size = sum(file.stat().st_size for file in (tmp_path / "cache").rglob("*") if file.is_file())
    make_ready(provider(tmp_path, environment, "overlay", limit=size + 1), "1.2")
    later = provider(tmp_path, environment, "overlay")
    assert [later.is_ready(version) for version in ("1.0", "1.1", "1.2")] == [False, True, True]


def test_what_this_run_uses_stays_whatever_the_limit(tmp_path: Path, environment: dict[str, str]) -> None:
    for version in ("1.0", "1.1"):
        make_wheel(tmp_path / "wheels", version)
    packages = provider(tmp_path, environment, "overlay", limit=1)
    for version in ("1.0", "1.1"):
        make_ready(packages, version)
    assert packages.is_ready("1.0")
    assert packages.is_ready("1.1")


def test_requirement_that_is_not_satisfied_is_named() -> None:
    there = Installed("3.11.4", {"a": "1.0", "b": "2.0"})
    needs = ["a>=1", "b==3.0", "c", "d; python_version < '3'", "e; extra == 'more'"]
    assert unmet(needs, there) == ("b==3.0 (there is 2.0)", "c (there is none)")
    assert unmet(needs, there, but=("B", "c")) == ()


def test_folder_is_put_before_the_path_that_is_there() -> None:
    launch = Launch(("python", "-m", "x"), (("PYTHONPATH", "/mine"),))
    assert with_first_on_path(launch, Path("/new"), {}).variable("PYTHONPATH") == "/new:/mine"
    plain = Launch(("python", "-m", "x"))
    assert (
        with_first_on_path(plain, Path("/new"), {"PYTHONPATH": "/theirs"}).variable("PYTHONPATH")
        == "/new:/theirs"
    )
    assert with_first_on_path(plain, Path("/new"), {}).variable("PYTHONPATH") == "/new"


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (("python3.11", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"), "/e/bin/python"),
        (("numactl", "-N", "0", "/usr/bin/python3", "server.py"), "/e/bin/python"),
        (("vllm", "serve", "m"), "/e/bin/vllm"),
        (("timeout", "60", "/opt/bin/vllm", "serve", "m"), "/e/bin/vllm"),
    ],
)
def test_launch_gets_interpreter_or_command_of_the_environment(argv: tuple[str, ...], program: str) -> None:
    redirected = in_environment(Launch(argv), Path("/e"), {"PATH": "/usr/bin"})
    assert program in redirected.argv
    assert len(redirected.argv) == len(argv)
    assert redirected.variable("PATH") == "/e/bin:/usr/bin"


def test_interpreter_of_a_command_stands_in_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "serve"
    script.write_text(f"#!{sys.executable}\nprint()\n")
    script.chmod(0o755)
    assert interpreter_of(Launch(("serve",)), {"PATH": str(tmp_path)}) == Path(sys.executable)
    assert interpreter_of(Launch(("nothing-like-it",)), {"PATH": str(tmp_path)}) is None


def test_isolated_interpreter_is_refused_for_unpacked_versions() -> None:
    with pytest.raises(BadVersions, match="-I makes Python look past"):
        check_sees_path(Launch(("python", "-I", "-m", "x")))
    check_sees_path(Launch(("python", "-u", "-m", "x", "-I")))


def test_satisfied_requirements_allow_to_unpack(tmp_path: Path, environment: dict[str, str]) -> None:
    make_wheel(tmp_path / "wheels", "1.0", requires=("pydantic>=2", "nothing; extra == 'all'"))
    packages = provider(tmp_path, environment, "auto")
    packages.there = Installed("3.11.4", {"tinyengine": "0.9", "pydantic": "2.11"})
    assert make_ready(packages, "1.0") == ["1.0: unpacking tinyengine"]
    assert version_of(packages.redirect(MODULE, "1.0")) == "1.0"


def test_requirement_that_the_environment_lacks_asks_for_one_of_its_own(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    make_wheel(tmp_path / "wheels", "1.0", requires=("no-such-thing>=2",))
    packages = provider(tmp_path, environment, "auto")
    packages.there = Installed("3.11.4", {"tinyengine": "0.9"})
    told: list[str] = []
    with pytest.raises(CannotPrepare, match="no-such-thing"):
        asyncio.run(packages.make_ready("1.0", told.append))
    assert "1.0: gets an environment of its own, as the launch's one lacks no-such-thing>=2" in told[0]
