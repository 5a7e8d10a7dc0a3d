"""Whether a candidate still fails, and as often: trials are bought one by one, and none twice.

A failure that always comes needs one trial for a candidate. One that comes with rate p needs up to
log(0.05) / log(1 - p) passes before a candidate is given up: 19 of 20 with that rate would have failed by then.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil, log

from culpa.minimize.case import Case
from culpa.model import Count, Outcome
from culpa.model.minimization import Attempt
from culpa.search.exposure import rate_interval
from culpa.search.rates import RateHeld

_MISSED = 0.05  # chance of giving up a candidate that fails as often as the case did at first
_MOST_PASSES = 20
_FAILURES = 3  # of a case that took a step: enough to tell a rate that fell tenfold
_MOST_CHECKS = 24


class OutOfTrials(Exception):
    """A limit of the user forbids the next trial."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial of a case, from the journal or just now."""

    id: int
    outcome: Outcome


@dataclass(slots=True)
class _Counts:
    ids: list[int] = field(default_factory=list)
    failed: int = 0
    passed: int = 0
    other: int = 0
    untestable: int = 0

    @property
    def count(self) -> Count:
        return Count(self.failed, self.failed + self.passed)

    def take(self, tried: Tried) -> None:
        self.ids.append(tried.id)
        self.failed += tried.outcome is Outcome.FAIL
        self.passed += tried.outcome is Outcome.PASS
        self.other += tried.outcome is Outcome.OTHER
        self.untestable += tried.outcome is Outcome.UNTESTABLE


class Meter:
    """Asks for trials until a question is answered. `run` runs one trial of a case; it raises OutOfTrials."""

    def __init__(
        self, run: Callable[[Case, str], Awaitable[Tried]], told: Callable[[Attempt], None] = lambda _: None
    ) -> None:
        self._run = run
        self._told = told
        self._counts: dict[str, _Counts] = {}
        self.start = Count(0, 0)
        self.attempts: list[Attempt] = []

    def count(self, case: Case) -> Count:
        """How often a case has failed so far, of the trials that are evidence."""
        return self._of(case).count

    async def begin(self, case: Case) -> None:
        """Measure the case to begin with: its rate is the one to hold."""
        await self._until(case, "start", failures=_FAILURES, passes=_MOST_PASSES)
        self.start = self.count(case)
        self._note("start", "what the run isolated", case, kept=self.start.failed > 0)

    async def still_fails(self, case: Case, step: str, change: str) -> bool:
        """Whether a candidate fails with the hunted signature, at the first failure or after enough passes."""
        await self._until(case, step, failures=1, passes=self._patience())
        kept = self.count(case).failed > 0
        self._note(step, change, case, kept=kept)
        return kept

    async def once(self, case: Case, step: str, change: str) -> bool | None:
        """One trial of a candidate: whether it failed with the hunted signature, None if it tells nothing of that."""
        tried = await self._run(case, step)
        self._of(case).take(tried)
        self._note(step, change, case, kept=tried.outcome is Outcome.FAIL)
        return {Outcome.FAIL: True, Outcome.PASS: False}.get(tried.outcome)

    async def held(self, case: Case, step: str) -> bool:
        """Whether the case that a step ended with fails as often as the one it all began with."""
        before = self.count(case)
        enough = 2 if self.start.failed == self.start.trials else _FAILURES
        await self._until(case, step, failures=enough, passes=_MOST_CHECKS)
        comparison = RateHeld(self.start, self.count(case))
        held = not comparison.fell
        if self.count(case) != before or not held:
            note = comparison.sentence() if comparison.intermittent else ""
            self._note(step, "again, for its rate", case, kept=held, note=note)
        return held

    def sentence(self, case: Case) -> str:
        """How the rate of a case compares with that of the start."""
        comparison = RateHeld(self.start, self.count(case))
        if comparison.intermittent:
            return comparison.sentence()
        return (
            f"it failed each time: {self.start.trials} trials at first, {self.count(case).trials} at the end"
        )

    # -- helpers -------------------------------------------------------------------------------------------

    def _of(self, case: Case) -> _Counts:
        return self._counts.setdefault(case.key(), _Counts())

    def _patience(self) -> int:
        """Passes after which a candidate is given up."""
        if self.start.failed == self.start.trials:
            return 1
        # Half of the way to the lower bound: a rate that was measured by few trials may be lower than it looks.
        low = rate_interval(self.start)[0]
        rate = max(0.05, (low + self.start.failed / self.start.trials) / 2)
        return min(_MOST_PASSES, max(1, ceil(log(_MISSED) / log(1 - rate)))) if rate < 1 else 1

    async def _until(self, case: Case, step: str, *, failures: int, passes: int) -> None:
        """Trials until the case has failed or passed so often. Failures of another kind and trials that could not be
        run are answers too: more of them tell no more."""
        counts = self._of(case)
        while counts.failed < failures and counts.passed < passes:
            if counts.other + counts.untestable >= 2 or (
                counts.other + counts.untestable and not counts.failed
            ):
                return
            counts.take(await self._run(case, step))

    def _note(self, step: str, change: str, case: Case, *, kept: bool, note: str = "") -> None:
        counts = self._of(case)
        attempt = Attempt(
            step, change, counts.count, counts.other, counts.untestable, kept, note, tuple(counts.ids)
        )
        self.attempts.append(attempt)
        self._told(attempt)
