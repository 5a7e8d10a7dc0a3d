"""The data file `settings.toml`: under which names engines print their configuration, release and themselves."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa.triage.tables import Expression, Url

Kind = Literal["bool", "int", "number", "text", "speculation", "presence"]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Setting(_Entry):
    """One setting: the name used here and those that engines use. See the head of settings.toml."""

    key: str
    names: tuple[str, ...]
    negated: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    default: str | None = None
    kind: Kind
    source: Url


class _Line(_Entry):
    regex: Expression
    literals: tuple[str, ...] = Field(min_length=1)
    source: Url
    samples: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _checked(self) -> "_Line":
        for sample in self.samples:
            if not re.search(self.regex, sample):
                raise ValueError(f"{self.regex!r} does not match its sample {sample!r}")
            if not any(literal in sample.lower() for literal in self.literals):
                raise ValueError(f"no literal of {self.regex!r} is in its sample {sample!r}")
        return self


class _Said(_Line):
    key: str
    value: str | None = None
    kind: Literal["int", "text"] = "text"
    strong: bool = False


class _Named(_Line):
    engine: str


class _SettingsFile(_Entry):
    setting: tuple[Setting, ...]
    said: tuple[_Said, ...]
    release: tuple[_Named, ...]
    speaks: tuple[_Named, ...]


@dataclass(frozen=True, slots=True)
class SaidRule:
    """A line by which an engine says what it chose."""

    key: str
    regex: re.Pattern[str]
    literals: tuple[str, ...]
    value: str | None
    number: bool
    strong: bool


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A line that names an engine, or its release."""

    engine: str
    regex: re.Pattern[str]
    literals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole table, ready to be matched against lines."""

    settings: tuple[Setting, ...]
    by_name: dict[str, tuple[Setting, bool]]
    by_flag: dict[str, tuple[Setting, bool]]
    by_env: dict[str, Setting]
    said: tuple[SaidRule, ...]
    releases: tuple[NamedRule, ...]
    speaks: tuple[NamedRule, ...]


@cache
def load_settings() -> Settings:
    """The table, checked; the second value of `by_name` and `by_flag` is whether that name negates the setting."""
    text = files("culpa.triage").joinpath("data", "settings.toml").read_text("utf-8")
    content = _SettingsFile.model_validate(tomllib.loads(text))
    by_name: dict[str, tuple[Setting, bool]] = {}
    by_flag: dict[str, tuple[Setting, bool]] = {}
    by_env: dict[str, Setting] = {}
    for setting in content.setting:
        by_name.update(dict.fromkeys(setting.names, (setting, False)))
        by_name.update(dict.fromkeys(setting.negated, (setting, True)))
        by_flag.update(dict.fromkeys(setting.flags, (setting, False)))
        by_flag.update(dict.fromkeys(setting.off, (setting, True)))
        by_env.update(dict.fromkeys(setting.env, setting))
    return Settings(
        settings=content.setting,
        by_name=by_name,
        by_flag=by_flag,
        by_env=by_env,
        said=tuple(
            SaidRule(one.key, re.compile(one.regex), one.literals, one.value, one.kind == "int", one.strong)
            for one in content.said
        ),
        releases=tuple(NamedRule(one.engine, re.compile(one.regex), one.literals) for one in content.release),
        speaks=tuple(NamedRule(one.engine, re.compile(one.regex), one.literals) for one in content.speaks),
    )
