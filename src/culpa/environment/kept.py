"""The environment of a run, in its folder: read when it begins, completed by what the engine then said of itself."""

import json
from pathlib import Path

from culpa.environment.from_log import read_from_logs
from culpa.environment.read import read_environment
from culpa.environment.secrets import shown
from culpa.environment.stored import FILE, BadEnvironment, read_stored, write_environment
from culpa.host import Machine
from culpa.model import Launch
from culpa.model.environment import Environment, Fact
from culpa.sources import SourceError

_ENGINE_LOG = "engine.log"
_EFFECTIVE = "effective.json"
_VERSION = "engine.version"
_SAID = frozenset({"backend", "setting", "engine", "package"})


def keep_environment(folder: Path, launch: Launch, machine: Machine) -> None:
    """Write what surrounds a run that begins. What is there already is that of the beginning, and stays."""
    if not (folder / FILE).exists():
        write_environment(read_environment(launch, machine=machine), folder)


def complete_environment(folder: Path) -> None:
    """Add what the engine said of itself in the first trial of the launch as it is: backends, settings in force.

    What the engine says overrules what the command asked for. Nothing happens where there is no such log.
    """
    log = next(iter(sorted(folder.glob(f"trials/*/{_ENGINE_LOG}"))), None)
    if log is None:
        return
    try:
        kept, said = read_stored(folder), read_from_logs([log])
    except (BadEnvironment, SourceError):
        return  # an empty log says nothing, and a damaged file is told where it is read
    found = with_said(kept, said, f"{log.parent.name}/{log.name}")
    version = _own_version(log.parent / _EFFECTIVE)
    if version is not None:
        told = Fact(_VERSION, version, f"the engine itself, in trial {log.parent.name}")
        rest = tuple(told if fact.key == _VERSION else fact for fact in found.facts)
        found = Environment(found.origin, rest, found.settings, found.taken)
    write_environment(found, folder)


def _own_version(file: Path) -> str | None:
    """The release that the engine gave as its own; what is installed may be another, as with a build from source."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    version = content.get("engine_version") if isinstance(content, dict) else None
    return shown(version) if isinstance(version, str) and version else None


def with_said(kept: Environment, said: Environment, name: str) -> Environment:
    """An environment with what the engine's log adds to it."""
    told = [
        Fact(fact.key, fact.value, f"trial {name}: {fact.source}")
        for fact in said.facts
        if fact.value is not None and fact.section in _SAID
    ]
    # The engine's name and release were read from what is installed: a log that names a file in its path knows less.
    overruled = {fact.key for fact in told if fact.section in ("setting", "backend")}
    rest = Environment(kept.origin, tuple(fact for fact in kept.facts if fact.key not in overruled))
    settings = {**dict(kept.settings), **dict(said.settings)}
    return Environment(kept.origin, rest.completed(told), tuple(settings.items()), kept.taken)
