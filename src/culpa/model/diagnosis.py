"""What can be said of an incident beyond its root event: GPU, Xids, hardware or software, known issues, load."""

from dataclasses import dataclass
from typing import Literal

Blame = Literal["software", "hardware", "driver", "link", "memory", "configuration", "unknown"]
Confidence = Literal["high", "medium", "low"]
SettingValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU by its place on the PCI bus (domain:bus:device.function, lower case). `index` is nvidia-smi's, `uuid`
    NVIDIA's; None where the evidence does not tell. `why` says how the GPU was found."""

    pci_bus: str
    index: int | None = None
    uuid: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class XidSeen:
    """An Xid of the kernel log. `stale` ones belong to something else, `why` says what speaks for that; `teardown`
    ones only follow the failure. `means` and `advice` are the catalogue's, `detail` what the message itself tells."""

    code: int
    pci_bus: str
    line: int
    stale: bool
    teardown: bool = False
    why: str = ""
    pid: int | None = None
    time: str | None = None
    means: str = ""
    cause: str = ""
    advice: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """A public report of the same failure. `match` is true if the failure looks the same and this configuration can
    reach it; else it is a near match and `differs` says in what. `shown` is what the report has proved."""

    id: str
    title: str
    url: str
    match: bool
    why: str
    status: str = ""
    differs: tuple[str, ...] = ()
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where the fault lies by the evidence, and why; `software` includes the engine, its kernels and its libraries."""

    blame: Blame
    why: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What surrounds an incident. `configuration` is the effective one as the log tells it, `load` the work under
    way when it happened, `confidence` how sure the root event is, with the reasons."""

    engine: str | None = None
    engine_version: str | None = None
    gpu: Gpu | None = None
    xids: tuple[XidSeen, ...] = ()
    verdict: Verdict = Verdict("unknown", "")
    configuration: tuple[tuple[str, SettingValue], ...] = ()
    load: tuple[tuple[str, int | float], ...] = ()
    known_issues: tuple[KnownIssue, ...] = ()
    confidence: Confidence = "low"
    confidence_why: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def own_xids(self) -> tuple[XidSeen, ...]:
        """The Xids that belong to the failure, its teardown included."""
        return tuple(xid for xid in self.xids if not xid.stale)

    @property
    def matches(self) -> tuple[KnownIssue, ...]:
        """The known issues that fit."""
        return tuple(issue for issue in self.known_issues if issue.match)
