"""A whole experiment as one value: what the loop fills in and every report reads."""

from dataclasses import dataclass

from culpa.model.diagnosis import Gpu, KnownIssue, XidSeen
from culpa.model.factor import Factor, LeftOut
from culpa.model.finding import Conclusion, Count, Member
from culpa.model.guard import GuardedTrial
from culpa.model.launch import Arm, Launch
from culpa.model.layout_finding import LayoutFinding
from culpa.model.outcome import Exposure, Outcome, RootEvent, Signature
from culpa.model.trial import Trial


@dataclass(frozen=True, slots=True)
class OtherFailure:
    """A failure with another signature than the hunted one: a symptom shift, or a second fault.

    `levels` are those that differ from the user's launch, `trials` the ids that showed it.
    """

    signature: Signature
    levels: tuple[tuple[str, str], ...] = ()
    note: str = ""
    trials: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RootEvidence:
    """The root event of the hunted failure and the trial that it was read in.

    `log` is the log file relative to the run's folder, `excerpt` its lines around the event as
    (1-based line, text). `async_stack` is true if the visible frames show where the error was noticed and
    not what caused it. `cascade` says in a sentence what came only as a consequence; `missing` lists
    evidence that a person should still fetch. `gpu` is where it happened, `xids` the kernel's messages that belong to
    it, `known_issues` public reports that fit or nearly do.
    """

    event: RootEvent
    trial: int
    log: str = ""
    excerpt: tuple[tuple[int, str], ...] = ()
    async_stack: bool = False
    cascade: str = ""
    missing: tuple[str, ...] = ()
    gpu: Gpu | None = None
    xids: tuple[XidSeen, ...] = ()
    known_issues: tuple[KnownIssue, ...] = ()


@dataclass(frozen=True, slots=True)
class Commands:
    """The two launches that straddle the fault, as lines that can be pasted into a POSIX shell.

    `passing` is the nearest configuration that passed, empty if none did; `differing` names the factors in
    which it differs, with both levels. `failing_request` and `passing_request` say what has to be asked where
    the difference lies in the request. The ids are those of the trials that ran the two.
    """

    failing: str
    passing: str = ""
    differing: tuple[Member, ...] = ()
    failing_trial: int | None = None
    passing_trial: int | None = None
    failing_request: str = ""
    passing_request: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Everything that a report may say of one run of `culpa isolate`.

    `started` is ISO 8601 text, `elapsed_seconds` covers all sittings of a resumed run, `folder` is where the
    evidence lies as the user wrote it. `hunted` is the signature of the failure that was searched for (None
    if none was seen), `baseline` counts the trials of the launch as it is. `confidence` is the probability
    that was asked for, `options` the other options as given: (name without dashes, value or "" for a switch).
    `no_failure` is a sentence of what was tried when no failure showed. `notes` qualify the whole run
    ("answers were compared with the reference configuration"), `limits_reached` name the hard limits that
    ended it. `environment` is a list of (fact, value) pairs, `arms` are those that the user asked for.
    `layout` is what planning alone says of the launch, `guarded` what was seen from inside the engine.
    """

    culpa_version: str
    run_id: str
    started: str
    elapsed_seconds: float
    engine: str
    engine_version: str | None
    launch: Launch
    conclusion: Conclusion
    baseline: Count
    factors: tuple[Factor, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    trials: tuple[Trial, ...] = ()
    hunted: Signature | None = None
    root: RootEvidence | None = None
    other_failures: tuple[OtherFailure, ...] = ()
    commands: Commands | None = None
    confidence: float = 0.95
    options: tuple[tuple[str, str], ...] = ()
    arms: tuple[Arm, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    no_failure: str = ""
    notes: tuple[str, ...] = ()
    limits_reached: tuple[str, ...] = ()
    interrupted: bool = False
    folder: str = ""
    layout: tuple[LayoutFinding, ...] = ()
    guarded: tuple[GuardedTrial, ...] = ()

    def trial(self, number: int | None) -> Trial | None:
        """The trial with this id, or None."""
        return next((trial for trial in self.trials if trial.id == number), None)

    def exposure(self, *outcomes: Outcome) -> Exposure:
        """What all trials together asked of the engine; with outcomes given, only the trials that ended so.

        Requests, tokens and seconds are sums, concurrency is the highest of any trial.
        """
        chosen = [trial.exposure for trial in self.trials if not outcomes or trial.outcome in outcomes]
        return Exposure(
            requests=sum(part.requests for part in chosen),
            tokens=sum(part.tokens for part in chosen),
            seconds=sum(part.seconds for part in chosen),
            concurrency=max((part.concurrency for part in chosen), default=1),
        )
