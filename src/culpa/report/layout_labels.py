"""Words and colours of the picture of a layout, in English and Chinese."""

import tomllib
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict

Language = Literal["en", "zh"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    en: str
    zh: str


class LayerLabel(_Table):
    """A kind of layer: a letter where there is no colour, and a colour as #rrggbb."""

    letter: str
    colour: str
    short: _Table


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    layer: dict[str, LayerLabel]
    text: dict[str, _Table]


@cache
def _file() -> _File:
    file = resources.files("culpa.report").joinpath("data", "layout_labels.toml")
    return _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


def layer_label(kind: str) -> LayerLabel:
    """Letter, colour and words of a kind of layer."""
    return _file().layer[kind]


def label(name: str, language: Language, **values: object) -> str:
    """The words of that name, filled in."""
    entry = _file().text[name]
    return (entry.zh if language == "zh" else entry.en).format(**values)


def kind_name(kind: str, language: Language) -> str:
    """A kind of layer in one or two words."""
    short = layer_label(kind).short
    return short.zh if language == "zh" else short.en


def kind_words(kind: str, language: Language) -> str:
    """A kind of layer in words."""
    entry = layer_label(kind)
    return entry.zh if language == "zh" else entry.en
