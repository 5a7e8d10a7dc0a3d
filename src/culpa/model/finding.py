"""What an experiment may claim: findings with their level, and what each factor turned out to be."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from culpa.model.guard import Located


class Level(StrEnum):
    """How strong a conclusion is, weakest first."""

    OBSERVED = "observed"  # seen n of m times
    CONTRAST = "contrast"  # one change flips the outcome
    ISOLATED = "isolated"  # a minimal failing set, with the probability that it is right
    LOCATED = "located"  # a check inside the engine named stage, layer, group, step and request


class ExperimentOutcome(StrEnum):
    """How an experiment ended."""

    NO_FAILURE = "no_failure"
    ISOLATED = "isolated"
    INCONCLUSIVE = "inconclusive"
    ALL_SAFE_FAILS = "all_safe_fails"


@dataclass(frozen=True, slots=True)
class Count:
    """How often a configuration failed, of how many trials that were evidence."""

    failed: int
    trials: int


@dataclass(frozen=True, slots=True)
class Member:
    """A factor of a minimal failing set with the level that fails and the one that passes."""

    name: str
    suspect: str
    safe: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A set of factors that the failure needs.

    `probability` is that of the set being right, given the trials. `sufficient` counts the trials with the
    set suspect and all else safe, `necessary` those with one member made safe on top of that. `conditions`
    are sentences about numeric members: thresholds with their intervals, and relations between two of them
    that trials confirmed. `located` is where it begins, where a guard inside the engine saw that.
    """

    members: tuple[Member, ...]
    level: Level
    probability: float
    sufficient: Count
    necessary: tuple[tuple[str, Count], ...]
    conditions: tuple[str, ...] = ()
    located: Located | None = None


Status = Literal["in", "out", "masking", "untested"]


@dataclass(frozen=True, slots=True)
class FactorStatus:
    """What the trials say of one factor, with the reason in a sentence."""

    name: str
    suspect: str
    safe: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a search: what was found, what each factor is, what the trials leave open."""

    outcome: ExperimentOutcome
    findings: tuple[Finding, ...] = ()
    statuses: tuple[FactorStatus, ...] = ()
    not_excluded: tuple[str, ...] = field(default=())
