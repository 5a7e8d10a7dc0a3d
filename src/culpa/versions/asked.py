"""From what a user asks for, as texts, to versions in a row and the way in which each gets to run."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from culpa.engines import EngineAdapter, find_adapter
from culpa.model import Launch
from culpa.model.bisection import Candidate
from culpa.versions.adapter import Find
from culpa.versions.cache import LIMIT, Cache, default_folder
from culpa.versions.commits import Commits, commits
from culpa.versions.errors import BadVersions
from culpa.versions.order import Row, between, in_order
from culpa.versions.packages import Packages, Way, pip_for
from culpa.versions.provider import Placeholder, Provider
from culpa.versions.redirect import PLACEHOLDER, ROOT_PLACEHOLDER, filled, has_placeholder, interpreter_of
from culpa.versions.sources import from_file, in_index, in_wheels, listed, packages_in

# The package that an engine's launch stands for where none is named.
_USUAL = {"vllm": "vllm", "llama.cpp": "xllamacpp"}
RUNTIMES = ("docker", "podman", "nerdctl")


@dataclass(frozen=True, slots=True)
class VersionsAsked:
    """Where versions come from, as the user wrote it. `listed` is `--versions`, which says which there are."""

    listed: str | None = None
    packages: tuple[str, ...] = ()
    wheels: str | None = None
    git: str | None = None
    build: str = ""
    tags: str | None = None
    pre: bool = False
    yanked: bool = False
    way: Way = "auto"
    extra: tuple[str, ...] = ()
    cache_folder: str | None = None
    cache_limit: int = LIMIT

    def plain(self) -> dict[str, Any]:
        """For a run's journal: paths made absolute, so that the run can be resumed from anywhere."""
        plain = asdict(self)
        for name in ("wheels", "git", "tags", "cache_folder"):
            if plain[name] is not None:
                plain[name] = str(Path(plain[name]).resolve())
        if self.listed is not None and self.listed.startswith("@"):
            plain["listed"] = f"@{Path(self.listed[1:]).resolve()}"
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "VersionsAsked":
        """From the journal. Raises TypeError for what is none."""
        given = dict(plain)
        return cls(**{**given, "packages": tuple(given["packages"]), "extra": tuple(given["extra"])})


@dataclass(frozen=True, slots=True)
class Opened:
    """The source of the versions: the candidates it has, what makes them ready, and remarks."""

    provider: Provider
    candidates: tuple[Candidate, ...]
    source: str
    good: str
    bad: str
    notes: tuple[str, ...] = field(default=())

    def row(self) -> Row:
        """The versions from the good end to the bad end. Raises BadVersions."""
        return between(self.candidates, self.good, self.bad, self.source)


def find_for(factors_file: str | None) -> Find:
    """A function that gives the adapter of a launch."""
    file = Path(factors_file) if factors_file else None

    def find(launch: Launch) -> EngineAdapter:
        return find_adapter(launch, file)

    return find


def open_versions(
    asked: VersionsAsked,
    launch: Launch,
    good: str,
    bad: str,
    factors_file: str | None = None,
    surrounding: Mapping[str, str] | None = None,
    known: Sequence[str] = (),
) -> Opened:
    """Look at the source and find the versions; `known` are those to take where they are known already.

    Nothing is made ready. Raises BadVersions or BadLaunch.
    """
    environment = dict(os.environ if surrounding is None else surrounding)
    _check(asked, launch)
    cache = Cache(Path(asked.cache_folder) if asked.cache_folder else default_folder(), asked.cache_limit)
    if asked.git is not None:
        found, good, bad = commits(Path(asked.git), good, bad)
        provider: Provider = Commits(Path(asked.git), asked.build, environment, cache)
        return Opened(provider, found, f"the commits of {asked.git}", good, bad)
    given = tuple(map(Candidate, known)) or (listed(asked.listed) if asked.listed is not None else ())
    if has_placeholder(launch):
        if not given:
            raise BadVersions(
                f"the command holds {PLACEHOLDER}: say which versions there are with --versions"
            )
        return Opened(Placeholder(), given, "--versions", good, bad)
    engine = find_for(factors_file)(launch).name
    wheels = Path(asked.wheels) if asked.wheels is not None else None
    packages = asked.packages or _usual(engine, wheels)
    provider = Packages(
        packages,
        engine,
        launch,
        environment,
        cache,
        asked.way,
        wheels.resolve() if wheels else None,
        asked.extra,
    )
    if given:
        return Opened(provider, given, "--versions", good, bad)
    keep = (good, bad)
    if wheels is not None:
        found = in_wheels(wheels, packages, pre=asked.pre, keep=keep)
        return Opened(provider, found, f"--wheels {wheels}", good, bad)
    python = interpreter_of(launch, environment) or Path(sys.executable)
    return _from_index(asked, provider, packages, python, good, bad)


