"""Compares what keeps a run's failure away with the failing launch itself: side by side, on the same requests."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import culpa
from culpa.environment.levels import levels_of, settings_of_levels
from culpa.executors import LocalExecutor
from culpa.hunt import Sizes, Suite
from culpa.interrupts import until_interrupted
from culpa.isolate import Run, kernel_log_file
from culpa.mitigation.candidates import Candidate, choose
from culpa.mitigation.measure import Bench, Launched
from culpa.mitigation.ratios import Sample, cost, measured
from culpa.mitigation.workload import Workload, survived_lengths, workloads
from culpa.model import Configuration
from culpa.model.diagnosis import SettingValue
from culpa.model.mitigation import Exposure, Mitigation, NotOffered, Option
from culpa.model.redact import redact
from culpa.probes import Limits
from culpa.search.exposure import excluded_rate
from culpa.selection import MOST_FACTORS
from culpa.session import Patience
from culpa.start import Starter
from culpa.store import read_result
from culpa.workload import hunted_probe, varied_in_request

FOLDER = "mitigation"
FAILING = "the failing launch"


class NothingToMitigate(ValueError):
    """The run holds no failure that something keeps away; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class MitigateOptions:
    """How much is measured: launches of each configuration, and configurations at most."""

    repeats: int = 3
    most: int = 4


@dataclass(slots=True)
class _Arm:
    """What the repeats of one configuration told so far."""

    candidate: Candidate | None
    samples: list[Sample | None] = field(default_factory=list)
    asked: str = ""
    refused: str = ""
    launches: int = 0
    passes: int = 0
    requests: int = 0


def mitigate(run: Run, options: MitigateOptions, tell: Callable[[str], None] = lambda _: None) -> Mitigation:
    """Measure. `tell` hears in a sentence what is being done. Raises NothingToMitigate. SIGINT and SIGTERM give what
    was measured by then."""
    comparison = _Comparison(run, options, tell)
    _, interrupted = asyncio.run(until_interrupted(comparison.carry_out()))
    return comparison.result(interrupted=interrupted)


