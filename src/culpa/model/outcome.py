"""What a trial came to: outcome, signature, root event, exposure."""

from dataclasses import dataclass
from enum import StrEnum

from culpa.model.diagnosis import Diagnosis


class Outcome(StrEnum):
    """The four ends of a trial. Only PASS and FAIL are evidence for or against a hypothesis."""

    PASS = "pass"
    FAIL = "fail"  # with the signature that is hunted
    OTHER = "other"  # it failed, but differently: a symptom shift or a second fault
    UNTESTABLE = "untestable"  # the arm was not what it claimed, or harness or machine could not answer


@dataclass(frozen=True, slots=True)
class Signature:
    """What makes two failures "the same".

    `symptom` is a class name of the signature table (`cuda_illegal_access`, `hang`, `wrong_answer` ...).
    `process` is the kind of process that failed (`worker`, `engine_core`, `api_server`, `server`), `rank`
    its place (`PP1`, `PP0_TP1`, or None where the evidence does not name one), `event` the normalised text
    of the root event: numbers, addresses, paths and process ids replaced.
    """

    symptom: str
    process: str | None = None
    rank: str | None = None
    event: str | None = None

    def describe(self) -> str:
        """One line for a person."""
        place = " ".join(part for part in (self.process, self.rank) if part)
        text = f"{self.symptom} ({place})" if place else self.symptom
        return f"{text}: {self.event}" if self.event else text


@dataclass(frozen=True, slots=True)
class RootEvent:
    """The first thing that went wrong, as a line of a log. `line` is 1-based; `time` as the log prints it."""

    line: int
    text: str
    time: str | None = None
    process: str | None = None
    rank: str | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """What triage read out of the text that a failure left behind.

    `root_alternates` are 1-based lines that state the same event as the root; `cascade_lines` state errors
    that are only consequences. `async_stack` is true if the visible frames show where an error was noticed
    and not what caused it. `missing_evidence` lists what a person should fetch, in words. `diagnosis` is what the
    rest of the text tells of it.
    """

    symptom: str
    root: RootEvent | None
    event: str | None = None
    process: str | None = None
    rank: str | None = None
    first_failed_rank: tuple[tuple[str, int], ...] | None = None
    root_alternates: tuple[int, ...] = ()
    cascade_lines: tuple[int, ...] = ()
    async_stack: bool = False
    missing_evidence: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None

    def signature(self) -> Signature:
        """The part of the incident that identifies the failure."""
        return Signature(symptom=self.symptom, process=self.process, rank=self.rank, event=self.event)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a trial asked of the engine: the more, the lower the failure rate that a pass excludes."""

    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0
    concurrency: int = 1
