"""Wheels of a small engine, made by hand: a package whose versions differ in the fault that they have."""

import zipfile
from pathlib import Path

ENGINE = Path(__file__).parent.parent / "fake_engine.py"

MAIN = """
import os, runpy, sys
FAULT = {fault!r}
def main():
    print("tinyengine {said} with config: eager=auto, cache_rows={rows}", file=sys.stderr, flush=True)
    if FAULT:
        os.environ["FAKE_FAULT"] = FAULT
    sys.argv = [{engine!r}, *sys.argv[1:]]
    sys.path[0] = {folder!r}
    runpy.run_path({engine!r}, run_name="__main__")
if __name__ == "__main__":
    main()
"""

FACTORS = """
[engine]
name = "tinyengine"
port = { flag = "--port" }
host = { flag = "--host" }
usual_seconds = 2

[[factor]]
name = "kv"
prior = 0.1
flag = "--kv"
default = "auto"
safe = ["auto"]

[[factor]]
name = "seqs"
prior = 0.05
flag = "--seqs"
default = "256"
safe = ["256"]

[[fact]]
name = "engine_version"
effective = { pattern = "^tinyengine (\\\\S+) " }
"""


def make_wheel(
    folder: Path,
    version: str,
    *,
    fault: str = "",
    said: str | None = None,
    requires: tuple[str, ...] = (),
    name: str = "tinyengine",
    broken: bool = False,
    rows: int = 8,
) -> Path:
    """A wheel that runs the fake engine with a fault; `said` is what it calls itself, `broken` ends at once."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    main = MAIN.format(
        fault=fault, said=said or version, engine=str(ENGINE), folder=str(ENGINE.parent.parent), rows=rows
    )
    files = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        f"{name}/__main__.py": "import sys\nsys.exit('cannot start')\n" if broken else main,
        f"{info}/METADATA": "\n".join(
            [
                "Metadata-Version: 2.1",
                f"Name: {name}",
                f"Version: {version}",
                *(f"Requires-Dist: {r}" for r in requires),
            ]
        )
        + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-serve = {name}.__main__:main\n",
    }
    record = "".join(f"{one},,\n" for one in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(one, content)
    return path