class _Comparison:
    """One comparison under way."""

    def __init__(self, run: Run, options: MitigateOptions, tell: Callable[[str], None]) -> None:
        self._run = run
        self._options = options
        self._tell = tell
        self._began = time.monotonic()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._record = run.record
        self._stored = read_result(run.folder) or {}
        if run.record.hunted is None:
            raise NothingToMitigate(f"{run.folder} saw no failure: there is nothing to keep away")
        setup = run.setup
        self._probe = hunted_probe(run.record, Suite(setup.options))
        room = MOST_FACTORS - len(setup.reading.factors)
        request_factors = varied_in_request(self._probe, run.record, setup.options, max(room, 0))
        choice = choose(
            run.record.ordered(),
            setup.reading.factors,
            {factor.name: factor.suspect for factor in request_factors},
            issues=_known_issues(self._stored),
            settings_at=self._settings_at,
            most=options.most,
        )
        self.not_offered = list(choice.not_offered)
        if not choice.candidates:
            raise NothingToMitigate(
                f"{run.folder}: no configuration of this run kept the failure away under the failing requests"
            )
        self._failing = _Arm(None)
        self._arms = [_Arm(candidate) for candidate in choice.candidates]
        self._workload: Workload | None = None
        self._survives = True
        self.caveats: list[str] = []
        patience = Patience(
            setup.options.start_timeout, setup.options.stall_timeout, setup.options.request_timeout
        )
        starter = Starter(
            setup.adapter,
            LocalExecutor(),
            setup.machine,
            patience,
            folder=run.folder,
            run_tag=run.tag,
            port=setup.port,
            kernel_log=kernel_log_file(run),
        )
        self._bench = Bench(starter, setup.adapter, setup.launch, patience, run.folder / FOLDER)

    async def carry_out(self) -> None:
        """All repeats, the configurations in turns, each repeat beginning with another one."""
        count = len(self._arms)
        self._tell(
            f"{count} configuration{'s' if count > 1 else ''} beside {FAILING}, {self._options.repeats} launches each"
        )
        await self._find_workload()
        assert self._workload is not None
        arms = [*([self._failing] if self._survives else []), *self._arms]
        for repeat in range(self._options.repeats):
            turn = repeat % len(arms)
            for arm in (*arms[turn:], *arms[:turn]):
                if not arm.refused:
                    await self._measure(arm, repeat)

    async def _find_workload(self) -> None:
        """The longest prompts that the failing launch survives; the launch that shows it also warms what can be."""
        members = self._members()
        lengths = survived_lengths(self._record.ordered(), members)
        limits = self._record.limits or Limits("")
        sizes = self._record.sizes or Sizes()
        seed = 1_000 * self._run.setup.options.seed
        for number, workload in enumerate(workloads(limits, sizes, lengths, seed), start=1):
            self._workload = workload
            self._tell(f"{FAILING}: does it survive prompts of about {workload.tokens:,} tokens?")
            came = await self._bench.measure(Configuration(()), f"rehearsal-{number}", workload)
            if came.sample is not None:
                return
            symptom = came.problem.partition(":")[0]
            if not came.ready:
                self.caveats.append(f"{FAILING} does not get ready: {symptom}")
                break
            self.caveats.append(
                f"{FAILING} does not survive prompts of about {workload.tokens:,} tokens: {symptom}"
            )
        self._survives = False
        self.caveats.append(
            f"{FAILING} survived none of these requests, so there is nothing to set the others against"
        )

    async def _measure(self, arm: _Arm, repeat: int) -> None:
        assert self._workload is not None
        candidate = arm.candidate
        name = self._name(arm)
        self._tell(f"{name}: launch {repeat + 1} of {self._options.repeats}")
        came = await self._bench.measure(
            candidate.levels if candidate is not None else Configuration(()),
            f"{repeat + 1}-{_file_name(name)}",
            self._workload,
            self._probe if candidate is not None and repeat == 0 else None,
            self._record.reference,
        )
        self._take(arm, came, name)

    def _take(self, arm: _Arm, came: Launched, name: str) -> None:
        while len(arm.samples) < arm.launches:
            arm.samples.append(None)
        arm.launches += 1
        arm.samples.append(came.sample)
        if came.asked_passed or self._probe is None:
            arm.passes += 1
            arm.requests += came.requests
        arm.asked = came.asked or arm.asked
        if came.asked_passed is False:
            arm.refused = f"the failing requests failed here as well: {came.asked}"
        elif came.sample is None and arm.candidate is not None and came.failed:
            arm.refused = f"it failed while it was measured: {came.problem}"
        elif came.sample is None:
            self.caveats.append(f"{name}, launch {arm.launches}, told nothing: {came.problem}")

    # -- the result ----------------------------------------------------------------------------------------

    def result(self, *, interrupted: bool) -> Mitigation:
        """What was measured so far, ordered by cost."""
        setup = self._run.setup
        failing = self._failing.samples
        options = [
            self._option(arm, arm.candidate)
            for arm in self._arms
            if arm.candidate is not None and not arm.refused and arm.launches
        ]
        options.sort(key=_price)
        refused = [
            NotOffered(arm.candidate.changes, "failed", arm.refused)
            for arm in self._arms
            if arm.candidate is not None and arm.refused
        ]
        return Mitigation(
            culpa_version=culpa.__version__,
            started=self._started,
            seconds=round(time.monotonic() - self._began, 3),
            command=redact(setup.launch.command_line()),
            workload=self._workload.describe() if self._workload is not None else "",
            repeats=self._options.repeats,
            failing=measured(failing),
            options=tuple(options),
            not_offered=(*self.not_offered, *refused),
            caveats=tuple(dict.fromkeys(self.caveats)),
            interrupted=interrupted,
        )

    def _option(self, arm: _Arm, candidate: Candidate) -> Option:
        found = measured(arm.samples, self._failing.samples)
        # Only what was asked the failing requests says anything of the failure.
        launches = len(candidate.trials) + (arm.passes if self._probe is not None else arm.launches)
        requests = sum(trial.exposure.requests for trial in candidate.trials) + arm.requests
        setup = self._run.setup
        return Option(
            name=self._name(arm),
            changes=candidate.changes,
            command=redact(setup.adapter.apply(setup.launch, candidate.levels).command_line()),
            exposure=Exposure(
                launches,
                requests,
                round(excluded_rate(launches), 6),
                round(excluded_rate(max(requests, 1)), 6),
            ),
            measured=found,
            cost=cost(found),
            workarounds=candidate.workarounds,
            asked=arm.asked,
        )

    def _name(self, arm: _Arm) -> str:
        if arm.candidate is None:
            return FAILING
        return ", ".join(f"{name}={level}" for name, _, level in arm.candidate.changes)

    def _members(self) -> Configuration:
        """The suspect levels of the finding's members that belong to the launch; of all factors where there is none."""
        own = {factor.name: factor.suspect for factor in self._run.setup.reading.factors}
        found = {
            str(member.get("name"))
            for finding in self._stored.get("findings") or ()
            for member in finding.get("factors") or ()
        }
        members = {name: level for name, level in own.items() if name in found}
        return Configuration.of(members or own)

    def _settings_at(self, levels: Configuration) -> dict[str, SettingValue]:
        setup = self._run.setup
        launch = setup.adapter.apply(setup.launch, levels)
        return settings_of_levels(levels_of(setup.adapter, launch))


def _known_issues(stored: dict[str, Any]) -> frozenset[str]:
    """Those that the report of the run names, near ones included: a workaround is tried before it is offered."""
    root = stored.get("root_event")
    rows = root.get("known_issues") if isinstance(root, dict) else None
    return frozenset(str(row.get("id")) for row in rows or () if isinstance(row, dict))


def _price(option: Option) -> tuple[bool, float, float, int]:
    """By cost; where the failing launch gave nothing to compare with, the faster one first."""
    speeds = [one.median for one in option.measured if one.metric == "throughput"]
    return option.cost is None, option.cost or 0.0, -sum(speeds), len(option.changes)


def _file_name(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "=.-" else "-" for sign in name)[:80]
