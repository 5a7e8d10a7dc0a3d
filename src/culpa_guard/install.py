"""A folder that makes an engine load the guard, with nothing installed into the engine's environment.

    python -c "from culpa_guard.install import write_plugin; write_plugin('/tmp/guard')"
    PYTHONPATH=/tmp/guard CULPA_GUARD=log CULPA_GUARD_OUT=/tmp/seen vllm serve ...

The folder holds a copy of this package and a `.dist-info` with its entry point; without the folder on `PYTHONPATH`
there is no guard.
"""

import os
import shutil
from pathlib import Path

from culpa_guard.version import VERSION

ENTRY_POINTS = "[vllm.general_plugins]\nculpa_guard = culpa_guard.vllm:register\n"


def write_plugin(folder: str | os.PathLike[str]) -> Path:
    """Write the folder, which is made if need be, and return it. What it held of an earlier guard is replaced.

    Raises:
        OSError: the folder can't be written.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    package = target / "culpa_guard"
    if package.exists():
        shutil.rmtree(package)
    shutil.copytree(Path(__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for stale in target.glob("culpa_guard-*.dist-info"):
        shutil.rmtree(stale)
    info = target / f"culpa_guard-{VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: culpa_guard\nVersion: {VERSION}\n", encoding="ascii"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="ascii")
    return target
