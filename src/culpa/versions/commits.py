"""Versions that are commits of a git repository, each checked out and built in a folder of its own."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from culpa.model import Launch
from culpa.model.bisection import Candidate
from culpa.versions.cache import Cache
from culpa.versions.commands import answer, carry_out
from culpa.versions.errors import BadVersions
from culpa.versions.provider import Tell
from culpa.versions.redirect import (
    PLACEHOLDER,
    ROOT_PLACEHOLDER,
    filled,
    has_placeholder,
    in_environment,
    with_first_on_path,
)

_CHECKOUT = "checkout"
_SHORT = 12  # digits of a commit that name it
_ENVIRONMENTS = (".venv", "venv")


def commits(repository: Path, good: str, bad: str) -> tuple[tuple[Candidate, ...], str, str]:
    """The commits from the older to the newer of two, along first parents, and the names of the two.

    Raises BadVersions where the repository or a commit is not there, or neither end comes from the other.
    """
    if answer(["git", "-C", str(repository), "rev-parse", "--git-dir"]) is None:
        raise BadVersions(f"--git {repository}: is no git repository (or git is not installed)")
    ends = [_commit(repository, option, name) for option, name in (("--good", good), ("--bad", bad))]
    for old, new in (ends, ends[::-1]):
        if answer(["git", "-C", str(repository), "merge-base", "--is-ancestor", old, new]) is not None:
            break
    else:
        raise BadVersions(
            f"--good {good} and --bad {bad}: neither commit comes from the other; give a good commit "
            "of the same line, such as their merge base"
        )
    said = answer(
        [
            "git", "-C", str(repository), "log", "--first-parent", "--reverse", "--format=%H %s",
            f"{old}..{new}",
        ],
        seconds=300,
    )  # fmt: skip
    if said is None:
        raise BadVersions(f"--git {repository}: git can't list the commits between {good} and {bad}")
    first = answer(["git", "-C", str(repository), "log", "-1", "--format=%H %s", old]) or old
    lines = [line.split(" ", 1) for line in [first.strip(), *said.splitlines()] if line.strip()]
    found = tuple(Candidate(parts[0][:_SHORT], parts[1] if len(parts) > 1 else "") for parts in lines)
    return found, ends[0][:_SHORT], ends[1][:_SHORT]


def _commit(repository: Path, option: str, name: str) -> str:
    said = answer(
        [
            "git",
            "-C",
            str(repository),
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{name}^{{commit}}",
        ]
    )
    if said is None:
        raise BadVersions(f"{option} {name}: no such commit in {repository}")
    return said.strip()


@dataclass(slots=True)
class Commits:
    """Checkouts of a repository. `build` is a command that is run in each; what it leaves in `.venv` is used.

    The launch may hold `{root}` for the checkout's folder and `{version}` for the commit; without them, and without a
    `.venv`, the checkout (or its `src`) comes first on PYTHONPATH.
    """

    repository: Path
    build: str
    surrounding: Mapping[str, str]
    cache: Cache
    carries_settings: bool = False
    packages: tuple[str, ...] = field(default=())

    def is_ready(self, label: str) -> bool:
        """Whether it was built before."""
        return self.cache.ready(self._key(label))

    async def make_ready(self, label: str, tell: Tell) -> None:
        """Check out and build. Raises CannotPrepare."""
        key = self._key(label)
        if self.cache.ready(key):
            self.cache.use(key)
            return
        with self.cache.locked(key):
            tell(f"{label}: checking out{' and building' if self.build else ''}")
            root, log = self.cache.begin(key) / _CHECKOUT, self.cache.log(key)
            clone = [
                "git",
                "clone",
                "-q",
                "--shared",
                "--no-checkout",
                str(self.repository.resolve()),
                str(root),
            ]
            await carry_out(label, clone, log)
            await carry_out(label, ["git", "-C", str(root), "checkout", "-q", "--detach", label], log)
            if self.build:
                shell = ["sh", "-c", self.build]
                await carry_out(
                    label, shell, log, cwd=root, env={"CULPA_VERSION": label, "CULPA_ROOT": str(root)}
                )
            self.cache.finish(key, label)

    def redirect(self, launch: Launch, label: str) -> Launch:
        """The launch in the checkout of this commit."""
        root = self.cache.place(self._key(label)) / _CHECKOUT
        placed = has_placeholder(launch, ROOT_PLACEHOLDER)
        launch = filled(launch, {PLACEHOLDER: label, ROOT_PLACEHOLDER: str(root)})
        own = next((root / name for name in _ENVIRONMENTS if (root / name / "bin" / "python").exists()), None)
        if own is not None and not placed:
            return in_environment(launch, own, self.surrounding)
        return launch if placed else with_first_on_path(launch, _packages(root), self.surrounding)

    def _key(self, label: str) -> str:
        return self.cache.key("git", str(self.repository.resolve()), label, *shlex.split(self.build))


def _packages(root: Path) -> Path:
    return root / "src" if (root / "src").is_dir() else root
