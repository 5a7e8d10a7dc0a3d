"""Versions of an engine or of a package that it uses: which there are, how each is made ready, and a launch of one."""

from culpa.versions.adapter import VersionedAdapter, other_version
from culpa.versions.asked import (
    Opened,
    VersionsAsked,
    container_plan,
    container_runtime,
    find_for,
    open_versions,
)
from culpa.versions.errors import BadVersions, CannotPrepare
from culpa.versions.factor import VersionFactor, adapter_with_version, parse_version_factor, ready
from culpa.versions.order import Row

__all__ = [
    "BadVersions",
    "CannotPrepare",
    "Opened",
    "Row",
    "VersionFactor",
    "VersionedAdapter",
    "VersionsAsked",
    "adapter_with_version",
    "container_plan",
    "container_runtime",
    "find_for",
    "open_versions",
    "other_version",
    "parse_version_factor",
    "ready",
]
