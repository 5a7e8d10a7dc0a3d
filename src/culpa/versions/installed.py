"""What a Python environment holds, asked of its own interpreter, and whether that satisfies a wheel's requirements."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from culpa.versions.commands import answer

_ASK = """
import importlib.metadata as m, json, os, platform, sys
found = {}
for d in m.distributions():
    name = d.metadata["Name"]
    if name and name not in found: found[name] = d.version
print(json.dumps({"python": platform.python_version(), "implementation": platform.python_implementation(),
                  "found": found}))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """Distributions by their normalised names, and the Python that they belong to."""

    python: str
    versions: Mapping[str, str]

    def version(self, package: str) -> str | None:
        """The version of a package that is there, None if it is not."""
        return self.versions.get(canonicalize_name(package))


def installed(argv: Sequence[str], env: Mapping[str, str]) -> Installed | None:
    """What the interpreter `argv` sees with these variables; None if it can't be asked."""
    words = ["env", *(f"{name}={value}" for name, value in env.items()), *argv, "-c", _ASK]
    said = answer(words)
    if said is None:
        return None
    try:
        told = json.loads(said)
        versions = {str(canonicalize_name(name)): str(version) for name, version in told["found"].items()}
        return Installed(str(told["python"]), versions)
    except (ValueError, KeyError, AttributeError):
        return None


def requirements_of(wheel: Path) -> tuple[str, ...] | None:
    """The `Requires-Dist` of a wheel; None if it can't be read."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
            head = HeaderParser().parsestr(archive.read(name).decode("utf-8", "replace"))
    except (OSError, zipfile.BadZipFile, StopIteration, KeyError):
        return None
    return tuple(head.get_all("Requires-Dist") or ())


def unmet(requirements: Sequence[str], there: Installed, but: Sequence[str] = ()) -> tuple[str, ...]:
    """The requirements that an environment does not satisfy, those on the packages in `but` left aside."""
    exchanged = {canonicalize_name(name) for name in but}
    missing = []
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            missing.append(text)
            continue
        marker = requirement.marker
        if marker is not None and not marker.evaluate({**_environment(there.python), "extra": ""}):
            continue
        have = there.version(requirement.name)
        if canonicalize_name(requirement.name) in exchanged:
            continue
        if have is None or not requirement.specifier.contains(have, prereleases=True):
            missing.append(f"{requirement.name}{requirement.specifier} (there is {have or 'none'})")
    return tuple(missing)


def _environment(python: str) -> dict[str, str]:
    own = {name: str(value) for name, value in default_environment().items()}
    return {**own, "python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
