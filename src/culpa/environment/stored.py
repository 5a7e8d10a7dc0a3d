"""Environments as JSON (schema culpa.environment/1): written into a run's folder, read again from wherever they lie."""

import json
from pathlib import Path
from typing import Any

import culpa
from culpa.model.environment import Environment, Fact
from culpa.written import write_whole

SCHEMA = "culpa.environment/1"
FILE = "environment.json"


class BadEnvironment(ValueError):
    """A file or folder holds no environment; the message is one line for the user."""


def environment_document(environment: Environment) -> dict[str, Any]:
    """The document as plain data."""
    return {
        "schema": SCHEMA,
        "culpa_version": culpa.__version__,
        "origin": environment.origin,
        "taken": environment.taken or None,
        "facts": [
            {"key": fact.key, "value": fact.value, "source": fact.source, "reason": fact.reason}
            for fact in environment.facts
        ],
        "settings": dict(environment.settings),
    }


def write_environment(environment: Environment, folder: Path) -> Path:
    """Write `environment.json` into a folder, whole or not at all; its path. Raises OSError."""
    path = folder / FILE
    write_whole(path, json.dumps(environment_document(environment), indent=1, ensure_ascii=True) + "\n")
    return path


def read_stored(path: Path) -> Environment:
    """An environment from a file of `culpa env --json`, or from a run's folder. Raises BadEnvironment."""
    file = path / FILE if path.is_dir() else path
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = f"holds no {FILE}: an older culpa made this run" if path.is_dir() else "does not exist"
        raise BadEnvironment(f"{path} {what}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadEnvironment(f"{file} can't be read as JSON: {error}") from None
    return parse_environment(content, str(path))


def parse_environment(content: object, name: str) -> Environment:
    """An environment from plain data. Raises BadEnvironment."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadEnvironment(f"{name} is no file of culpa env --json (schema {SCHEMA})")
    try:
        facts = tuple(
            Fact(
                key=_text(row["key"]),
                value=None if row["value"] is None else _text(row["value"]),
                source=_text(row.get("source", "")),
                reason=_text(row.get("reason", "")),
            )
            for row in content["facts"]
        )
        settings = {
            _text(key): value
            for key, value in content.get("settings", {}).items()
            if isinstance(value, str | int | float | bool)
        }
        return Environment(
            origin=_text(content["origin"]),
            facts=facts,
            settings=tuple(settings.items()),
            taken=_text(content.get("taken") or ""),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadEnvironment(f"{name} is damaged: {type(error).__name__} {error}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value
