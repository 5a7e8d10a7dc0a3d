"""The surroundings of an engine: what was read of them, where from, and what could not be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from culpa.model.diagnosis import SettingValue

#: In the order in which they are shown. The part of a fact's key before its first dot is its section.
SECTIONS = (
    "engine", "python", "torch", "package", "backend", "gpu", "link", "system", "container", "setting", "variable",
    "launch",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing about the surroundings. `value` is None where it can't be read, and `reason` then says why.

    `key` has dots: the section, what it is, and which one (`gpu.0.ecc`). `source` says where the value comes from.
    """

    key: str
    value: str | None
    source: str = ""
    reason: str = ""

    @property
    def section(self) -> str:
        """The part of the key before its first dot."""
        return self.key.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Environment:
    """Facts about one machine, log or run. `taken` is ISO 8601 text, empty where no moment is known; `origin` says in
    words what was looked at. `settings` are the engine's, in the names that logs are read into."""

    origin: str
    facts: tuple[Fact, ...]
    settings: tuple[tuple[str, SettingValue], ...] = ()
    taken: str = ""

    def fact(self, key: str) -> Fact | None:
        """The fact of that key, or None."""
        return next((fact for fact in self.facts if fact.key == key), None)

    def get(self, key: str) -> str | None:
        """The value of that key; None where it is not there or can't be read."""
        fact = self.fact(key)
        return fact.value if fact is not None else None

    def values(self) -> Mapping[str, str]:
        """Everything that could be read."""
        return {fact.key: fact.value for fact in self.facts if fact.value is not None}

    def completed(self, others: Iterable[Fact]) -> tuple[Fact, ...]:
        """The facts with those added that are not there, or could not be read."""
        found = {fact.key: fact for fact in self.facts}
        for fact in others:
            known = found.get(fact.key)
            if known is None or (known.value is None and fact.value is not None):
                found[fact.key] = fact
        return tuple(sorted(found.values(), key=lambda fact: _order(fact.section)))


def _order(section: str) -> int:
    return SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)


Standing = Literal["known_bad", "may_apply", "known_good", "advice"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a public source says of one item as it is here.

    `known_bad`: in a range that the source reports as failing, and nothing here speaks against it. `may_apply`: the
    same, but something that the report needs is not known here (`open` says what). `known_good`: in a range that the
    source reports as working. `advice`: a value that a manual asks to be otherwise.
    """

    standing: Standing
    key: str
    value: str
    said: str
    source: str
    needs: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    status: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """An item that differs between two environments. None: not there, or not readable. `weight` says how much such a
    difference matters (0 to 100), `why` for which reason, by which `source`."""

    key: str
    left: str | None
    right: str | None
    weight: int = 0
    why: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two environments side by side, what matters first. `unreadable` are items that one of both can't tell."""

    left: str
    right: str
    differences: tuple[Difference, ...]
    unreadable: tuple[Difference, ...] = field(default=())
    same: int = 0
