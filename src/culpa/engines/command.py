"""Reads the command that starts an engine, and finds the engine's program behind wrappers such as numactl."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from culpa.engines.errors import BadLaunch
from culpa.model import Launch

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_SHELL_WORDS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_REMOTE = frozenset({"docker", "podman", "nerdctl", "kubectl", "ssh", "srun", "apptainer", "singularity"})
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_EXAMPLE = "culpa isolate -- llama-server -m model.gguf -c 4096"


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """A program that starts another one: its options that take a word, and how many plain words it takes."""

    valued: frozenset[str] = frozenset()
    positional: int = 0
    subcommand: str | None = None


def _wrapper(valued: str = "", positional: int = 0, subcommand: str | None = None) -> _Wrapper:
    return _Wrapper(frozenset(valued.split()), positional, subcommand)


_WRAPPERS: dict[str, _Wrapper] = {
    "catchsegv": _wrapper(),
    "chrt": _wrapper("-T -P -D", positional=1),
    "conda": _wrapper("-n --name -p --prefix", subcommand="run"),
    "env": _wrapper("-u --unset -C --chdir"),
    "ionice": _wrapper("-c -n --class --classdata"),
    "micromamba": _wrapper("-n --name -p --prefix", subcommand="run"),
    "nice": _wrapper("-n --adjustment"),
    "nohup": _wrapper(),
    "numactl": _wrapper("-N -m -C -i -p --cpunodebind --membind --physcpubind --interleave --preferred"),
    "pdm": _wrapper("-p", subcommand="run"),
    "pixi": _wrapper("-e --environment", subcommand="run"),
    "poetry": _wrapper("-C", subcommand="run"),
    "prlimit": _wrapper(),
    "setsid": _wrapper(),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "sudo": _wrapper("-u -g"),
    "taskset": _wrapper(positional=1),
    "time": _wrapper("-f -o"),
    "timeout": _wrapper("-k -s --kill-after --signal", positional=1),
    "uv": _wrapper("--with --python -p --extra --group --env-file --directory --project", subcommand="run"),
    "uvx": _wrapper("--with --python -p --from"),
}


@dataclass(frozen=True, slots=True)
class Program:
    """Where the engine's program stands in an argument vector, and where its own arguments begin."""

    name: str  # last part of a path, or the module's name
    index: int
    arguments: int
    module: bool = False
    script: bool = False  # a file that an interpreter reads: it is looked for by path only


def parse_command(words: Sequence[str]) -> Launch:
    """The launch that a command describes.

    Takes assignments in front (`A=B engine ...`), `env [-u X] A=B engine ...`, and the whole command as one
    quoted word. Wrappers stay in argv as they are. Raises BadLaunch with one line that says what to do.
    """
    words = _unquoted(list(words))
    env: dict[str, str | None] = {}
    index = _take_assignments(words, 0, env)
    while index < len(words) and PurePosixPath(words[index]).name == "env":
        index = _take_env(words, index + 1, env)
    if index == len(words):
        missing = "after the assignments" if env else "given"
        raise BadLaunch(f"no command {missing}: put the engine's launch after --, for example: {_EXAMPLE}")
    argv = tuple(words[index:])
    _refuse_foreign(argv)
    return Launch(argv=argv, env=tuple(env.items()))


def find_program(
    argv: Sequence[str], names: Collection[str], modules: Collection[str] = (), scripts: Collection[str] = ()
) -> Program | None:
    """The program of that name (the last part of a path), `-m module`, or a script with that path ending.

    Looks through whatever stands in front, so that a wrapper nobody thought of does no harm.
    """
    for index, word in enumerate(argv):
        name = PurePosixPath(word).name
        if name in names:
            return Program(name, index, index + 1)
        if word == "-m" and index + 1 < len(argv) and argv[index + 1] in modules and _python(argv, index):
            return Program(argv[index + 1], index, index + 2, module=True)
        if index > 0 and any(word == script or word.endswith(f"/{script}") for script in scripts):
            return Program(name, index, index + 1, script=True)
    return None


def first_program(argv: Sequence[str]) -> Program:
    """The program that is left when known wrappers, and a Python interpreter before a script, are passed."""
    index = 0
    while index < len(argv) - 1:
        name = PurePosixPath(argv[index]).name
        wrapper = _WRAPPERS.get(name)
        if wrapper is None:
            break
        index = _after_wrapper(argv, index + 1, wrapper)
    index = min(index, len(argv) - 1)
    if _PYTHON.fullmatch(PurePosixPath(argv[index]).name):
        return _python_program(argv, index)
    return Program(PurePosixPath(argv[index]).name, index, index + 1)


