"""Which Python runs an engine: that of its launch, else the one that a shell would find."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from culpa.engines.vllm_install import find_interpreter
from culpa.environment.stored import BadEnvironment
from culpa.model import Launch

# The first lines of a script that an installer wrote; where the path is too long for a shebang, a shell finds it.
_SHEBANG = re.compile(r"#!\s*(/\S{1,1000})(?:[ \t]+(\S{1,200}))?")
_LONG = re.compile(r"'''exec' \"?(/[^\"\n]{1,1000}?)\"? \"\$0\"")
_HEAD = 4096


def interpreter_of(launch: Launch | None, surrounding: Mapping[str, str]) -> tuple[Path | None, str]:
    """The interpreter, and in words how it was found or why there is none."""
    if launch is not None:
        environment = launch.environment(surrounding)
        found = find_interpreter(launch.argv, environment) or _by_script(launch, environment)
        if found is not None:
            return found, "the launch runs it"
        return None, "the launch runs no Python that could be found; say --python"
    for name in ("python3", "python"):
        if which := shutil.which(name, path=surrounding.get("PATH")):
            return Path(which), f"{name} on PATH"
    return Path(sys.executable), "culpa's own"


def interpreter_in(path: Path) -> Path:
    """The interpreter that was named, or the one in the environment's folder that was. Raises BadEnvironment."""
    if path.is_dir():
        for name in ("bin/python", "bin/python3"):
            if (path / name).exists():
                return path / name
        raise BadEnvironment(f"--python {path}: a folder without bin/python: name the interpreter itself")
    if not path.exists():
        found = shutil.which(str(path)) if "/" not in str(path) else None
        if found is None:
            raise BadEnvironment(f"--python {path}: no such file")
        return Path(found)
    if not os.access(path, os.X_OK):
        raise BadEnvironment(f"--python {path}: is not executable")
    return path.absolute()


def _by_script(launch: Launch, environment: Mapping[str, str]) -> Path | None:
    """The Python in the first lines of a program of the launch, such as `sglang`."""
    for word in launch.argv:
        if word.startswith("-"):
            return None
        which = shutil.which(word, path=environment.get("PATH"))
        found = _python_of_script(Path(which), environment) if which else None
        if found is not None:
            return found
        sibling = Path(sys.executable).parent / word  # a program of this package that is not on PATH
        if "/" not in word and which is None and sibling.is_file():
            return Path(sys.executable)
    return None


def _python_of_script(script: Path, environment: Mapping[str, str]) -> Path | None:
    try:
        with script.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    if long := _LONG.search(head):
        return Path(long[1])
    match = _SHEBANG.match(head)
    if match is None:
        return None
    if Path(match[1]).name == "env" and match[2]:
        found = shutil.which(match[2], path=environment.get("PATH"))
        return Path(found) if found and "python" in match[2] else None
    return Path(match[1]) if "python" in Path(match[1]).name else None
