"""The data file `items.toml`: packages and variables that a report names, and what a difference in them weighs."""

import re
import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa.triage.tables import Expression, Url


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Package(_Entry):
    pattern: Expression
    source: Url


class _Variable(_Entry):
    prefix: str = ""
    exact: tuple[str, ...] = ()
    source: Url

    @model_validator(mode="after")
    def _one(self) -> "_Variable":
        if bool(self.prefix) == bool(self.exact):
            raise ValueError("a variable has either a prefix or exact names")
        return self


class Weight(_Entry):
    """How much a difference matters, from 0 to 100, and why."""

    key: Expression
    weight: int = Field(ge=0, le=100)
    why: str
    source: Url


class _Items(_Entry):
    package: tuple[_Package, ...]
    variable: tuple[_Variable, ...]
    weight: tuple[Weight, ...]


@cache
def _items() -> _Items:
    text = files("culpa.environment").joinpath("data", "items.toml").read_text("utf-8")
    return _Items.model_validate(tomllib.loads(text))


def package_patterns() -> tuple[str, ...]:
    """Expressions of the distributions that are worth naming."""
    return tuple(package.pattern for package in _items().package)


def is_relevant(variable: str) -> bool:
    """Whether an environment variable changes what an engine does."""
    return any(
        variable in one.exact if one.exact else variable.startswith(one.prefix) for one in _items().variable
    )


@cache
def weight_of(key: str) -> Weight:
    """What a difference in this item weighs; the last entry of the table fits everything."""
    return next(one for one in _items().weight if re.fullmatch(one.key, key))
