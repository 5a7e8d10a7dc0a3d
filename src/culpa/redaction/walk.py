"""Whole values with every text in them redacted: data classes, tuples, dictionaries."""

import dataclasses
import re
import shlex
from enum import Enum
from typing import Any, TypeVar

from culpa.model import Factor, Launch
from culpa.redaction.redactor import Redactor

T = TypeVar("T")
_NAME = re.compile(r"--?[A-Za-z][\w.-]{0,80}|[A-Za-z_][\w.-]{0,80}", re.ASCII)


def learn_all(redactor: Redactor, value: object) -> None:
    """Learn from every text in the value; of a pair of texts the first is the name of the second."""
    if isinstance(value, Enum):
        return
    if isinstance(value, Launch):
        redactor.learn(value.command_line())
    elif isinstance(value, str):
        redactor.learn(value)
    elif isinstance(value, tuple | list):
        if _is_pair(value):
            redactor.learn(f"{value[0]}={value[1]}")
        else:
            for item in value:
                learn_all(redactor, item)
    elif isinstance(value, dict):
        for name, item in value.items():
            learn_all(redactor, (_name_of(value, str(name)), item) if isinstance(item, str) else item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            learn_all(redactor, getattr(value, field.name))


def redact_all(redactor: Redactor, value: T) -> T:
    """The same value with every text in it redacted; numbers, enumerations and names of fields stay."""
    done: Any = _redacted(redactor, value)
    return done  # type: ignore[no-any-return]


def _redacted(redactor: Redactor, value: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Launch):
        return _launch(redactor, value)
    if isinstance(value, Factor):
        return _factor(redactor, value)
    if isinstance(value, tuple | list):
        if _is_pair(value):
            return type(value)((redactor.text(value[0]), redactor.named(value[0], value[1])))
        return type(value)(_redacted(redactor, item) for item in value)
    if isinstance(value, dict):
        return {
            redactor.text(str(name)): redactor.named(_name_of(value, str(name)), item)
            if isinstance(item, str)
            else _redacted(redactor, item)
            for name, item in value.items()
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: _redacted(redactor, getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **changes)
    return value


def _is_pair(value: tuple[Any, ...] | list[Any]) -> bool:
    return (
        len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], str)
        and _NAME.fullmatch(value[0]) is not None
    )


def _name_of(row: dict[Any, Any], name: str) -> str:
    """The name of an item; of `{"key": "variable.HF_TOKEN", "value": ...}` it is the key that names the value."""
    named = row.get("key", row.get("name")) if name == "value" else None
    return named.rpartition(".")[2] if isinstance(named, str) and named else name


def _launch(redactor: Redactor, launch: Launch) -> Launch:
    """A launch is redacted as one line: which word is a secret is told by the word before it."""
    env = tuple(
        (redactor.text(name), None if value is None else redactor.named(name, value))
        for name, value in launch.env
    )
    line = redactor.text(dataclasses.replace(launch, env=()).command_line())
    try:
        argv = tuple(shlex.split(line))
    except ValueError:  # a quotation mark went with a secret
        argv = (line,)
    cwd = None if launch.cwd is None else redactor.text(launch.cwd)
    return Launch(argv=argv, env=env, cwd=cwd)


def _factor(redactor: Redactor, factor: Factor) -> Factor:
    """Levels that were told apart by a secret only are still told apart."""
    suspect = redactor.named(factor.name, factor.suspect)
    safe = tuple(redactor.named(factor.name, level) for level in factor.safe)
    safe = tuple(level if level != suspect else f"{level} (another)" for level in safe)
    return dataclasses.replace(
        factor,
        name=redactor.text(factor.name),
        suspect=suspect,
        safe=safe,
        meaning=redactor.text(factor.meaning),
    )
