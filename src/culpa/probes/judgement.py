"""What an oracle says of a workload's answers."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["right", "wrong", "unknown", "unsupported"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one workload, with its evidence in a sentence.

    `right`: nothing is wrong as far as can be told. `wrong`: a failure, with its `symptom`. `unknown`: every
    request was answered, but whether rightly needs a reference (or a better one). `unsupported`: the engine
    refuses this kind of request, in the words that the evidence quotes. `failed_request` is the index into
    `probe.requests()` at which a failure showed. `caveat` says what a verdict does not cover.
    """

    status: Status
    evidence: str
    symptom: str | None = None
    failed_request: int | None = None
    caveat: str = ""
