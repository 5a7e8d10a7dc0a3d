"""Views for output that is no terminal: one stable line an event, or nothing until the end."""

from collections.abc import Sequence
from typing import TextIO

from culpa.model import Belief, Experiment, Outcome, Plan, Trial, TrialProgress, TrialStarted
from culpa.report import clean, words

_LINE_WIDTH = 400


class Quiet:
    """Shows nothing."""

    def started(self, plan: Plan, earlier: Sequence[Trial] = ()) -> None:
        """Nothing."""

    def trial_started(self, event: TrialStarted) -> None:
        """Nothing."""

    def trial_progress(self, event: TrialProgress) -> None:
        """Nothing."""

    def trial_finished(self, trial: Trial) -> None:
        """Nothing."""

    def belief(self, belief: Belief) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def finished(self, experiment: Experiment) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class PlainLines:
    """One line an event, each flushed at once: `plan:`, `trial N ...`, `belief:`, `note:`, `done:`.

    Progress within a trial is told when its phase changes and then every `every` seconds of the trial's own
    time. A stream that cannot be written to any more ends the view, not the experiment.
    """

    def __init__(self, stream: TextIO, every: float = 30.0) -> None:
        self._stream = stream
        self._every = every
        self._broken = False
        self._told: tuple[int, str, float] | None = None  # trial, phase and second of the last progress line

    def started(self, plan: Plan, earlier: Sequence[Trial] = ()) -> None:
        """The plan, and the trials of the run that is resumed."""
        parts = [plan.engine, words.plural(len(plan.factors), "factor")]
        if plan.predicted_trials is not None:
            parts.append(f"about {words.plural(plan.predicted_trials, 'trial')}")
        if plan.folder:
            parts.append(f"evidence in {plan.folder}")
        self._line("plan: " + ", ".join(parts))
        for trial in earlier:
            self._finished(trial, "earlier ")

    def trial_started(self, event: TrialStarted) -> None:
        """What runs now, and why."""
        self._told = None
        left = []
        if event.trials_left is not None:
            left.append(f"{words.plural(event.trials_left, 'trial')} left at most")
        if event.seconds_left is not None:
            left.append(f"{words.duration(max(event.seconds_left, 0.0))} left at most")
        reason = f": {event.reason}" if event.reason else ""
        limits = f" ({', '.join(left)})" if left else ""
        self._line(f"trial {event.id} started: {event.arm} [{event.purpose}]{reason}{limits}")

    def trial_progress(self, event: TrialProgress) -> None:
        """Where the trial is, not more often than worth reading."""
        if self._told is not None:
            trial, phase, second = self._told
            if (trial, phase) == (event.id, event.phase) and event.seconds - second < self._every:
                return
        self._told = (event.id, event.phase, event.seconds)
        detail = f": {event.detail}" if event.detail else ""
        self._line(f"trial {event.id} {event.phase}: {words.duration(event.seconds)}{detail}")

    def trial_finished(self, trial: Trial) -> None:
        """How it ended, after what exposure."""
        self._finished(trial, "")

    def belief(self, belief: Belief) -> None:
        """The best sets with their probabilities."""
        sets = [f"{words.probability(chance)} {words.names(found)}" for found, chance in belief.sets[:3]]
        more = []
        if belief.trials_left is not None:
            more.append(f"about {words.plural(belief.trials_left, 'more trial')}")
        self._line("belief: " + "; ".join([*sets, *more]))

    def note(self, text: str) -> None:
        """The note."""
        self._line(f"note: {text}")

    def finished(self, experiment: Experiment) -> None:
        """The outcome with the conclusion in one line."""
        self._line(f"done: {experiment.conclusion.outcome.value}: {words.headline(experiment)}")

    def close(self) -> None:
        """Nothing: every line has been flushed."""

    def _finished(self, trial: Trial, before: str) -> None:
        asked = f"{words.duration(trial.seconds)}, {words.plural(trial.exposure.requests, 'request')}"
        why = words.why(trial)
        self._line(
            f"{before}trial {trial.id} {trial.outcome.value}: {trial.arm}: {asked}"
            + (f": {why}" if why and trial.outcome is not Outcome.PASS else "")
        )

    def _line(self, text: str) -> None:
        if self._broken:
            return
        encoding = self._stream.encoding or "utf-8"
        shown = clean.line(text, _LINE_WIDTH).encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(shown + "\n")
            self._stream.flush()
        except OSError:  # the reader has gone; trials must still end and be stored
            self._broken = True
