"""What came of verifying an engine: every probe, the exposure, what the engine and the kernel said meanwhile."""

from dataclasses import dataclass
from typing import Literal

from culpa.model.outcome import Exposure, Incident

ProbeStatus = Literal["right", "wrong", "unknown", "unsupported", "not_asked"]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """One probe of a verification.

    `round` counts the passes through the suite from 1. `unknown` means that it was answered but that nothing tells
    right from wrong; `unsupported` that this engine refuses the kind of request; `not_asked` that the engine was gone.
    """

    name: str
    round: int
    status: ProbeStatus
    evidence: str = ""
    symptom: str | None = None
    description: str = ""
    caveat: str = ""
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    concurrency: int = 1
    known: bool = False


@dataclass(frozen=True, slots=True)
class Counter:
    """A number of the engine's `/metrics` before and after; None where it was not there."""

    name: str
    meaning: str
    before: float | None
    after: float | None


_CORRUPTED = frozenset({"vllm:corrupted_requests_total"})


@dataclass(frozen=True, slots=True)
class Verification:
    """A whole verification. `target` is the endpoint, or the command that was launched.

    `incident` is what the log says where a launched engine failed; `xids` are the kernel's lines about its GPUs
    meanwhile, `other_xids` those about GPUs that it can't use, `kernel_log` says where they were read, or why they
    could not be. `golden` names the file of trusted answers, `recorded` the one that was written, `unrecorded` says
    why it was not. `untestable` is the reason why nothing can be said.
    """

    culpa_version: str
    started: str
    target: str
    engine: str
    engine_version: str | None
    model: str
    suite: str
    probes: tuple[ProbeReport, ...]
    seconds: float
    counters: tuple[Counter, ...] = ()
    xids: tuple[str, ...] = ()
    other_xids: tuple[str, ...] = ()
    kernel_log: str = ""
    incident: Incident | None = None
    golden: str = ""
    recorded: str = ""
    unrecorded: str = ""
    untestable: str = ""
    interrupted: bool = False

    @property
    def failures(self) -> tuple[ProbeReport, ...]:
        """The probes that failed."""
        return tuple(probe for probe in self.probes if probe.status == "wrong")

    @property
    def undecided(self) -> tuple[str, ...]:
        """The probes with a known answer of which nobody can tell whether the model knows it too."""
        return tuple(dict.fromkeys(one.name for one in self.probes if one.known and one.status == "unknown"))

    @property
    def failed(self) -> bool:
        """Whether anything went wrong, on the engine's side or on the kernel's."""
        return bool(self.failures or self.incident or self.xids or self.corrupted)

    @property
    def corrupted(self) -> int:
        """How many requests more the engine itself counts as corrupted than before, NaN in their logits."""
        return sum(
            max(0, int((one.after or 0) - (one.before or 0)))
            for one in self.counters
            if one.name in _CORRUPTED
        )

    @property
    def passed(self) -> bool:
        """Whether something was asked, all that has a known answer was answered rightly, and nothing failed."""
        answered = any(probe.status == "right" for probe in self.probes)
        return answered and not (self.failed or self.undecided or self.untestable)

    @property
    def exposure(self) -> Exposure:
        """What was asked in all. Probes that the engine refused asked nothing."""
        asked = [probe for probe in self.probes if probe.status in ("right", "wrong", "unknown")]
        return Exposure(
            requests=sum(probe.requests for probe in asked),
            tokens=sum(probe.tokens for probe in asked),
            seconds=sum(probe.seconds for probe in asked),
            concurrency=max((probe.concurrency for probe in asked), default=1),
        )
