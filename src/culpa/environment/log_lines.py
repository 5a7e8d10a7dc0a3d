"""The data file `said.toml` against lines: what a log or a pasted report says of the environment."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import re2
from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa.environment.secrets import shown, shown_variable
from culpa.environment.tables import is_relevant
from culpa.model.environment import Fact
from culpa.model.redact import printable
from culpa.triage.tables import Expression, Url

_MOST_LINE = 4096
_MOST_FACTS = 4096
_VARIABLE = re.compile(r"^([A-Z][A-Z0-9_]{3,60})=(.{1,300})$")
# `nvidia-smi topo -m`, which reports of vLLM end with.
_TOPOLOGY_HEAD = re.compile(r"^\s{0,20}(?:GPU\d{1,3}\s{1,12}){1,32}")
_TOPOLOGY_ROW = re.compile(
    r"^\s{0,20}GPU(\d{1,3})\s{1,12}((?:(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX)\s{1,12}){1,32})"
)


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    regex: Expression
    literals: tuple[str, ...] = Field(min_length=1)
    source: Url
    samples: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _checked(self) -> "_Said":
        for sample in self.samples:
            if not re.search(self.regex, sample):
                raise ValueError(f"{self.regex!r} does not match its sample {sample!r}")
            if not any(literal in sample.lower() for literal in self.literals):
                raise ValueError(f"no literal of {self.key} is in its sample {sample!r}")
        return self


@dataclass(frozen=True, slots=True)
class _Rule:
    key: str
    regex: re.Pattern[str]
    literals: tuple[str, ...]


@cache
def _rules() -> tuple[_Rule, ...]:
    text = files("culpa.environment").joinpath("data", "said.toml").read_text("utf-8")
    said = [_Said.model_validate(row) for row in tomllib.loads(text)["said"]]
    return tuple(_Rule(one.key, re.compile(one.regex), one.literals) for one in said)


@cache
def _quick() -> "re2._Regexp":
    """One search on bytes for everything that a line could be worth reading for, in time linear in the text."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    literals = {literal for rule in _rules() for literal in rule.literals}
    wanted = "|".join(re.escape(literal) for literal in sorted(literals))
    return re2.compile(rf"(?:{wanted})|(?-i:[A-Z][A-Z0-9_]{{3,60}}=)|(?-i:GPU\d+\s)".encode(), options)


class LineFacts:
    """Grows with the lines; bounded. What is said first counts: later lines of a log may speak of something else."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._topology = False

    def feed(self, block: bytes, name: str, first: int) -> None:
        """Whole lines as bytes; `first` is the number of the first, `name` that of the log."""
        quick = _quick().search
        if quick(block) is None:
            return
        for number, raw in enumerate(block.split(b"\n"), start=first):
            if quick(raw) is None and not self._topology:
                continue
            if len(raw) <= _MOST_LINE or raw.lstrip()[:1] != b"{":
                self._line(
                    printable(raw[:_MOST_LINE].decode("utf-8", "replace")).rstrip(), f"{name} line {number}"
                )

    def facts(self) -> Iterator[Fact]:
        """What was said, in the order of saying."""
        yield from self._facts.values()

    def _line(self, text: str, where: str) -> None:
        if not text:
            return
        lowered = text.lower()
        for rule in _rules():
            if any(literal in lowered for literal in rule.literals) and (match := rule.regex.search(text)):
                groups = match.groupdict()
                value = next(
                    text for name, text in groups.items() if name.startswith("value") and text is not None
                )
                names = {
                    name: re.sub(r"[-_.]+", "-", text).lower()
                    for name, text in groups.items()
                    if text is not None and not name.startswith("value")
                }
                self._put(Fact(rule.key.format(**names), shown(value.strip()), where))
        if (match := _VARIABLE.match(text)) and is_relevant(match[1]):
            self._put(Fact(f"variable.{match[1]}", shown_variable(match[1], match[2]), where))
        self._links(text, where)

    def _links(self, text: str, where: str) -> None:
        if row := (_TOPOLOGY_ROW.match(text) if self._topology else None):
            left = int(row[1])
            for right, way in enumerate(row[2].split()):
                if left < right and way != "X":
                    self._put(Fact(f"link.{left}-{right}", way, where))
        else:
            self._topology = _TOPOLOGY_HEAD.match(text) is not None

    def _put(self, fact: Fact) -> None:
        if len(self._facts) < _MOST_FACTS:
            self._facts.setdefault(fact.key, fact)


def facts_of_lines(lines: Iterable[str], name: str) -> list[Fact]:
    """What a few lines say."""
    found = LineFacts()
    found.feed("\n".join(lines).encode("utf-8", "replace"), name, 1)
    return list(found.facts())
