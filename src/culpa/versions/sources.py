"""Which versions there are: in a list, in a folder of wheels, in a package index, among the tags of a container."""

import re
from collections.abc import Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from culpa.model.bisection import Candidate
from culpa.versions.commands import answer
from culpa.versions.errors import BadVersions
from culpa.versions.order import in_order
from culpa.versions.yanked import yanked_versions

_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_MOST = 100_000


def listed(text: str) -> tuple[Candidate, ...]:
    """`a,b,c`, `1..64`, or `@FILE` with a version a line (what follows a blank is its title), in the given order.

    Raises BadVersions.
    """
    if text.startswith("@"):
        return from_file(Path(text[1:]), "--versions")
    found: list[str] = []
    for part in text.split(","):
        numbers = _RANGE.fullmatch(part.strip())
        if numbers is not None:
            low, high = int(numbers[1]), int(numbers[2])
            step = 1 if low <= high else -1
            if abs(high - low) > _MOST:
                raise BadVersions(f"--versions {part}: more than {_MOST} versions")
            found += [str(number) for number in range(low, high + step, step)]
        elif part.strip():
            found.append(part.strip())
    return _once([Candidate(label) for label in found], "--versions")


def from_file(path: Path, option: str) -> tuple[Candidate, ...]:
    """The versions of a file, a line each, oldest first; empty lines and those with # in front are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise BadVersions(f"{option} {path}: can't be read: {reason}") from None
    parts = [line.split(maxsplit=1) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return _once([Candidate(part[0], part[1].strip() if len(part) > 1 else "") for part in parts], option)


def in_wheels(
    folder: Path, packages: Sequence[str], *, pre: bool, keep: Sequence[str]
) -> tuple[Candidate, ...]:
    """The versions of which the folder has a wheel of every package. Raises BadVersions."""
    if not folder.is_dir():
        raise BadVersions(f"--wheels {folder}: is no folder")
    wheels = sorted(folder.glob("*.whl"))
    have = [
        {version for wheel in wheels if (version := wheel_version(wheel, package)) is not None}
        for package in packages
    ]
    labels = set.intersection(*have) if have else set()
    if not labels:
        raise BadVersions(f"--wheels {folder}: holds no wheel of {' and '.join(packages)}")
    return tuple(Candidate(label) for label in in_order(labels, pre=pre, keep=keep))


def wheel_version(wheel: Path, package: str) -> str | None:
    """The version of a wheel of this package, by its name; None for another package or a name that is none."""
    try:
        name, version, _, _ = parse_wheel_filename(wheel.name)
    except InvalidWheelFilename:
        return None
    return str(version) if name == canonicalize_name(package) else None


def packages_in(folder: Path) -> tuple[str, ...]:
    """The packages of which a folder holds wheels."""
    found: dict[str, None] = {}
    for wheel in sorted(folder.glob("*.whl")):
        try:
            found[str(parse_wheel_filename(wheel.name)[0])] = None
        except InvalidWheelFilename:
            continue
    return tuple(found)


def in_index(
    package: str, pip: Sequence[str], *, pre: bool, yanked: bool, keep: Sequence[str]
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """The versions that the package index has for this Python, as pip sees it, and remarks. Raises BadVersions."""
    words = [*pip, "index", "versions", package, "--pre"]
    said = answer(words, seconds=180)
    line = next((one for one in (said or "").splitlines() if one.startswith("Available versions:")), None)
    if line is None:
        raise BadVersions(f"--package {package}: pip finds no version of it for this Python in its index")
    labels = [part.strip() for part in line.partition(":")[2].split(",")]
    notes: list[str] = []
    if not yanked:
        withdrawn = yanked_versions(package, pip)
        if withdrawn is None:
            notes.append(f"the index does not tell which versions of {package} were yanked")
        else:
            labels = [label for label in labels if label not in withdrawn or label in keep]
    return tuple(Candidate(label) for label in in_order(labels, pre=pre, keep=keep)), tuple(notes)


def _once(candidates: Sequence[Candidate], option: str) -> tuple[Candidate, ...]:
    found: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.label in found:
            raise BadVersions(f"{option}: {candidate.label} stands there twice")
        found[candidate.label] = candidate
    if not found:
        raise BadVersions(f"{option}: names no version")
    return tuple(found.values())
