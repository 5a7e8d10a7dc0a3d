"""Messages between the API server and the engine core."""

from dataclasses import dataclass

from culpa_lab.engine.core import Stats
from culpa_lab.engine.request import NewRequest
from culpa_lab.engine.scheduler import Output


@dataclass(frozen=True, slots=True)
class Add:
    """A request comes in."""

    request: NewRequest


@dataclass(frozen=True, slots=True)
class Abort:
    """A request is no longer wanted."""

    request: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine core can serve."""

    blocks: int
    cache_tokens: int


@dataclass(frozen=True, slots=True)
class Outputs:
    """News of requests after a step."""

    outputs: tuple[Output, ...]
    stats: Stats


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine can't start like this: one line that says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Dead:
    """The engine core has ended because of an error, which it has logged."""
