"""The words of the page in English and Chinese."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict

Language = Literal["en", "zh"]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    en: str
    zh: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    text: dict[str, _Words]
    purpose: dict[str, _Words]


@cache
def _file() -> _File:
    file = resources.files("culpa.report").joinpath("data", "page_labels.toml")
    return _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Labels:
    """The words in one language, by name: `labels("trial")`."""

    language: Language = "en"

    def __call__(self, name: str, /, **values: object) -> str:
        """The words of that name, filled in. Raises KeyError for a name that the file does not have."""
        return self._said(_file().text[name]).format(**values)

    def purpose(self, name: str) -> str:
        """What a trial was run for; one that the file does not have stands for itself."""
        words = _file().purpose.get(name)
        return self._said(words) if words is not None else name.replace("_", " ")

    def _said(self, words: _Words) -> str:
        return words.zh if self.language == "zh" else words.en
