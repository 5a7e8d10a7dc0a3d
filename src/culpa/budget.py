"""The hard limits that a user sets, and which of them ended a run. Pure."""


class Budget:
    """At most so many trials, and no new trial after so many seconds; None is no limit.

    `reached` names the limits that were hit, in the user's words.
    """

    def __init__(self, max_trials: int | None, max_seconds: float | None) -> None:
        self._max_trials = max_trials
        self._max_seconds = max_seconds
        self.reached: list[str] = []

    def trials_left(self, trials: int) -> int | None:
        """How many more trials may be run."""
        return None if self._max_trials is None else self._max_trials - trials

    def seconds_left(self, elapsed: float) -> float | None:
        """For how many more seconds a trial may be started."""
        return None if self._max_seconds is None else self._max_seconds - elapsed

    def spent(self, trials: int, elapsed: float) -> bool:
        """Whether no further trial may be started; notes the limit that forbids it."""
        hit = ""
        if self._max_seconds is not None and elapsed >= self._max_seconds:
            hit = f"--max-time of {self._max_seconds:.0f} s"
        elif self._max_trials is not None and trials >= self._max_trials:
            hit = f"--max-trials of {self._max_trials}"
        if hit and hit not in self.reached:
            self.reached.append(hit)
        return bool(hit)
