"""Environments from whatever a user names: a file of `culpa env --json`, a run's folder, or a log."""

from pathlib import Path

from culpa.environment.from_log import read_from_logs
from culpa.environment.stored import FILE, SCHEMA, BadEnvironment, read_stored
from culpa.model.environment import Environment
from culpa.sources import SourceError

_HEAD = 4096


def load_environment(path: Path) -> Environment:
    """Raises BadEnvironment for what is none of the three, SourceError for a log that can't be read."""
    if path.is_dir():
        if not (path / FILE).exists() and (log := _first_log(path)) is not None:
            return read_from_logs(
                [log]
            )  # a run of an older culpa has no stored environment, but its engine's log
        return read_stored(path)
    if not path.exists():
        raise BadEnvironment(
            f"{path} does not exist: name a file of culpa env --json, a run's folder, or a log"
        )
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise SourceError(f"{path} can't be read: {error.strerror or error}") from error
    return read_stored(path) if SCHEMA.encode() in head else read_from_logs([path])


def _first_log(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("trials/*/engine.log"))), None)
