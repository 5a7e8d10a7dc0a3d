"""Runs in the engine's own Python and prints what is installed there, as JSON. Standard library, Python 3.8 or newer.

Nothing of what is installed is imported: importing torch takes seconds and may touch the GPUs. Arguments: regular
expressions of distribution names.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sys
from pathlib import Path


def main() -> None:
    """Print one JSON object."""
    # The folder of this script is first on the path; it is none of the engine's.
    here = os.path.realpath(Path(__file__).parent)
    path = [part for part in sys.path if os.path.realpath(part or ".") != here]
    wanted = re.compile("|".join(f"(?:{pattern})" for pattern in sys.argv[1:]))
    packages: dict[str, str] = {}
    hidden: list[str] = []
    for distribution in importlib.metadata.distributions(path=path):
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if not wanted.fullmatch(name):
            continue
        if name in packages:  # the one that stands first is imported
            if packages[name] != distribution.version:
                hidden.append(f"{name} {distribution.version}")
            continue
        packages[name] = distribution.version
    answer = {
        "implementation": platform.python_implementation(),
        "version": platform.python_version(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "packages": packages,
        "hidden": hidden,
        "torch": torch_build(path),
    }
    json.dump(answer, sys.stdout)


def torch_build(path: list[str]) -> dict[str, str | None] | None:
    """What torch/version.py says: the CUDA or ROCm that it was built for, and its commit."""
    for folder in path:
        try:
            text = Path(folder, "torch", "version.py").read_text(encoding="utf-8")
        except OSError:
            continue
        found: dict[str, str | None] = {}
        for name in ("cuda", "hip", "git_version"):
            match = re.search(r"^%s\b[^=\n]*=\s*'([^']*)'" % name, text, re.MULTILINE)  # noqa: UP031
            found[name] = match.group(1) if match else None
        return found
    return None


if __name__ == "__main__":
    main()
