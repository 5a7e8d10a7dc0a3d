"""The two data files of triage, loaded once and checked: how lines begin, and what lines mean."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Any, Literal

import re2
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

_MAX_FIRST = 4096
EventRole = Literal[
    "cause", "clue", "echo", "symptom", "consequence", "header", "handled", "shutdown", "recovery", "noise"
]
Layer = Literal["wrapper", "process", "record"]
ENGINES = frozenset(
    {"any", "vllm", "llamacpp", "sglang", "tensorrt-llm", "tgi", "ollama", "transformers", "ray"}
)
#: Which engines' tables a dialect reads, besides the "any" ones. The generic reader knows them all.
DIALECTS: Mapping[str, frozenset[str]] = {
    "vllm": frozenset({"any", "vllm"}),
    "llamacpp": frozenset({"any", "llamacpp"}),
    "generic": ENGINES,
}


def _public(url: str) -> str:
    if not url.startswith("https://"):
        raise ValueError(f"source must be a public URL, not {url!r}")
    return url


def _compiles(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no expression: {error}") from error
    return text


Url = Annotated[str, AfterValidator(_public)]
Expression = Annotated[str, AfterValidator(_compiles)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Prefix(_Entry):
    name: str
    engine: str
    layer: Layer
    era: str
    regex: Expression
    starts: Expression
    source: Url
    samples: tuple[str, ...] = Field(min_length=1)
    role: str | None = None
    suffix: Expression | None = None

    @model_validator(mode="after")
    def _checked(self) -> "_Prefix":
        if self.engine not in ENGINES:
            raise ValueError(f"prefix {self.name!r}: unknown engine {self.engine!r}")
        if not self.regex.startswith("^"):
            raise ValueError(f"prefix {self.name!r}: a prefix is anchored at the start of the line")
        for sample in self.samples:
            if not re.search(self.regex, sample):
                raise ValueError(f"prefix {self.name!r} does not match its sample {sample!r}")
        return self


class _Signature(_Entry):
    symptom: str
    role: EventRole
    regex: Expression
    literals: tuple[str, ...] = Field(min_length=1)
    means: str
    source: Url
    samples: tuple[str, ...] = Field(min_length=1)
    engines: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    fatal: bool = False
    survivable: bool = False
    async_: bool = Field(default=False, alias="async")
    scan: tuple[Expression, ...] = ()

    @model_validator(mode="after")
    def _checked(self) -> "_Signature":
        if unknown := set(self.engines) - ENGINES:
            raise ValueError(f"signature {self.regex!r}: unknown engines {sorted(unknown)}")
        if bool(self.explains) != (self.role == "clue"):
            raise ValueError(f"signature {self.regex!r}: a clue, and only a clue, explains something")
        if self.survivable and self.fatal:
            raise ValueError(f"signature {self.regex!r}: what an engine survives is not fatal")
        for literal in self.literals:
            if literal != literal.lower():
                raise ValueError(f"literal {literal!r} must be lower case")
        for sample in self.samples:
            if not re.search(self.regex, sample):
                raise ValueError(f"signature {self.regex!r} does not match its sample {sample!r}")
            if not any(literal in sample.lower() for literal in self.literals):
                raise ValueError(f"no literal of {self.regex!r} is in its sample {sample!r}")
            if self.scan and not any(re.search(expression, sample) for expression in self.scan):
                raise ValueError(f"no scan expression of {self.regex!r} finds its sample {sample!r}")
        return self


class _Ready(_Entry):
    engine: str
    regex: Expression
    source: Url
    samples: tuple[str, ...] = Field(min_length=1)


class _SourceRole(_Entry):
    files: tuple[str, ...]
    role: str


class _DialectFile(_Entry):
    prefix: tuple[_Prefix, ...]
    ready: tuple[_Ready, ...]
    source_role: tuple[_SourceRole, ...]


class _SignatureFile(_Entry):
    scan: tuple[Expression, ...]
    signature: tuple[_Signature, ...]


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """One way in which lines begin."""

    name: str
    layer: Layer
    regex: re.Pattern[str]
    starts: re.Pattern[str]
    role: str | None
    samples: tuple[str, ...]
    suffix: re.Pattern[str] | None = None
    engine: str = "any"


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """One kind of message and what it means; see the head of signatures.toml for the roles."""

    symptom: str
    role: EventRole
    regex: re.Pattern[str]
    literals: tuple[str, ...]
    processes: tuple[str, ...]
    explains: tuple[str, ...]
    fatal: bool
    survivable: bool
    asynchronous: bool
    means: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """What one dialect knows."""

    prefixes: tuple[PrefixRule, ...]
    signatures: tuple[SignatureRule, ...]
    ready: tuple[re.Pattern[str], ...]
    source_roles: Mapping[str, str]
    scan: tuple[str, ...] = ()

    def classify(self, message: str) -> tuple[SignatureRule, re.Match[str]] | None:
        """The first signature that the message matches, with the match."""
        lowered = message.lower()
        # One search for the literals of all signatures: most messages have none of them.
        if self._words(lowered.encode("utf-8", "replace")) is None:
            return None
        for rule in self.signatures:
            for literal in rule.literals:
                if literal in lowered:
                    match = rule.regex.search(message)
                    if match is not None:
                        return rule, match
                    break
        return None

    def prefixes_of(self, text: str) -> tuple[PrefixRule, ...]:
        """The rules that a text may begin by, in order, by its first character."""
        first = text[:1]
        found = self._by_first.get(first)
        if found is None:
            found = tuple(rule for rule in self.prefixes if first and rule.starts.match(first))
            if len(self._by_first) < _MAX_FIRST:
                self._by_first[first] = found
        return found

    @cached_property
    def _words(self) -> Callable[[bytes], object]:
        literals = (literal for rule in self.signatures for literal in rule.literals)
        found: Callable[[bytes], object] = searcher(
            literal_expression(literal) for literal in literals
        ).search
        return found

    @cached_property
    def _by_first(self) -> dict[str, tuple[PrefixRule, ...]]:
        return {}

    def says_ready(self, message: str) -> bool:
        """Whether the message says that the engine serves."""
        return any(pattern.search(message) for pattern in self.ready)


@cache
def _data() -> tuple[_DialectFile, _SignatureFile]:
    folder = files("culpa.triage").joinpath("data")
    dialects = tomllib.loads(folder.joinpath("dialects.toml").read_text("utf-8"))
    signatures = tomllib.loads(folder.joinpath("signatures.toml").read_text("utf-8"))
    return _DialectFile.model_validate(dialects), _SignatureFile.model_validate(signatures)


@cache
def load_tables(dialect: str) -> Tables:
    """The tables of a dialect ("vllm", "llamacpp", "generic"). Raises ValueError for another name."""
    engines = DIALECTS.get(dialect)
    if engines is None:
        raise ValueError(f"unknown log dialect {dialect!r}: known are {', '.join(sorted(DIALECTS))}")
    dialects, signatures = _data()
    return Tables(
        prefixes=tuple(
            PrefixRule(
                entry.name,
                entry.layer,
                re.compile(entry.regex),
                re.compile(entry.starts),
                entry.role,
                entry.samples,
                re.compile(entry.suffix) if entry.suffix else None,
                entry.engine,
            )
            for entry in dialects.prefix
            if entry.engine in engines
        ),
        signatures=tuple(
            SignatureRule(
                symptom=entry.symptom,
                role=entry.role,
                regex=re.compile(entry.regex),
                literals=entry.literals,
                processes=entry.processes,
                explains=entry.explains,
                fatal=entry.fatal,
                survivable=entry.survivable,
                asynchronous=entry.async_,
                means=entry.means,
                samples=entry.samples,
            )
            for entry in signatures.signature
            if not entry.engines or engines & set(entry.engines)
        ),
        ready=tuple(re.compile(entry.regex) for entry in dialects.ready if entry.engine in engines),
        source_roles={name: entry.role for entry in dialects.source_role for name in entry.files},
        scan=_scan(signatures, engines),
    )


def _scan(signatures: _SignatureFile, engines: frozenset[str]) -> tuple[str, ...]:
    """Expressions of which one finds every line that may matter, for a first look at bytes."""
    found = list(signatures.scan)
    for entry in signatures.signature:
        if entry.role in ("noise", "recovery") or (entry.engines and not engines & set(entry.engines)):
            continue
        found += entry.scan or [f"(?i:{literal_expression(literal)})" for literal in entry.literals]
    return tuple(dict.fromkeys(found))


def searcher(expressions: Iterable[str]) -> Any:
    """One search for all of these expressions in bytes, in a time that only grows with their number of bytes."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    options.log_errors = False
    return re2.compile("|".join(dict.fromkeys(expressions)).encode(), options)


def literal_expression(text: str) -> str:
    """An expression for the text itself that RE2, Rust and Python all read."""
    return re.sub(r"[.^$*+?{}\[\]\\|()]", r"\\\g<0>", text)