def check_programs(
    launch: Launch,
    program: Program | None,
    surrounding: Mapping[str, str],
    which: Callable[..., str | None] = shutil.which,
) -> None:
    """Raises BadLaunch if the command itself, or the engine's program behind wrappers, is not to be found."""
    path = launch.environment(surrounding).get("PATH")
    own = {launch.argv[0]: False}
    if program is not None and not program.module:
        own.setdefault(launch.argv[program.index], program.script)
    for word, script in own.items():
        if "/" in word or script:
            file = Path(launch.cwd or ".") / word
            if not file.exists():
                raise BadLaunch(f"{word}: no such file")
            if file.is_dir():
                raise BadLaunch(f"{word}: is a folder, not a program")
            if word == launch.argv[0] and not os.access(file, os.X_OK):
                raise BadLaunch(f"{word}: is not executable")
        elif which(word, path=path) is None:
            raise BadLaunch(f"{word}: command not found (it is on no folder of PATH)")


def with_sibling(launch: Launch, program: Program | None, surrounding: Mapping[str, str]) -> Launch:
    """The launch with a program of this package that is not on PATH named by its full path.

    The folder of the running interpreter holds it, although a shell that did not activate the environment
    does not look there.
    """
    if program is None or program.module or "/" in launch.argv[program.index]:
        return launch
    path = launch.environment(surrounding).get("PATH")
    sibling = Path(sys.executable).parent / launch.argv[program.index]
    if shutil.which(launch.argv[program.index], path=path) is not None or not sibling.is_file():
        return launch
    argv = list(launch.argv)
    argv[program.index] = str(sibling)
    return launch.with_argv(tuple(argv))


def _unquoted(words: list[str]) -> list[str]:
    if len(words) != 1 or not re.search(r"\s", words[0]):
        return words
    try:
        words = shlex.split(words[0].replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise BadLaunch(f"the quoted command can't be read: {error}") from None
    for word in words:
        if word in _SHELL_WORDS or word.endswith(";"):
            raise BadLaunch(
                f"the quoted command uses the shell ({word}): give the engine's own command only, "
                "with A=B in front for its environment"
            )
    return words


def _take_assignments(words: list[str], index: int, env: dict[str, str | None]) -> int:
    while index < len(words) and (match := _ASSIGNMENT.fullmatch(words[index])) is not None:
        env[match["name"]] = match["value"]
        index += 1
    return index


def _take_env(words: list[str], index: int, env: dict[str, str | None]) -> int:
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        if word in ("-u", "--unset") and index + 1 < len(words):
            env[words[index + 1]] = None
            index += 2
        elif word.startswith("--unset="):
            env[word.partition("=")[2]] = None
            index += 1
        elif word.startswith("-u") and len(word) > 2:
            env[word[2:]] = None
            index += 1
        elif word == "--":
            index += 1
            break
        else:
            raise BadLaunch(
                f"env {word} is not understood here: only env [-u NAME] NAME=VALUE ... COMMAND is"
            )
    return _take_assignments(words, index, env)


def _refuse_foreign(argv: tuple[str, ...]) -> None:
    name = PurePosixPath(argv[0]).name
    if name in _SHELLS and "-c" in argv[1:3]:
        raise BadLaunch(f"{name} -c hides the engine's flags: give the engine's own command instead")
    program = first_program(argv)
    if program.name in _REMOTE:
        raise BadLaunch(
            f"{program.name} starts the engine out of reach: give the command that runs inside, "
            "and run culpa there"
        )


def _python(argv: Sequence[str], index: int) -> bool:
    return any(_PYTHON.fullmatch(PurePosixPath(word).name) for word in argv[:index])


def _python_program(argv: Sequence[str], index: int) -> Program:
    after = index + 1
    while after < len(argv) and argv[after].startswith("-"):
        if argv[after] == "-m" and after + 1 < len(argv):
            return Program(argv[after + 1], after, after + 2, module=True)
        after += 2 if argv[after] in ("-X", "-W") else 1
    if after < len(argv):
        return Program(PurePosixPath(argv[after]).name, after, after + 1, script=True)
    return Program(PurePosixPath(argv[index]).name, index, index + 1)


def _after_wrapper(argv: Sequence[str], index: int, wrapper: _Wrapper) -> int:
    if wrapper.subcommand is not None:
        while index < len(argv) and argv[index] != wrapper.subcommand:
            index += 1
        index += 1
    positional = wrapper.positional
    while index < len(argv):
        word = argv[index]
        if word == "--":
            index += 1
            break
        if word.startswith("-") and len(word) > 1:
            index += 2 if word in wrapper.valued else 1
        elif _ASSIGNMENT.fullmatch(word):
            index += 1
        elif positional > 0:
            positional -= 1
            index += 1
        else:
            break
    return index
