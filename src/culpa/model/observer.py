"""What the experiment tells whoever watches it, as a protocol of data classes: a view can be swapped."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from culpa.model.experiment import Experiment
from culpa.model.factor import Configuration, Factor
from culpa.model.plan import Plan
from culpa.model.trial import Trial


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A trial is about to launch. `trials_left` and `seconds_left` are the most that may still come, this
    trial included; None where no limit was set. `reason` is the sentence of the search. `factors` are all that
    are varied by now, if they are more than those of the plan: the failing request brings its own."""

    id: int
    arm: str
    purpose: str
    configuration: Configuration
    reason: str = ""
    trials_left: int | None = None
    seconds_left: float | None = None
    factors: tuple[Factor, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """Where the running trial is. `phase` is one word ("starting", "probing", "stopping" ...), `seconds` the
    time since the trial began, `detail` what exactly goes on ("cold probe, request 1 of 2")."""

    id: int
    phase: str
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Belief:
    """The posterior after a trial: the best sets with their probabilities, best first. The empty set stands
    for "none of these". `trials_left` is the search's own estimate of how many trials are still needed."""

    sets: tuple[tuple[tuple[str, ...], float], ...] = ()
    trials_left: int | None = None


class Observer(Protocol):
    """A view of a running experiment. Methods return at once and raise nothing.

    The order of calls: `started` once; then for every trial `trial_started`, any number of `trial_progress`,
    `trial_finished`, `belief`; `note` at any time; `finished` once, unless the experiment broke; `close` last
    and always, and it may be called more than once.
    """

    def started(self, plan: Plan, earlier: Sequence[Trial] = ()) -> None:
        """The experiment begins; `earlier` are the trials of the run that is resumed."""

    def trial_started(self, event: TrialStarted) -> None:
        """A trial is about to launch."""

    def trial_progress(self, event: TrialProgress) -> None:
        """The running trial moved on."""

    def trial_finished(self, trial: Trial) -> None:
        """A trial is over and its evidence on disk. Called again with the same id if it is judged anew."""

    def belief(self, belief: Belief) -> None:
        """The search has taken the last trial into account."""

    def note(self, text: str) -> None:
        """Something that a person should know now."""

    def finished(self, experiment: Experiment) -> None:
        """The experiment is over."""

    def close(self) -> None:
        """Give the terminal back."""
