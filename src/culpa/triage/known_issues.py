"""Public reports that look like a failure, and whether this configuration can reach what they describe."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa.model import KnownIssue
from culpa.triage.releases import parse_range, within
from culpa.triage.tables import Expression, Url

Value = str | int | float | bool

_COMPARISON = re.compile(r"^(>=|<=|>|<)(\d{1,12}(?:\.\d{1,6})?)$")
_SENTENCES = {
    "tp": "tensor-parallel size",
    "pp": "pipeline-parallel size",
    "dp": "data-parallel size",
    "spec_decode": "speculative decoding",
    "spec_tokens": "speculative tokens",
    "prefix_caching": "prefix caching",
    "eager": "eager execution",
    "async_scheduling": "async scheduling",
    "kv_cache_dtype": "the cache's type",
    "hierarchical_cache": "hierarchical cache",
    "mamba_cache_mode": "mamba cache mode",
    "max_num_batched_tokens": "batched tokens",
    "attention_backend": "attention backend",
    "gpu_arch": "GPU architecture",
    "kv_transfer": "a cache connector",
    "lora": "LoRA",
    "one_bad_launch": "the same exception on several multiprocessors",
    "versions": "release",
}
#: So many reports that look alike and do not fit are worth a line, if no more than so much differs.
_MOST_NEAR = 5
_MOST_DIFFERENT = 2


class _Issue(BaseModel):
    """One entry of known_issues.toml; see the head of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    url: Url
    engine: str
    status: str
    symptoms: tuple[str, ...] = Field(min_length=1)
    signature: tuple[Expression, ...] = Field(min_length=1)
    all: tuple[Expression, ...] = ()
    literals: tuple[str, ...] = Field(min_length=1)
    sample: str
    when: dict[str, Value | tuple[Value, ...]] = Field(default_factory=dict)
    versions: str | None = None
    good: str | None = None
    workaround: tuple[dict[str, Value | tuple[Value, ...]], ...] = ()
    xids: tuple[int, ...] = ()
    may_be_unknown: tuple[str, ...] = ()
    weak: bool = False
    shown: str = ""
    not_shown: str = ""

    @model_validator(mode="after")
    def _checked(self) -> "_Issue":
        if not any(re.search(regex, self.sample) for regex in self.signature):
            raise ValueError(f"{self.id}: the signature does not read its sample")
        if not any(literal in self.sample.lower() for literal in self.literals):
            raise ValueError(f"{self.id}: no literal is in its sample")
        for versions in (self.versions, self.good):
            if versions is not None:
                parse_range(versions)
        if unknown := set(self.may_be_unknown) - set(self.when) - {"versions"}:
            raise ValueError(f"{self.id}: may_be_unknown names no condition: {sorted(unknown)}")
        for value in (value for one in (self.when, *self.workaround) for value in one.values()):
            if isinstance(value, str) and value.startswith("~"):
                re.compile(value[1:])
        return self


