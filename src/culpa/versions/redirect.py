"""A launch, turned to the environment of one version. Pure but for looking whether a program is there."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from culpa.engines.command import first_program
from culpa.model import Launch
from culpa.versions.errors import BadVersions

PLACEHOLDER = "{version}"
ROOT_PLACEHOLDER = "{root}"
_PYTHON = re.compile(r"python[\d.]*")
# Switches of the interpreter that make it look past PYTHONPATH.
_ISOLATED = re.compile(r"-[a-zA-Z]*[IE][a-zA-Z]*")


def has_placeholder(launch: Launch, placeholder: str = PLACEHOLDER) -> bool:
    """Whether the launch says itself where the version goes."""
    return any(placeholder in text for text in (*launch.argv, *(value or "" for _, value in launch.env)))


def filled(launch: Launch, values: Mapping[str, str]) -> Launch:
    """The launch with placeholders replaced, in words and in values of variables."""

    def fill(text: str) -> str:
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        return text

    return Launch(
        tuple(fill(word) for word in launch.argv),
        tuple((name, value if value is None else fill(value)) for name, value in launch.env),
        launch.cwd,
    )


def with_first_on_path(launch: Launch, folder: Path, surrounding: Mapping[str, str]) -> Launch:
    """The launch with a folder of packages that are found before all others."""
    known = dict(launch.env)
    before = known["PYTHONPATH"] if "PYTHONPATH" in known else surrounding.get("PYTHONPATH")
    return launch.with_variable("PYTHONPATH", f"{folder}:{before}" if before else str(folder))


def in_environment(launch: Launch, prefix: Path, surrounding: Mapping[str, str]) -> Launch:
    """The launch with interpreter and commands of the virtual environment at `prefix`."""
    argv = list(launch.argv)
    index = _program_index(launch)
    name = PurePosixPath(argv[index]).name
    argv[index] = str(prefix / "bin" / ("python" if _PYTHON.fullmatch(name) else name))
    path = launch.environment(surrounding).get("PATH", "")
    launch = launch.with_argv(tuple(argv)).with_variable("PATH", f"{prefix / 'bin'}:{path}")
    return launch.with_variable("VIRTUAL_ENV", str(prefix)).with_variable("PYTHONHOME", None)


def command_in(launch: Launch, prefix: Path) -> Path:
    """The program that the launch would run in that environment."""
    name = PurePosixPath(launch.argv[_program_index(launch)]).name
    return prefix / "bin" / ("python" if _PYTHON.fullmatch(name) else name)


def interpreter_of(launch: Launch, surrounding: Mapping[str, str]) -> Path | None:
    """The Python that runs the launch: named in it, or in the first line of its command. None if there is none."""
    word = launch.argv[_program_index(launch)]
    found = shutil.which(word, path=launch.environment(surrounding).get("PATH"))
    if found is None:
        return None
    if _PYTHON.fullmatch(PurePosixPath(word).name):
        return Path(found)
    try:
        with Path(found).open("rb") as script:
            first = script.readline(512).decode("utf-8", "replace")
    except OSError:
        return None
    parts = first[2:].split() if first.startswith("#!") else []
    if len(parts) > 1 and PurePosixPath(parts[0]).name == "env":
        named = shutil.which(parts[1], path=launch.environment(surrounding).get("PATH"))
        return Path(named) if named else None
    return Path(parts[0]) if parts and _PYTHON.fullmatch(PurePosixPath(parts[0]).name) else None


def check_sees_path(launch: Launch) -> None:
    """Raises BadVersions where the interpreter is told to look past PYTHONPATH."""
    index = _program_index(launch)
    for word in launch.argv[index + 1 :]:
        if not word.startswith("-") or word == "-m":
            return
        if _ISOLATED.fullmatch(word):
            raise BadVersions(
                f"{word} makes Python look past the packages of a version: leave it out of the command, or use "
                "--environment own"
            )


def _program_index(launch: Launch) -> int:
    """Where the interpreter stands, or the command itself, behind wrappers such as numactl."""
    program = first_program(launch.argv)
    if not (program.module or program.script):
        return program.index
    before = range(program.index - 1, -1, -1)
    return next(
        (place for place in before if _PYTHON.fullmatch(PurePosixPath(launch.argv[place]).name)),
        program.index,
    )
