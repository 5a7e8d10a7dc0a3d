"""The data file of what is taken out and what stays, loaded once and checked."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

import re2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Kind = Literal["secret", "user", "host", "address", "mail", "mac", "login", "prompt"]


def compiled(expression: str, *, ignore_case: bool = False) -> Any:
    """An RE2 expression over Latin-1 bytes: its time grows with the length of the text only."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(expression.encode("latin-1"), options)


def _public(url: str) -> str:
    if not url.startswith("https://"):
        raise ValueError(f"source must be a public URL, not {url!r}")
    return url


_Url = Annotated[str, AfterValidator(_public)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Rule(_Entry):
    id: str
    regex: str
    source: _Url
    samples: tuple[str, ...] = Field(min_length=1)
    ignore_case: bool = False

    @model_validator(mode="after")
    def _finds_its_samples(self) -> "_Rule":
        pattern = compiled(self.regex, ignore_case=self.ignore_case)
        if pattern.groups != 1:
            raise ValueError(f"{self.id}: needs exactly one group, what is taken out")
        for sample in self.samples:
            if pattern.search(sample.encode("latin-1")) is None:
                raise ValueError(f"{self.id}: does not find its sample {sample!r}")
        return self


class _Shape(_Rule):
    shown_as: str
    mixed: bool = False
    not_words: tuple[str, ...] = ()


class _Place(_Rule):
    kind: Kind


class _Names(_Entry):
    source: _Url
    endings: tuple[str, ...]
    weak_endings: tuple[str, ...]
    never: tuple[str, ...]
    harmless: tuple[str, ...]


class _Hosts(_Entry):
    public: tuple[str, ...]
    words: tuple[str, ...]


class _File(_Entry):
    shape: tuple[_Shape, ...]
    names: _Names
    place: tuple[_Place, ...]
    hosts: _Hosts


@dataclass(frozen=True, slots=True)
class Rule:
    """One expression whose group 1 is taken out. `mixed` ones count only where capitals, small letters and figures
    occur; `not_words` are no finds."""

    id: str
    kind: Kind
    pattern: Any
    mixed: bool = False
    not_words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Table:
    """All of the data file. Names are tuples of lower-case words."""

    shapes: tuple[Rule, ...]
    places: tuple[Rule, ...]
    endings: frozenset[tuple[str, ...]]
    weak_endings: frozenset[tuple[str, ...]]
    never: frozenset[tuple[str, ...]]
    harmless: frozenset[str]
    public_hosts: frozenset[str]
    host_words: frozenset[str]


@cache
def load_table() -> Table:
    """The table of the package. Raises ValueError where an entry is wrong or does not find its own samples."""
    text = files("culpa.redaction").joinpath("data/patterns.toml").read_text(encoding="utf-8")
    read = _File.model_validate(tomllib.loads(text))
    return Table(
        shapes=tuple(
            Rule(
                one.id,
                "secret",
                compiled(one.regex, ignore_case=one.ignore_case),
                one.mixed,
                frozenset(one.not_words),
            )
            for one in read.shape
        ),
        places=tuple(
            Rule(one.id, one.kind, compiled(one.regex, ignore_case=one.ignore_case)) for one in read.place
        ),
        endings=_words(read.names.endings),
        weak_endings=_words(read.names.weak_endings),
        never=_words(read.names.never),
        harmless=frozenset(read.names.harmless),
        public_hosts=frozenset(read.hosts.public),
        host_words=frozenset(read.hosts.words),
    )


def _words(names: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(name.split()) for name in names)
