"""The version as a factor of `culpa isolate`: `engine_version=0.28.0,0.32.0`, the one that fails first."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from culpa.engines import EngineAdapter
from culpa.model import Launch
from culpa.model.bisection import ENGINE_VERSION
from culpa.versions.adapter import VersionedAdapter
from culpa.versions.asked import VersionsAsked, find_for, open_versions
from culpa.versions.errors import BadVersions, CannotPrepare
from culpa.versions.provider import Tell


@dataclass(frozen=True, slots=True)
class VersionFactor:
    """`levels` are the suspect version and those that stand in for it, `source` says how each gets to run."""

    levels: tuple[str, ...]
    source: VersionsAsked

    def plain(self) -> dict[str, Any]:
        """For a run's journal."""
        return {"levels": list(self.levels), "source": self.source.plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any] | None) -> "VersionFactor | None":
        """From the journal; None for a run without it."""
        if plain is None:
            return None
        return cls(tuple(plain["levels"]), VersionsAsked.from_plain(plain["source"]))


def parse_version_factor(text: str, source: VersionsAsked) -> VersionFactor:
    """From `engine_version=SUSPECT,SAFE[,SAFE...]`. Raises BadVersions."""
    name, _, levels = text.partition("=")
    parts = tuple(part.strip() for part in levels.split(",") if part.strip())
    if name.strip() != ENGINE_VERSION:
        raise BadVersions(
            f"--factor {text}: only {ENGINE_VERSION} is given so; other factors are read from the launch, and "
            "--factors FILE adds more"
        )
    if len(parts) < 2 or len(set(parts)) != len(parts):
        raise BadVersions(
            f"--factor {text}: give the version that fails and at least one other: {ENGINE_VERSION}=0.28.0,0.32.0"
        )
    return VersionFactor(parts, source)


def adapter_with_version(
    launch: Launch, factor: VersionFactor | None, factors_file: str | None, tell: Tell = lambda _text: None
) -> EngineAdapter:
    """The adapter of a launch; with a version as a factor, each of its levels is made ready first.

    Raises BadLaunch, BadFactors or BadVersions. Not to be called where an event loop runs.
    """
    find = find_for(factors_file)
    if factor is None:
        return find(launch)
    suspect, *safe = factor.levels
    opened = open_versions(factor.source, launch, safe[0], suspect, factors_file, known=factor.levels)
    ready(opened.provider.make_ready, factor.levels, tell)
    return VersionedAdapter(find, launch, opened.provider, suspect, tuple(safe))


def ready(make_ready: Any, labels: tuple[str, ...], tell: Tell) -> None:
    """Make versions ready, one after the other. Raises BadVersions for one that can't be."""

    async def each() -> None:
        for label in labels:
            await make_ready(label, tell)

    try:
        asyncio.run(each())
    except CannotPrepare as error:
        raise BadVersions(f"a version can't be made ready: {error}") from None
