"""Versions that are commits: each checked out and built in a folder of its own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.versions.test_sources import git

from culpa.model import Launch
from culpa.versions import CannotPrepare
from culpa.versions.cache import Cache
from culpa.versions.commits import Commits, commits

MODULE = Launch((sys.executable, "-m", "tiny"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "src" / "tiny").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number in (1, 2, 3):
        (folder / "src" / "tiny" / "__main__.py").write_text(f"print({number})\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"change {number}")
    return folder


def made(repository: Path, build: str = "") -> tuple[Commits, list[str]]:
    provider = Commits(repository, build, dict(os.environ), Cache(repository.parent / "cache"))
    labels = [one.label for one in commits(repository, "HEAD~2", "HEAD")[0]]
    for label in labels:
        asyncio.run(provider.make_ready(label, lambda _text: None))
    return provider, labels


def output(launch: Launch) -> str:
    environment = launch.environment(os.environ)
    done = subprocess.run(launch.argv, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_each_commit_runs_what_it_holds(repository: Path) -> None:
    provider, labels = made(repository)
    assert [output(provider.redirect(MODULE, label)) for label in labels] == ["1", "2", "3"]
    assert provider.is_ready(labels[0])


def test_build_runs_in_the_checkout_and_is_told_the_commit(repository: Path) -> None:
    provider, labels = made(repository, "echo \"print('$CULPA_VERSION')\" > src/tiny/__main__.py")
    assert [output(provider.redirect(MODULE, label)) for label in labels] == labels


def test_launch_may_name_the_folder_and_the_commit(repository: Path) -> None:
    provider, labels = made(repository)
    placed = Launch((sys.executable, "{root}/src/tiny/__main__.py", "{version}"))
    redirected = provider.redirect(placed, labels[1])
    assert output(redirected) == "2"
    assert redirected.argv[-1] == labels[1]
    assert redirected.variable("PYTHONPATH") is None


def test_build_that_fails_makes_one_version_unusable(repository: Path) -> None:
    provider = Commits(
        repository, "echo no such thing; exit 3", dict(os.environ), Cache(repository.parent / "cache")
    )
    label = commits(repository, "HEAD~1", "HEAD")[0][1].label
    with pytest.raises(CannotPrepare, match="no such thing"):
        asyncio.run(provider.make_ready(label, lambda _text: None))
    assert not provider.is_ready(label)
