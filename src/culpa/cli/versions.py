"""The version as a factor, from the options of `culpa isolate`."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from culpa.versions import VersionFactor


def version_factor(
    text: str | None, package: list[str] | None, wheels: Path | None, overlay: bool
) -> "VersionFactor | None":
    """What `--factor engine_version=...` asks for, None without it. Raises BadVersions or BadParameter."""
    if text is None:
        given = [
            name for name, value in (("package", package), ("wheels", wheels), ("overlay", overlay)) if value
        ]
        if given:
            raise typer.BadParameter(f"--{given[0]} goes with --factor engine_version=V,V")
        return None
    from culpa.versions import VersionsAsked, parse_version_factor

    source = VersionsAsked(
        packages=tuple(package or ()),
        wheels=str(wheels) if wheels is not None else None,
        way="overlay" if overlay else "auto",
    )
    return parse_version_factor(text, source)
