"""What keeps a failure away for the time being, what that costs, and what is not offered."""

from dataclasses import dataclass, field
from typing import Literal

#: `throughput` generated tokens a second over all requests at once; `first_token` seconds from sending to the first
#: piece of the answer, of one request alone; `inter_token` seconds between two tokens of it; `capacity` tokens that the
#: cache holds.
Metric = Literal["throughput", "first_token", "inter_token", "capacity"]
METRICS: tuple[Metric, ...] = ("throughput", "first_token", "inter_token", "capacity")
#: Where more is better; elsewhere less is.
MORE_IS_BETTER: frozenset[Metric] = frozenset({"throughput", "capacity"})


@dataclass(frozen=True, slots=True)
class Measured:
    """One metric of one configuration over the repeats: median, lowest, highest, and how many repeats told it.

    `ratio` is the geometric mean of the ratios to the failing launch, each within one repeat, `low` and `high` its 95%
    interval. None where it can't be said: the failing launch told nothing, or there is one repeat only.
    """

    metric: Metric
    median: float
    lowest: float
    highest: float
    repeats: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a pass has behind it: launches and requests without a failure, and the rates that they exclude at 95%."""

    launches: int
    requests: int
    excluded_launch_rate: float
    excluded_request_rate: float


@dataclass(frozen=True, slots=True)
class Workaround:
    """A public report that says of such a setting that the failure stays away with it."""

    issue: str
    url: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A configuration that passed, with its price. `changes` are (factor, level of the launch, level here).

    `cost` is how many times worse it is than the failing launch: the geometric mean over the metrics that have a ratio,
    each turned so that more is worse; None if none has. `asked` says what became of the failing requests here.
    """

    name: str
    changes: tuple[tuple[str, str, str], ...]
    command: str
    exposure: Exposure
    measured: tuple[Measured, ...] = ()
    cost: float | None = None
    workarounds: tuple[Workaround, ...] = ()
    asked: str = ""


@dataclass(frozen=True, slots=True)
class NotOffered:
    """A configuration that one might think of and that is not offered, with the reason."""

    changes: tuple[tuple[str, str, str], ...]
    kind: Literal["symptom_shift", "failed", "not_measured"]
    reason: str


@dataclass(frozen=True, slots=True)
class Mitigation:
    """The whole comparison. `workload` says what was asked of all, `failing` is the price list of the failing launch
    itself (empty where it survived none of the requests, `caveats` say so), `options` stand by cost."""

    culpa_version: str
    started: str
    seconds: float
    command: str
    workload: str
    repeats: int
    failing: tuple[Measured, ...]
    options: tuple[Option, ...]
    not_offered: tuple[NotOffered, ...] = ()
    caveats: tuple[str, ...] = field(default=())
    interrupted: bool = False