class _IssueFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    issue: tuple[_Issue, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    issue: _Issue
    signature: tuple[re.Pattern[str], ...]
    all: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a failure shows: its class, the lines that speak of it, the configuration, the Xids that belong to it."""

    engine: str | None
    version: str | None
    symptom: str
    lines: Sequence[str]
    configuration: Mapping[str, Value]
    xids: frozenset[int]
    hardware: bool = False


def known_issues() -> tuple[_Issue, ...]:
    """Every entry of the table."""
    return tuple(rule.issue for rule in _rules())


@cache
def _rules() -> tuple[_Rule, ...]:
    text = files("culpa.triage").joinpath("data", "known_issues.toml").read_text("utf-8")
    issues = _IssueFile.model_validate(tomllib.loads(text)).issue
    for name in ("id", "url"):
        if len({getattr(issue, name) for issue in issues}) != len(issues):
            raise ValueError(f"two entries of known_issues.toml have the same {name}")
    return tuple(
        _Rule(
            issue,
            tuple(re.compile(regex) for regex in issue.signature),
            tuple(re.compile(regex) for regex in issue.all),
        )
        for issue in issues
    )


def issue_ids() -> tuple[tuple[str, str], ...]:
    """Id and address of every known issue."""
    return tuple((rule.issue.id, rule.issue.url) for rule in _rules())


@cache
def sign_literals() -> tuple[str, ...]:
    """One of these, in lower case, is in every line that some signature may want to see."""
    return tuple(dict.fromkeys(literal for rule in _rules() for literal in rule.issue.literals))


def matching(evidence: Evidence) -> tuple[KnownIssue, ...]:
    """The issues that fit, then those that only look alike, nearest first."""
    fits: list[KnownIssue] = []
    near: list[tuple[int, KnownIssue]] = []
    for rule in _rules():
        seen = _seen(rule, evidence)
        if seen is None:
            continue
        differs, unknown = _reach(rule.issue, evidence)
        if not differs and not unknown:
            fits.append(_known(rule.issue, True, f"{seen}{_fitting(rule.issue, evidence)}", ()))
        elif _is_near(rule.issue, differs, unknown):
            said = (*differs, *(f"{name} is not shown by this log" for name in unknown))
            near.append((2 * len(differs) + len(unknown), _known(rule.issue, False, seen, said)))
    near.sort(key=lambda pair: pair[0])
    return (*fits, *(issue for _, issue in near[:_MOST_NEAR]))


def _is_near(issue: _Issue, differs: Sequence[str], unknown: Sequence[str]) -> bool:
    """Whether a report that does not fit is worth a line. One whose signature is that of the whole class only if a
    setting makes the difference: another release then is another fault."""
    if issue.weak:
        return len(differs) + len(unknown) == 1 and not any(text.startswith("release ") for text in differs)
    return len(differs) + len(unknown) <= _MOST_DIFFERENT


def _known(issue: _Issue, match: bool, why: str, differs: tuple[str, ...]) -> KnownIssue:
    shown = issue.shown
    if issue.not_shown:
        shown = f"{shown}; not shown: {issue.not_shown}" if shown else f"not shown: {issue.not_shown}"
    return KnownIssue(
        id=issue.id,
        title=issue.title,
        url=issue.url,
        match=match,
        why=why,
        status=issue.status,
        differs=differs,
        shown=shown,
    )


def _seen(rule: _Rule, evidence: Evidence) -> str | None:
    """What of the signature is in the evidence, as words; None if it is not all there."""
    issue = rule.issue
    if issue.engine not in ("any", evidence.engine):
        return None
    if "*" not in issue.symptoms and evidence.symptom not in issue.symptoms:
        return None
    if issue.xids and not evidence.xids & set(issue.xids):
        return None
    found = next(
        (match[0] for line in evidence.lines for regex in rule.signature if (match := regex.search(line))),
        None,
    )
    if found is None:
        return None
    if not all(any(regex.search(line) for line in evidence.lines) for regex in rule.all):
        return None
    words = f"the same signature ({' '.join(found.split())[:80]})"
    if issue.xids:
        words += f", Xid {min(evidence.xids & set(issue.xids))}"
    return words


def _reach(issue: _Issue, evidence: Evidence) -> tuple[list[str], list[str]]:
    """What speaks against this configuration reaching the issue, and what the log leaves open."""
    differs: list[str] = []
    unknown: list[str] = []
    for name, wanted in issue.when.items():
        value = evidence.configuration.get(name)
        label = setting_label(name)
        if value is None:
            if name not in issue.may_be_unknown:
                unknown.append(label)
        elif not holds(value, wanted):
            differs.append(f"{label}: {worded(value)} here, {worded(wanted)} there")
    if issue.versions is not None:
        inside = within(evidence.version, parse_range(issue.versions)) if evidence.version else None
        if inside is None and "versions" not in issue.may_be_unknown:
            unknown.append(_SENTENCES["versions"])
        elif inside is False:
            differs.append(f"release {evidence.version} here, {issue.versions} there")
    if evidence.hardware and not issue.xids:
        differs.append("the GPU's hardware is at fault here by its Xids")
    return differs, unknown


def setting_label(name: str) -> str:
    """The name of a setting in words."""
    return _SENTENCES.get(name, name)


def holds(value: Value, wanted: Value | tuple[Value, ...]) -> bool:
    """Whether a setting's value is what an entry wants: a value, one of several, `>4`, or `~expression`."""
    if isinstance(wanted, tuple):
        return any(holds(value, one) for one in wanted)
    if isinstance(wanted, bool):
        # true also asks for a setting that has a value, such as a method of speculation
        return bool(value) is wanted if isinstance(value, bool | str) else False
    if isinstance(wanted, str):
        if wanted.startswith("~"):
            return re.search(wanted[1:], str(value)) is not None
        comparison = _COMPARISON.match(wanted)
        if comparison is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            bound = float(comparison[2])
            return {
                ">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound
            }[comparison[1]]  # fmt: skip
        return str(value).lower() == wanted.lower()
    return value == wanted


def worded(value: Value | tuple[Value, ...]) -> str:
    """What an entry wants, in words."""
    if isinstance(value, tuple):
        return " or ".join(worded(one) for one in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value)
    return re.sub(r"\(\?i\)|[\\^$?]", "", text[1:]) if text.startswith("~") else text


def _fitting(issue: _Issue, evidence: Evidence) -> str:
    """What of the conditions is met, and what the log leaves open."""
    shown = [setting_label(name) for name in issue.when if evidence.configuration.get(name) is not None]
    left = [setting_label(name) for name in issue.when if evidence.configuration.get(name) is None]
    if issue.versions:
        (shown if evidence.version else left).append(f"release {issue.versions}")
    words = f"; reachable here: {', '.join(shown)}" if shown else ""
    return f"{words}; left open by this log: {', '.join(left)}" if left else words
