"""Where versions come from: lists, folders of wheels, an index, commits, container tags."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.versions.wheels import make_wheel

from culpa.model import Launch
from culpa.versions import BadVersions, VersionsAsked, container_plan, container_runtime, open_versions
from culpa.versions.commits import commits
from culpa.versions.sources import in_index, in_wheels, listed
from culpa.versions.yanked import whole_versions_yanked

PLACED = Launch((sys.executable, "-m", "culpa_lab", "serve", "--build", "{version}"))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("1..4", ["1", "2", "3", "4"]),
        ("4..1", ["4", "3", "2", "1"]),
        ("a, b ,c", ["a", "b", "c"]),
        ("20260101,20260105..20260107", ["20260101", "20260105..20260107"]),
    ],
)
def test_list_of_versions_keeps_its_order(text: str, labels: list[str]) -> None:
    assert [one.label for one in listed(text)] == labels


def test_list_in_a_file_has_titles(tmp_path: Path) -> None:
    file = tmp_path / "nightlies"
    file.write_text("# nightlies\n20260101 first of the year\n\n20260102\n")
    found = listed(f"@{file}")
    assert [(one.label, one.title) for one in found] == [("20260101", "first of the year"), ("20260102", "")]


@pytest.mark.parametrize("text", ["", "a,a", "@/nowhere/at/all", "1..999999"])
def test_bad_list_is_refused(text: str) -> None:
    with pytest.raises(BadVersions, match="--versions"):
        listed(text)


def test_wheels_of_one_package_are_versions(tmp_path: Path) -> None:
    for version in ("1.10", "1.9", "1.11rc1"):
        make_wheel(tmp_path, version)
    make_wheel(tmp_path, "3.0", name="other")
    found = in_wheels(tmp_path, ["tinyengine"], pre=False, keep=())
    assert [one.label for one in found] == ["1.9", "1.10"]


def test_folder_without_wheels_of_the_package_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "3.0", name="other")
    with pytest.raises(BadVersions, match="no wheel of tinyengine"):
        in_wheels(tmp_path, ["tinyengine"], pre=False, keep=())


def test_index_is_asked_through_pip(tmp_path: Path) -> None:
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\ncase $1 in index) echo 'tinyengine (1.2)';"
        " echo 'Available versions: 1.2, 1.2rc1, 1.1, 1.0'; exit 0;; esac\necho file:///nowhere\n"
    )
    pip.chmod(0o755)
    found, notes = in_index("tinyengine", [str(pip)], pre=False, yanked=False, keep=("1.0", "1.2"))
    assert [one.label for one in found] == ["1.0", "1.1", "1.2"]
    assert notes == ()


def test_package_that_the_index_lacks_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadVersions, match="pip finds no version"):
        in_index("tinyengine", ["false"], pre=False, yanked=True, keep=())


def test_version_is_yanked_when_all_its_files_are() -> None:
    files = [
        ("a-1.0-py3-none-any.whl", True),
        ("a-1.0.tar.gz", True),
        ("a-1.1-py3-none-any.whl", True),
        ("a-1.1.tar.gz", False),
        ("strange", True),
    ]
    assert whole_versions_yanked(files) == {"1.0"}


def git(repository: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(
        ["git", "-C", str(repository), *identity, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for number in range(4):
        (folder / "file").write_text(f"{number}")
        git(folder, "add", "file")
        git(folder, "commit", "-q", "-m", f"change {number}")
    return folder


def test_commits_between_two_are_versions_with_titles(repository: Path) -> None:
    found, good, bad = commits(repository, "HEAD~2", "HEAD")
    assert [one.title for one in found] == ["change 1", "change 2", "change 3"]
    assert (found[0].label, found[-1].label) == (good, bad)


def test_commits_are_oldest_first_whichever_end_is_good(repository: Path) -> None:
    found, good, bad = commits(repository, "HEAD", "HEAD~2")
    assert [one.title for one in found] == ["change 1", "change 2", "change 3"]
    assert (found[0].label, found[-1].label) == (bad, good)


def test_commits_of_two_lines_are_refused(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "side", "HEAD~1")
    git(repository, "commit", "-q", "--allow-empty", "-m", "aside")
    with pytest.raises(BadVersions, match="neither commit comes from the other"):
        commits(repository, "main", "side")
    with pytest.raises(BadVersions, match="no such commit"):
        commits(repository, "main", "nothing")


@pytest.mark.parametrize(
    ("asked", "launch", "told"),
    [
        (VersionsAsked(), PLACED, "say which versions there are with --versions"),
        (VersionsAsked(listed="1..3", packages=("a",)), PLACED, "leave --package and --wheels out"),
        (VersionsAsked(git="x", wheels="y"), PLACED, "one source"),
        (VersionsAsked(build="make"), PLACED, "goes with --git"),
        (VersionsAsked(), Launch(("culpa-lab", "serve", "{root}")), "goes with --git"),
        (VersionsAsked(), Launch(("culpa-lab", "serve")), "which package of culpa-lab"),
    ],
)
def test_options_that_contradict_each_other_are_told(asked: VersionsAsked, launch: Launch, told: str) -> None:
    with pytest.raises(BadVersions, match=told):
        open_versions(asked, launch, "1", "3")


def test_containers_are_planned_by_their_commands(tmp_path: Path) -> None:
    tags = tmp_path / "tags"
    tags.write_text("v0.27.0\nv0.28.0\nv0.29.0\n")
    words = ["docker", "run", "--gpus", "all", "vllm/vllm-openai:v0.29.0", "--model", "m"]
    row, commands = container_plan(str(tags), words, "v0.27.0", "v0.29.0")
    assert row.labels == ("v0.27.0", "v0.28.0", "v0.29.0")
    assert [argv[4] for argv in commands] == [f"vllm/vllm-openai:{label}" for label in row.labels]
    with pytest.raises(BadVersions, match="no word of the command is an image"):
        container_plan(str(tags), ["docker", "run", "vllm/vllm-openai:latest"], "v0.27.0", "v0.29.0")


def test_missing_container_runtime_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BadVersions, match="there is no docker on this machine"):
        container_runtime(["docker", "run", "x"])
    with pytest.raises(BadVersions, match="starts no container"):
        container_runtime(["vllm", "serve"])
