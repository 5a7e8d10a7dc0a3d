"""What public sources say of releases and machines before anything has failed: known-bad, known-good, advised.

Two tables: the known issues, asked here without a signature, and `known_ranges.toml` for libraries and machines.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa.model.environment import Check
from culpa.triage.known_issues import Value, holds, known_issues, setting_label, worded
from culpa.triage.releases import parse_range, within
from culpa.triage.tables import Expression, Url

_SIZE = re.compile(r"^(\d{1,15}(?:\.\d{1,6})?) ?([kKmMgG])?i?[bB]?$")
_GIB = {"k": 2.0**-20, "m": 2.0**-10, "g": 1.0, None: 2.0**-30}
#: A report that no range of releases bounds, and of which so few conditions are known to hold, tells nothing here.
_LEAST_MET = 2
_ENGINE_VERSION = "engine.version"


class _Range(BaseModel):
    """One entry of known_ranges.toml; see the head of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    item: Expression
    bad: str | None = None
    good: str | None = None
    matches: Expression | None = None
    below_gib: float | None = Field(default=None, gt=0)
    when: dict[str, Value | tuple[Value, ...]] = Field(default_factory=dict)
    may_be_unknown: tuple[str, ...] = ()
    standing: Literal["known_bad", "advice"]
    said: str
    source: Url

    @model_validator(mode="after")
    def _checked(self) -> "_Range":
        if sum(one is not None for one in (self.bad, self.matches, self.below_gib)) != 1:
            raise ValueError(f"{self.id}: an entry has one of bad, matches and below_gib")
        for text in (self.bad, self.good):
            if text is not None:
                parse_range(text)
        if unknown := set(self.may_be_unknown) - set(self.when):
            raise ValueError(f"{self.id}: may_be_unknown names no condition: {sorted(unknown)}")
        return self


@cache
def _ranges() -> tuple[_Range, ...]:
    text = files("culpa.triage").joinpath("data", "known_ranges.toml").read_text("utf-8")
    ranges = tuple(_Range.model_validate(row) for row in tomllib.loads(text)["range"])
    if len({one.id for one in ranges}) != len(ranges):
        raise ValueError("two entries of known_ranges.toml have the same id")
    return ranges


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far the conditions of a source are met here, in words."""

    met: tuple[str, ...]
    open: tuple[str, ...]


def check(
    facts: Mapping[str, str], configuration: Mapping[str, Value], engine: str | None = None
) -> tuple[Check, ...]:
    """Every item that a source speaks of, the worst first. `facts` are those of an environment by key, `configuration`
    the engine's settings, `engine` its name as the reports use it."""
    engine = engine or facts.get("engine.name")
    found = [*_by_issue(facts, configuration, engine), *_by_range(facts, configuration)]
    order = ("known_bad", "advice", "may_apply", "known_good")
    return tuple(sorted(found, key=lambda one: (order.index(one.standing), len(one.open), -len(one.needs))))


def _by_issue(
    facts: Mapping[str, str], configuration: Mapping[str, Value], engine: str | None
) -> Iterator[Check]:
    version = facts.get(_ENGINE_VERSION)
    for issue in known_issues():
        if issue.engine != engine or not (issue.when or issue.versions or issue.good):
            continue
        if "one_bad_launch" in issue.when or issue.xids:
            continue  # only a failure itself shows that
        reach = _reached(issue.when, configuration)
        if reach is None:
            continue
        told = f"{issue.title}: {issue.shown}" if issue.shown else issue.title
        if version is not None and issue.good is not None and within(version, parse_range(issue.good)):
            if reach.met and not reach.open:  # else it is about something else than what runs here
                yield Check(
                    "known_good",
                    _ENGINE_VERSION,
                    version,
                    f"{told}; releases {issue.good} are said to be free of it",
                    issue.url,
                    reach.met,
                    reach.open,
                    issue.status,
                )
            continue
        inside = within(version, parse_range(issue.versions)) if version and issue.versions else None
        if inside is False:
            continue
        if inside and not reach.met and issue.when:
            continue  # the release alone, of a report that needs more, would name half of all reports
        if inside:
            sure = not reach.open
            value, told = version or "", f"{told}; releases {issue.versions}"
            yield Check(
                "known_bad" if sure else "may_apply",
                _ENGINE_VERSION,
                value,
                told,
                issue.url,
                reach.met,
                reach.open,
                issue.status,
            )
        elif len(reach.met) >= _LEAST_MET:
            key, value = _first_setting(issue.when, configuration)
            still = (*reach.open, f"release {issue.versions}") if issue.versions else reach.open
            yield Check("may_apply", key, value, told, issue.url, reach.met, still, issue.status)


def _first_setting(
    when: Mapping[str, Value | tuple[Value, ...]], configuration: Mapping[str, Value]
) -> tuple[str, str]:
    name = next(name for name in when if configuration.get(name) is not None)
    return f"setting.{name}", worded(configuration[name])


def _by_range(facts: Mapping[str, str], configuration: Mapping[str, Value]) -> Iterator[Check]:
    known: dict[str, Value] = {**configuration, **facts}
    for entry in _ranges():
        for key, value in facts.items():
            if re.fullmatch(entry.item, key) is None:
                continue
            reach = _reached(entry.when, known)
            allowed = {setting_label(name) for name in entry.may_be_unknown}
            if reach is None or set(reach.open) - allowed:
                continue
            if _is_bad(entry, value):
                yield Check(entry.standing, key, value, entry.said, entry.source, reach.met, reach.open)
            elif entry.good is not None and within(value, parse_range(entry.good)):
                said = f"not among those of which this is said: {entry.said}"
                yield Check("known_good", key, value, said, entry.source, reach.met, reach.open)


def _is_bad(entry: _Range, value: str) -> bool:
    if entry.bad is not None:
        return within(value, parse_range(entry.bad)) is True
    if entry.matches is not None:
        return re.search(entry.matches, value) is not None
    size = gib_of(value)
    return size is not None and entry.below_gib is not None and size < entry.below_gib


def gib_of(text: str) -> float | None:
    """A size in GiB, from `64 MiB`, `16g`, `8gb` or a number of bytes; None for anything else."""
    match = _SIZE.match(text.strip())
    if match is None:
        return None
    return float(match[1]) * _GIB[match[2].lower() if match[2] else None]


def _reached(when: Mapping[str, Value | tuple[Value, ...]], known: Mapping[str, Value]) -> _Reach | None:
    """What of the conditions is met and what is open; None if one of them speaks against it."""
    met: list[str] = []
    still: list[str] = []
    for name, wanted in when.items():
        value = known.get(name)
        if value is None:
            still.append(setting_label(name))
        elif holds(value, wanted):
            met.append(f"{setting_label(name)} {worded(value)}")
        else:
            return None
    return _Reach(tuple(met), tuple(still))
