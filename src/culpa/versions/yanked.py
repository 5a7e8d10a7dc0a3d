"""Which versions of a package its index has yanked: PEP 592, read from the simple API (PEP 691, or its HTML)."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from culpa.versions.commands import answer

_DEFAULT_INDEX = "https://pypi.org/simple"
_LINK = re.compile(r"<a\b([^>]{0,4000})>([^<]{1,300})</a>", re.IGNORECASE)
_JSON = "application/vnd.pypi.simple.v1+json"


def yanked_versions(package: str, pip: Sequence[str]) -> frozenset[str] | None:
    """The versions of which every file was yanked; None if the index does not tell."""
    import httpx2

    index = (answer([*pip, "config", "get", "global.index-url"]) or _DEFAULT_INDEX).strip()
    if not index.startswith(("http://", "https://")):
        return frozenset()  # a folder: nothing is yanked there
    address = f"{index.rstrip('/')}/{canonicalize_name(package)}/"
    try:
        answered = httpx2.get(
            address, headers={"Accept": f"{_JSON}, text/html;q=0.5"}, timeout=30.0, follow_redirects=True
        )
    except httpx2.HTTPError:
        return None
    if answered.status_code != 200:
        return None
    if "json" in answered.headers.get("content-type", ""):
        try:
            files = [(str(one["filename"]), bool(one.get("yanked"))) for one in answered.json()["files"]]
        except (ValueError, KeyError, TypeError):
            return None
    else:
        files = [
            (unquote(name.strip()), "data-yanked" in attributes)
            for attributes, name in _LINK.findall(answered.text)
        ]
    return whole_versions_yanked(files)


def whole_versions_yanked(files: Sequence[tuple[str, bool]]) -> frozenset[str]:
    """From file names, each with whether it was yanked, to the versions of which no file is left."""
    left: set[str] = set()
    gone: set[str] = set()
    for name, yanked in files:
        version = _version(name)
        if version is not None:
            (gone if yanked else left).add(version)
    return frozenset(gone - left)


def _version(filename: str) -> str | None:
    name = Path(filename).name
    try:
        return str(parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1])
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
