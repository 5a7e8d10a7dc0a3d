"""The guard of one process: runs checks, counts them, writes what they find, and stays out of the way.

A check that fails by itself is written down as `guard_error` and switched off: the guard never ends the engine, except
by a violation in `raise` mode.
"""

import atexit
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from culpa_guard.settings import Settings
from culpa_guard.sink import Sink
from culpa_guard.version import VERSION
from culpa_guard.violation import Violation

PER_KIND = 100
"""Violations of one kind that are written in full; the others are only counted."""
SUMMARY_STEPS = 200
SUMMARY_SECONDS = 2.0


class GuardViolation(RuntimeError):
    """Stops the engine in `raise` mode, before the step that would have used what is wrong."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where this process is: its role (`server`, `engine_core`, `worker`), stage and rank if it has them."""

    engine: str
    engine_version: str
    role: str
    stage: int | None = None
    rank: int | None = None


class Guard:
    """Everything that a process of the engine needs: `step` and `run` around checks, `report` for what they find."""

    def __init__(self, settings: Settings, place: Place, sink: Sink | None = None) -> None:
        self.settings = settings
        self.place = place
        self.sink = sink or Sink(settings.out)
        self.steps = 0
        self.requests = 0
        self.violations = 0
        self.checked: dict[str, int] = {}
        self.off: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._written: dict[str, int] = {}
        self._summed = (0, 0.0)
        self._clock = time.perf_counter

    def start(self, checks: Iterable[str] = (), left_out: Iterable[tuple[str, str]] = ()) -> None:
        """Say what is watched here: names of checks, and those left out with the reason.

        Where nothing is checked, there will be no summary either.
        """
        checks = tuple(checks)
        self.off.update(left_out)
        if checks:
            atexit.register(self.finish)
        self.sink.write(
            "start",
            version=VERSION,
            engine=self.place.engine,
            engine_version=self.place.engine_version,
            mode=self.settings.text,
            role=self.place.role,
            stage=self.place.stage,
            rank=self.place.rank,
            checks=[check for check in checks if check not in self.off],
            left_out=[{"check": check, "reason": reason} for check, reason in self.off.items()],
        )

    def leave_out(self, check: str, reason: str) -> None:
        """Switch a check off while the engine runs, and say so once."""
        if check not in self.off:
            self.off[check] = reason
            self.sink.write("left_out", check=check, reason=reason, **self._where())

    @property
    def looks(self) -> bool:
        """Whether the current step is one of those that are checked."""
        return self.steps % self.settings.every == 0

    def next_step(self, requests: int) -> None:
        """A step of the engine begins; `requests` are new ones."""
        self.steps += 1
        self.requests += requests
        steps, moment = self._summed
        now = self._clock()
        if self.steps - steps >= SUMMARY_STEPS or now - moment >= SUMMARY_SECONDS:
            self._summed = (self.steps, now)
            self.summary()

    def run(
        self,
        check: str,
        work: Callable[[], Iterable[Violation] | None],
        count: int = 1,
        step: int | None = None,
    ) -> None:
        """Do a check and report what it finds.

        `count` is what the summary says was checked; `step` is given where it is not the current one. An error of
        the check itself switches it off.

        Raises:
            GuardViolation: in `raise` mode, at the first violation.
        """
        if check in self.off:
            return
        began = self._clock()
        found: list[Violation] = []
        try:
            found.extend(work() or ())
            self.checked[check] = self.checked.get(check, 0) + count
        except GuardViolation:
            raise
        except Exception as error:
            self.failed(check, error)
        finally:
            self.seconds[check] = self.seconds.get(check, 0.0) + self._clock() - began
        self.report(found, step)

    def report(self, found: Iterable[Violation], step: int | None = None) -> None:
        """Write violations.

        Raises:
            GuardViolation: in `raise` mode, at the first one.
        """
        for violation in found:
            self.violations += 1
            written = self._written.get(violation.kind, 0)
            self._written[violation.kind] = written + 1
            if written < PER_KIND:
                moment = self.steps if step is None else step
                self.sink.write("violation", **violation.fields(), step=moment, **self._where())
            if self.settings.mode == "raise":
                self.summary()
                raise GuardViolation(f"culpa_guard: {violation.kind}: {violation.fields()}")

    def planted(self, fault: str, **fields: object) -> None:
        """Say that a fault was planted on purpose."""
        self.sink.write("planted", fault=fault, step=self.steps, **self._where(), **fields)

    def summary(self) -> None:
        """Write the counts so far. The last summary of a process counts, whether or not it could say goodbye."""
        self.sink.write(
            "summary",
            steps=self.steps,
            requests=self.requests,
            checked=self.checked,
            own_seconds=round(sum(self.seconds.values()), 6),
            seconds={check: round(seconds, 6) for check, seconds in self.seconds.items()},
            violations=self.violations,
            by_kind=self._written,
            **self._where(),
        )

    def finish(self) -> None:
        """The process ends."""
        atexit.unregister(self.finish)
        self.summary()

    def failed(self, check: str, error: Exception) -> None:
        """A check failed by itself: write it down, and switch it off."""
        self.off[check] = f"the check failed: {error!r}"
        self.sink.write("guard_error", check=check, error=repr(error)[:500], step=self.steps, **self._where())

    def _where(self) -> dict[str, object]:
        return {"stage": self.place.stage, "rank": self.place.rank}
