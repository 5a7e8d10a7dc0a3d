"""What goes into the search for a change point and what comes out of it: trials of versions, and the next one."""

from dataclasses import dataclass
from typing import Literal

from culpa.model import Outcome

ChangePurpose = Literal["baseline", "search", "confirm", "again"]


@dataclass(frozen=True, slots=True)
class VersionTrial:
    """How a trial of the version at a position ended; position 0 is the good end."""

    position: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class VersionStep:
    """The version to try next, why, and what that is expected to tell in bits; `failing` is the chance of a failure."""

    position: int
    purpose: ChangePurpose
    reason: str
    bits: float = 0.0
    failing: float = 1.0