def _from_index(
    asked: VersionsAsked, provider: Provider, packages: Sequence[str], python: Path, good: str, bad: str
) -> Opened:
    pip = pip_for(python)
    if pip is None:
        raise BadVersions(
            f"{python} has no pip to ask the package index with: install pip, or give --versions or --wheels"
        )
    keep = (good, bad)
    each = [in_index(package, pip, pre=asked.pre, yanked=asked.yanked, keep=keep) for package in packages]
    labels = set.intersection(*({candidate.label for candidate in found} for found, _ in each))
    kept = tuple(Candidate(label) for label in in_order(labels, pre=True))
    notes = tuple(note for _, remarks in each for note in remarks)
    return Opened(provider, kept, f"the package index ({', '.join(packages)})", good, bad, notes)


def _usual(engine: str, wheels: Path | None) -> tuple[str, ...]:
    inside = packages_in(wheels) if wheels is not None else ()
    if len(inside) == 1:
        return inside
    if inside:
        raise BadVersions(f"--wheels {wheels}: holds wheels of {', '.join(inside)}; say which with --package")
    if engine in _USUAL:
        return (_USUAL[engine],)
    raise BadVersions(
        f"which package of {engine} has the versions? Say it with --package, put {PLACEHOLDER} into the command and "
        "the versions into --versions, or give --git with --build"
    )


def _check(asked: VersionsAsked, launch: Launch) -> None:
    """Raise BadVersions where options contradict each other."""
    given = [
        f"--{name}"
        for name, value in (("wheels", asked.wheels), ("git", asked.git), ("tags", asked.tags))
        if value is not None
    ]
    if len(given) > 1:
        raise BadVersions(f"{' and '.join(given)}: versions come from one source")
    if asked.git is not None and (asked.listed is not None or asked.packages):
        raise BadVersions("--git takes the commits between the ends: leave --versions and --package out")
    if asked.build and asked.git is None:
        raise BadVersions("--build is the command that builds a commit: it goes with --git")
    if has_placeholder(launch, ROOT_PLACEHOLDER) and asked.git is None:
        raise BadVersions(f"{ROOT_PLACEHOLDER} stands for the checkout of a commit: it goes with --git")
    if has_placeholder(launch) and (asked.packages or asked.wheels is not None):
        raise BadVersions(
            f"the command names the version itself ({PLACEHOLDER}): leave --package and --wheels out"
        )


def container_plan(
    tags: str, words: Sequence[str], good: str, bad: str
) -> tuple[Row, tuple[tuple[str, ...], ...]]:
    """The tags between the ends, and the command of each: `{version}`, or the tag of the image, is exchanged.

    Raises BadVersions.
    """
    row = between(from_file(Path(tags), "--tags"), good, bad, f"--tags {tags}")
    launch = Launch(tuple(words))
    if not has_placeholder(launch):
        places = [
            place
            for place, word in enumerate(words)
            if any(word.endswith(f":{candidate.label}") for candidate in row.candidates)
        ]
        if len(places) != 1:
            raise BadVersions(
                f"--tags: no word of the command is an image with one of the tags; put {PLACEHOLDER} in its place"
            )
        image = words[places[0]].rpartition(":")[0]
        argv = list(words)
        argv[places[0]] = f"{image}:{PLACEHOLDER}"
        launch = replace(launch, argv=tuple(argv))
    return row, tuple(filled(launch, {PLACEHOLDER: label}).argv for label in row.labels)


def container_runtime(words: Sequence[str]) -> str:
    """The container runtime that the command uses. Raises BadVersions where it is none, or is not installed."""
    name = next((Path(word).name for word in words if Path(word).name in RUNTIMES), None)
    if name is None:
        raise BadVersions(f"--tags: the command starts no container ({', '.join(RUNTIMES)})")
    if shutil.which(name) is None:
        raise BadVersions(
            f"--tags: there is no {name} on this machine; --dry-run prints the command of each tag"
        )
    return name
