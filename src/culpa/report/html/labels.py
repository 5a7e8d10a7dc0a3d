"""The words of the page in English and Chinese."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict

from culpa.model import Experiment, Finding, Level, Signature
from culpa.report import chinese, words

Language = Literal["en", "zh"]
_ABBREVIATIONS = ("CUDA", "NCCL", "NaN", "OOM", "KV", "GPU", "ECC", "GSP", "HTTP", "cuBLAS")


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
        entry = _file().purpose.get(name)
        return self._said(entry) if entry is not None else name.replace("_", " ")

    def say(self, sentence: str) -> str:
        """A sentence of culpa's own in the language; what an engine wrote, and what has no translation, stays."""
        if self.language == "en":
            return sentence
        if sentence.endswith("."):
            found = chinese.known(sentence.removesuffix("."))
            if found is not None:
                return f"{found}。"
        return chinese.known(sentence) or sentence

    def claim(self, finding: Finding, *, alone: bool) -> str:
        """What was shown of a set of factors."""
        return chinese.claim(finding, alone) if self.language == "zh" else words.claim(finding, alone)

    def support(self, finding: Finding) -> list[str]:
        """The counts behind a claim."""
        return chinese.support(finding) if self.language == "zh" else words.support(finding)

    def meaning(self, level: Level) -> str:
        """What a level of a claim says."""
        return chinese.LEVEL_MEANING[level] if self.language == "zh" else words.LEVEL_MEANING[level]

    def headline(self, experiment: Experiment) -> str:
        """The conclusion in one line."""
        findings = experiment.conclusion.findings
        if findings:
            return self.claim(findings[0], alone=len(findings) == 1)
        return self.say(words.headline(experiment))

    def symptom(self, signature: Signature) -> str:
        """The class of a failure, with the capitals of its abbreviations."""
        if self.language == "zh":
            return chinese.symptom(signature.symptom)
        text = words.symptom(signature)
        for name in _ABBREVIATIONS:
            text = re.sub(rf"\b{name}\b", name, text, flags=re.IGNORECASE)
        return text[:1].upper() + text[1:]

    def _said(self, entry: _Words) -> str:
        return entry.zh if self.language == "zh" else entry.en
