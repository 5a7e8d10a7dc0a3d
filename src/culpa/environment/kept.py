"""The environment of a run, in its folder: read when it begins, completed by what the engine then said of itself."""

from pathlib import Path

from culpa.environment.from_log import read_from_logs
from culpa.environment.read import read_environment
from culpa.environment.stored import FILE, BadEnvironment, read_stored, write_environment
from culpa.host import Machine
from culpa.model import Launch
from culpa.model.environment import Environment, Fact
from culpa.sources import SourceError

_ENGINE_LOG = "engine.log"
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
    write_environment(with_said(kept, said, f"{log.parent.name}/{log.name}"), folder)


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
