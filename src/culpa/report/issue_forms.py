"""The bug-report forms of the engines, as data."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

Block = Literal[
    "environment",
    "summary",
    "reproduction",
    "error",
    "arms",
    "finding",
    "measured",
    "ruled_out",
    "not_ruled_out",
    "known_issues",
    "made_with",
    "checklist",
    "version",
    "system",
    "backends",
    "hardware",
    "model",
    "first_bad",
]
OTHER = "other"
# The reference engine is served as vLLM is, and reports like it.
_LIKE = {"culpa-lab": "vllm", "llamacpp": "llama.cpp"}


def _public(url: str) -> str:
    if url and not url.startswith("https://"):
        raise ValueError(f"must be a public URL, not {url!r}")
    return url


_Url = Annotated[str, AfterValidator(_public)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Section(_Entry):
    """A heading of a form and what is written under it."""

    heading: str
    blocks: tuple[Block, ...]


class Form(_Entry):
    """A form: where it is, how titles begin, its sections and the lines of its checklist."""

    engine: str
    title: str
    new: _Url
    source: _Url
    sections: tuple[Section, ...]
    checklist: tuple[str, ...]


class _File(_Entry):
    form: tuple[Form, ...]


@cache
def load_forms() -> dict[str, Form]:
    """The forms by engine. Raises ValueError where the data file is wrong."""
    text = files("culpa.report").joinpath("data/issue_forms.toml").read_text(encoding="utf-8")
    return {form.engine: form for form in _File.model_validate(tomllib.loads(text)).form}


def form_for(engine: str) -> Form:
    """The form of an engine by the name of its adapter; that of all others where there is none."""
    name = engine.lower()
    forms = load_forms()
    return forms.get(_LIKE.get(name, name)) or forms[OTHER]
