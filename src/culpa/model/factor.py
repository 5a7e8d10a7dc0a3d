"""What can be varied (factors and their levels), and one choice of a level for each (a configuration)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

Scope = Literal["launch", "request"]


@dataclass(frozen=True, slots=True)
class Factor:
    """One thing that can be varied.

    `suspect` is the level found in the user's launch (or in the failing request); `safe` are the levels that
    may stand in for it, the preferred one first. `prior` is the weight, in (0, 1), with which public reports
    name this factor as decisive. `instrument` marks a measuring device, such as blocking launches, that may
    hide a failure without removing it: it is never a member of a minimal failing set.
    `scope` says what a change costs: a relaunch, or only another request on a living engine.

    Levels may have an order, so that the values between suspect and safe may be tried too. `numeric` levels are
    integers, or with `decimals` multiples of 10**-decimals; `order` names all levels, lowest first. Both are counted
    in steps (`steps`, `level`): the integers, the multiples, the places in `order`. No value below `minimum` or above
    `maximum` steps is tried (`order` has its own ends).
    """

    name: str
    suspect: str
    safe: tuple[str, ...]
    scope: Scope = "launch"
    prior: float = 0.05
    instrument: bool = False
    numeric: bool = False
    minimum: int = 1
    meaning: str = ""
    decimals: int = 0
    order: tuple[str, ...] = ()
    maximum: int | None = None

    def __post_init__(self) -> None:
        if not self.safe or self.suspect in self.safe:
            raise ValueError(f"factor {self.name}: needs a safe level that differs from {self.suspect!r}")
        if not 0.0 < self.prior < 1.0:
            raise ValueError(f"factor {self.name}: prior must lie between 0 and 1, not {self.prior}")
        missing = [level for level in (self.suspect, *self.safe) if self.order and level not in self.order]
        if missing:
            raise ValueError(f"factor {self.name}: level {missing[0]!r} is not in its order")

    @property
    def ordered(self) -> bool:
        """Whether its levels have an order, so that a threshold may lie between them."""
        return self.numeric or bool(self.order)

    @property
    def counts(self) -> bool:
        """Whether its levels are plain integers, which can be compared with those of another factor."""
        return self.numeric and not self.decimals

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest step that may be tried."""
        if self.order:
            return 0, len(self.order) - 1
        return self.minimum, 1 << 62 if self.maximum is None else self.maximum

    def steps(self, level: str) -> int:
        """A level of an ordered factor as a number of steps. Raises ValueError for a level that it can't have."""
        if self.order:
            return self.order.index(level)
        try:
            scaled = Decimal(level).scaleb(self.decimals)
        except InvalidOperation:
            raise ValueError(f"{level!r} is no number") from None
        if not scaled.is_finite() or scaled != scaled.to_integral_value():
            raise ValueError(f"{level!r} is no multiple of {Decimal(1).scaleb(-self.decimals)}")
        return int(scaled)

    def level(self, steps: int) -> str:
        """The level that so many steps stand for, spelled as the factor spells it where it has that level."""
        if self.order:
            return self.order[steps]
        known = (one for one in (self.suspect, *self.safe) if self.decimals and self.steps(one) == steps)
        return next(known, None) or format(Decimal(steps).scaleb(-self.decimals), "f")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A factor that is known but not varied in this launch, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """A level for every factor, sorted by name, so that equal configurations compare and hash equal."""

    levels: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, levels: Mapping[str, str] | Iterable[tuple[str, str]]) -> "Configuration":
        """Build from a mapping or pairs; the last level given for a name holds."""
        return cls(tuple(sorted(dict(levels).items())))

    def __getitem__(self, name: str) -> str:
        return dict(self.levels)[name]

    def __contains__(self, name: object) -> bool:
        return any(key == name for key, _ in self.levels)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.levels)

    def get(self, name: str, default: str = "") -> str:
        """The level of a factor, or `default` where the configuration does not name it."""
        return dict(self.levels).get(name, default)

    def as_dict(self) -> dict[str, str]:
        """A fresh dictionary of factor name to level."""
        return dict(self.levels)

    def with_levels(self, changes: Mapping[str, str]) -> "Configuration":
        """The same configuration with some levels changed or added."""
        return Configuration.of({**dict(self.levels), **changes})

    def differing(self, other: "Configuration") -> tuple[str, ...]:
        """Names whose levels differ between the two, sorted."""
        mine, theirs = dict(self.levels), dict(other.levels)
        return tuple(
            sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
        )


def all_suspect(factors: Iterable[Factor]) -> Configuration:
    """The user's launch and request as they are."""
    return Configuration.of({factor.name: factor.suspect for factor in factors})


def all_safe(factors: Iterable[Factor]) -> Configuration:
    """Every factor at its preferred safe level; instruments stay at the user's level."""
    return Configuration.of(
        {factor.name: factor.suspect if factor.instrument else factor.safe[0] for factor in factors}
    )
