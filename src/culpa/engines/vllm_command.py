"""vLLM's command line where a table can't say it: the program, the model, `--config` files, `-O3`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culpa.engines.arguments import Grammar, mentions
from culpa.engines.command import Program, find_program
from culpa.engines.errors import BadLaunch
from culpa.engines.simple_yaml import NotSimple, parse_simple_yaml
from culpa.model import Launch

_SERVER_MODULES = frozenset({"vllm.entrypoints.openai.api_server"})
_COMMAND_MODULES = frozenset({"vllm", "vllm.entrypoints.cli.main"})
_SERVER_SCRIPTS = ("vllm/entrypoints/openai/api_server.py",)
_GLUED_LEVEL = re.compile(r"-O=?(\d)")
# Switches without a `--no-` form: a false one in a configuration file is no word at all.
_PLAIN_SWITCHES = frozenset({"headless", "grpc"})


@dataclass(frozen=True, slots=True)
class OptimizationLevel:
    """Where `-O3` (in any of its spellings) stands: `argv[index]`, and how many words it takes."""

    index: int
    words: int
    level: str


def find_server(argv: Sequence[str]) -> Program | None:
    """vLLM's server in a command, its own arguments behind `serve`; None if it is not there."""
    program = find_program(argv, {"vllm"}, _SERVER_MODULES | _COMMAND_MODULES, _SERVER_SCRIPTS)
    if program is None:
        return None
    if program.name in _COMMAND_MODULES or program.name == "vllm":
        if program.arguments >= len(argv) or argv[program.arguments] != "serve":
            return None
        return Program(program.name, program.index, program.arguments + 1, program.module)
    return program


def find_model(argv: Sequence[str], start: int, grammar: Grammar) -> str | None:
    """The model's path or name: the first word behind `serve`, `--model`, or a last word that is no value."""
    if start < len(argv) and argv[start - 1] == "serve" and not argv[start].startswith("-"):
        return argv[start]
    named = mentions(argv, start, grammar, valued=["--model"])
    if named:
        return named[-1].value
    if argv[start - 1] != "serve":
        return None
    taken = {
        mention.index + 1
        for mention in mentions(argv, start, grammar, valued=grammar.valued)
        if not mention.glued
    }
    free = [
        word
        for index, word in enumerate(argv[start:], start)
        if index not in taken and not word.startswith("-") and _switch(argv[index - 1])
    ]
    return free[0] if len(free) == 1 else None


def optimization_level(argv: Sequence[str], start: int) -> OptimizationLevel | None:
    """The last `-O3`, `-O 3`, `-O=3` or `--optimization-level 3`."""
    found = None
    for index in range(start, len(argv)):
        word = argv[index]
        following = argv[index + 1] if index + 1 < len(argv) else ""
        flag, _, glued = word.replace("_", "-").partition("=")
        if match := _GLUED_LEVEL.fullmatch(word):
            found = OptimizationLevel(index, 1, match[1])
        elif word in ("-O", "--optimization-level", "--optimization_level") and re.fullmatch(
            r"\d", following
        ):
            found = OptimizationLevel(index, 2, following)
        elif flag == "--optimization-level" and glued:
            found = OptimizationLevel(index, 1, glued)
    return found


def with_config_file(launch: Launch, start: int) -> Launch:
    """The launch with the words that its `--config` file stands for in place of the file.

    vLLM itself puts them behind the model and in front of the command line's own flags, which therefore win.
    Raises BadLaunch if the file is not there, NotSimple if it uses more of YAML than is understood here.
    """
    if "--config" not in launch.argv[start:]:
        return launch
    index = launch.argv.index("--config", start)
    if index + 1 >= len(launch.argv):
        raise BadLaunch("--config: no file is named")
    name = launch.argv[index + 1]
    file = Path(launch.cwd or ".") / name
    try:
        settings = parse_simple_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadLaunch(f"--config {name}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadLaunch(f"--config {name}: can't be read: {error}") from None
    except NotSimple as error:
        raise NotSimple(f"--config {name}, {error}") from None
    before, behind = list(launch.argv[start:index]), list(launch.argv[index + 2 :])
    own: list[str] = []
    if before and launch.argv[start - 1] == "serve" and not before[0].startswith("-"):
        own = [before.pop(0)]
        settings.pop("model", None)
    return launch.with_argv((*launch.argv[:start], *own, *_as_words(settings), *before, *behind))


def config_file_keys(launch: Launch, start: int) -> frozenset[str]:
    """The top-level keys of a `--config` file that can't be read as a whole, as flags."""
    index = launch.argv.index("--config", start)
    text = (Path(launch.cwd or ".") / launch.argv[index + 1]).read_text(encoding="utf-8")
    keys = re.findall(r"^['\"]?([A-Za-z][\w.-]*)['\"]?\s*:", text, re.MULTILINE)
    return frozenset(f"--{key.replace('_', '-')}" for key in keys)


def _as_words(settings: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for key, value in settings.items():
        if value is True:
            words.append(f"--{key}")
        elif value is False:
            if key not in _PLAIN_SWITCHES:
                words.append(f"--no-{key}")
        elif isinstance(value, list):
            words += [f"--{key}", *map(str, value)] if value else []
        else:
            words += [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def _switch(word: str) -> bool:
    """Whether a word in front of a free word takes no value, as far as its name tells."""
    return (
        word == "serve"
        or "=" in word
        or re.match(r"--(no|enable|disable|enforce|trust)[-_]", word) is not None
    )
