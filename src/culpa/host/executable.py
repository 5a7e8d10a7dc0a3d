"""Finding the program that a launch names, the way a POSIX shell would, before anything is started."""

import os
from collections.abc import Mapping
from pathlib import Path

from culpa.model.redact import printable


class CannotStart(Exception):
    """The engine could not be started. The message is one clear line for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message).replace("\n", " "))


def find_executable(word: str, env: Mapping[str, str], cwd: Path) -> Path:
    """The absolute path of the program that `word` means.

    A word with a slash is a path, relative to `cwd`; any other word is searched for in the PATH of `env`.
    Raises CannotStart: not found, a folder, or not executable.
    """
    if not word:
        raise CannotStart("the command is empty: its first word is ''")
    if "/" in word:
        path = cwd / word
        if path.is_dir():
            raise CannotStart(f"{word} is a folder, not a program")
        if not path.exists():
            raise CannotStart(f"{word} does not exist{_relative_to(word, cwd)}")
        if not os.access(path, os.X_OK):
            raise CannotStart(f"{word} is not executable (chmod +x {word}, if it is a program)")
        return path
    places = [cwd / place for place in env.get("PATH", os.defpath).split(os.pathsep)]
    refused: Path | None = None
    for place in places:
        path = place / word
        if path.is_file():
            if os.access(path, os.X_OK):
                return path
            refused = refused or path
    if refused is not None:
        raise CannotStart(f"{word} is not executable: {refused}")
    if (cwd / word).is_file():
        raise CannotStart(
            f"command not found: {word} (a file of this name is in the working folder: ./{word})"
        )
    searched = "the PATH of the launch" if env.get("PATH") else "PATH, which is not set in the launch"
    raise CannotStart(f"command not found: {word} (searched {searched})")


def working_folder(cwd: str | None) -> Path:
    """The absolute working folder of a launch. Raises CannotStart if it is missing or no folder."""
    path = Path.cwd() / (cwd or "")
    if not path.exists():
        raise CannotStart(f"the working folder does not exist: {cwd}")
    if not path.is_dir():
        raise CannotStart(f"the working folder is not a folder: {cwd}")
    if not os.access(path, os.X_OK):
        raise CannotStart(f"the working folder may not be entered: {cwd}")
    return path


def why_refused(path: Path, number: int, text: str) -> str:
    """A line that says why the kernel did not run a program that is there and executable."""
    try:
        with path.open("rb") as file:
            first = file.read(256).split(b"\n", 1)[0].decode(errors="replace")
    except OSError:
        first = ""
    if first.startswith("#!"):
        interpreter = first[2:].strip().split(" ", 1)[0]
        if interpreter and not Path(interpreter).exists():
            return f"{path} asks for an interpreter that does not exist: {interpreter}"
    elif os.strerror(number) == "Exec format error":
        return f"{path} is no program for this machine: no #! line, or another architecture"
    return f"{path} could not be started: {text}"


def _relative_to(word: str, cwd: Path) -> str:
    return "" if word.startswith("/") else f" in {cwd}"
