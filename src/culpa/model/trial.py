"""One engine launch under one configuration, its outcome, and where its evidence lies."""

from dataclasses import dataclass, field
from typing import Literal

from culpa.model.factor import Configuration
from culpa.model.outcome import Exposure, Outcome, RootEvent, Signature

# The purpose of a trial that watches a failing configuration from inside.
GUARD = "guard"
# Purposes of trials that test nothing: the measure of the others, and the watched one.
NO_TEST = frozenset({"reference", GUARD})


@dataclass(frozen=True, slots=True)
class Observation:
    """What search may know of a trial: the configuration and how it ended. Nothing else counts as evidence.

    `purpose` is the reason for which it was run (see `culpa.search`); `signature` is set for FAIL and OTHER.
    `trial` is the id by which sentences name it; 0 stands for its place in the history, counted from 1.
    """

    configuration: Configuration
    outcome: Outcome
    purpose: str = "search"
    signature: Signature | None = None
    reason: str = ""
    trial: int = 0


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What came of one request of a trial.

    `kind` tells a short question from a long prompt that hides a record; `status` is `right` or `missed` where
    the answer is known, `answered` where it is not, `failed` where none came. Tokens are the engine's own counts
    (None where it is silent), `seconds` the time to the whole answer, `at_once` the requests sent together.
    `asked` identifies what was asked: the same in another trial has the same text here; `size` is the prompt's
    length in tokens as it was meant to be.
    """

    kind: Literal["question", "long_prompt", "other"]
    status: Literal["right", "missed", "answered", "failed"]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    seconds: float = 0.0
    at_once: int = 1
    asked: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished trial. Times are seconds; `verdict_delay_seconds` is root event to verdict, None on a pass.

    `arm` is the name that a person recognises, `effective` what the engine said of itself after start-up,
    `folder` the place of the evidence relative to the run's folder. `mismatches` say how the effective
    configuration differs from the one that the arm claims (non-empty exactly if that made it untestable).
    """

    id: int
    configuration: Configuration
    outcome: Outcome
    purpose: str
    arm: str
    reason: str = ""
    signature: Signature | None = None
    root: RootEvent | None = None
    async_stack: bool = False
    seconds: float = 0.0
    start_seconds: float | None = None
    verdict_delay_seconds: float | None = None
    exposure: Exposure = field(default_factory=Exposure)
    effective: tuple[tuple[str, str], ...] = ()
    mismatches: tuple[str, ...] = ()
    exit_code: int | None = None
    folder: str = ""
    requests: tuple[RequestResult, ...] = ()

    def observation(self) -> Observation:
        """The part of the trial that search may use."""
        return Observation(
            self.configuration, self.outcome, self.purpose, self.signature, self.reason, self.id
        )
