"""What is installed beside an engine, asked of the Python that runs it."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from culpa.environment.tables import package_patterns

_SECONDS = 60.0
_MOST_TEXT = 300


@dataclass(frozen=True, slots=True)
class Installed:
    """What one interpreter has: distributions by their normalised names, torch's build, or why nothing is known.

    `hidden` are other releases of the same distributions further down the path: installed, but not imported.
    """

    python: str
    version: str = ""
    packages: Mapping[str, str] | None = None
    hidden: tuple[str, ...] = ()
    torch: Mapping[str, str | None] | None = None
    reason: str = ""


def installed(python: Path, environment: Mapping[str, str]) -> Installed:
    """Ask an interpreter, in the environment that the engine will have. Never raises: a reason takes the place."""
    with as_file(files("culpa.environment").joinpath("python_child.py")) as script:
        try:
            done = subprocess.run(
                [str(python), "-B", str(script), *package_patterns()],
                env={**environment, "PYTHONIOENCODING": "utf-8"},
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            return Installed(str(python), reason=f"can't be run: {getattr(error, 'strerror', None) or error}")
        except subprocess.TimeoutExpired:
            return Installed(str(python), reason=f"no answer within {_SECONDS:.0f} s")
    try:
        told = json.loads(done.stdout)
        return Installed(
            python=str(told["executable"] or python),
            version=f"{told['implementation']} {told['version']}",
            packages={str(name): str(version) for name, version in told["packages"].items()},
            hidden=tuple(map(str, told["hidden"])),
            torch=told["torch"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no answer"]
        return Installed(str(python), reason=f"exit code {done.returncode}: {last[0][:_MOST_TEXT]}")
