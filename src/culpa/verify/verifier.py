"""Verifies an engine: asks the whole suite, judges every answer, and says what that excludes and what not.

The suite is that of `culpa isolate`. Short of a failure it goes on for as long as it was asked to; a failure ends it,
unless it is to keep going. Answers of a model that knows nothing need answers recorded from a trusted configuration.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import culpa
from culpa.evidence import Asked
from culpa.hunt import SizesSoFar, Suite
from culpa.metrics import counters, read_metrics
from culpa.model import Incident
from culpa.model.options import IsolateOptions
from culpa.model.redact import printable, redact
from culpa.model.verification import ProbeReport, Verification
from culpa.probes import (
    Answer,
    Judgement,
    Limits,
    Probe,
    judge,
    long_prompt_tokens,
    reference_from,
    with_new_sessions,
)
from culpa.session import Failed, Unanswerable
from culpa.target import Target
from culpa.verify.golden import Asking, BadGolden, Golden, digest
from culpa.verify.gpu_messages import GpuMessages

QUICK = ("completions", "stream", "same_twice", "cold")  # beside `short` and `medium`
QUICK_TOKENS = 4_000
SUITES = ("quick", "standard", "soak")
SOAK_SECONDS = 3_600.0
START = Probe("start", (), description="the engine's own start")


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What a verification is asked to do. `duration` is seconds; None means once through the suite. `suite_given` says
    that the user named the suite, `size_chosen` that the suite and not the user chose the length of long prompts."""

    suite: str = "standard"
    duration: float | None = None
    keep_going: bool = False
    probes: IsolateOptions = field(default_factory=IsolateOptions)
    golden: Path | None = None
    record_golden: Path | None = None
    suite_given: bool = False
    size_chosen: bool = False

    @property
    def asking(self) -> Asking:
        """What decides beside the suite on the text of the prompts."""
        return Asking(
            self.probes.probe_tokens,
            self.probes.questions,
            self.probes.records,
            digest(self.probes.request_file),
        )


class Verifier:
    """One verification of one engine. `report` hears of each probe as it is done."""

    def __init__(
        self,
        target: Target,
        options: VerifyOptions,
        *,
        kernel: GpuMessages,
        golden: Golden | None = None,
        report: Callable[[ProbeReport], None] = lambda _: None,
        started: Callable[[str, int], None] = lambda _name, _round: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._options = options
        self._golden = golden
        self._kernel = kernel
        self._report = report
        self._started = started
        self._clock = clock
        self.probes: list[ProbeReport] = []
        self.asked: list[Asked] = []
        self.incident: Incident | None = None
        self.untestable = ""
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}
        self._limits = golden.limits if golden is not None else target.limits
        self._sizes = SizesSoFar(golden.sizes if golden is not None else None)

    async def run(self) -> None:
        """Ask until the suite and the time are through, or the first failure. Cancellation passes through."""
        began = self._clock()
        if self._target.failed is not None:
            self._failed(self._target.failed, START, 0, 0.0)
            return
        self._before = read_metrics(await self._target.metrics())
        number = 1
        while True:
            if not await self._round(number):
                break
            until = self._options.duration
            if until is None or self._clock() - began >= until:
                break
            number += 1
        self._after = read_metrics(await self._target.metrics())

    async def _round(self, number: int) -> bool:
        """Once through the suite; False if the verification is over with it."""
        asked: list[Asked] = []
        for probe in self._suite(asked):
            fresh = probe if number == 1 or self._golden is not None else with_new_sessions(probe, number)
            self._started(probe.name, number)
            if not await self._one(fresh, number, asked):
                return False
        return True

    def _suite(self, asked: list[Asked]) -> Iterator[Probe]:
        """The probes one by one: what the first answers tell decides on the size of the later ones."""
        if self._sizes.limits is not None:
            self._sizes = SizesSoFar(self._sizes.now)
        source = Suite(fitting(self._options, self._limits)).source(self._sizes)
        while (probe := source(self._limits, asked)) is not None:
            yield probe

    async def _one(self, probe: Probe, number: int, asked: list[Asked]) -> bool:
        began = self._clock()
        came = await self._target.ask(probe)
        seconds = self._clock() - began
        self._kernel.look()
        if isinstance(came, Unanswerable):
            self.untestable = came.reason
            return False
        if isinstance(came, Failed):
            self._failed(came, probe, number, seconds)
            return False
        judged = judge(probe, came, self._golden.reference if self._golden else None)
        kept = Asked(probe, came, judged)
        asked.append(kept)
        self.asked.append(kept)
        if judged.status == "wrong" and judged.symptom in ("connection_lost", "http_error"):
            self.incident = await self._target.said() or self.incident
        self._note(probe, came, judged, number, seconds)
        lost = judged.symptom == "connection_lost"
        return not lost and (judged.status != "wrong" or self._options.keep_going)

    def _failed(self, failed: Failed, probe: Probe, number: int, seconds: float) -> None:
        """The engine failed under a probe, or before any."""
        incident = self.incident = failed.incident
        text = incident.root.text if incident.root else incident.event or ""
        self._note(probe, (), Judgement("wrong", text, incident.symptom), number, seconds)

    def _note(
        self, probe: Probe, answers: Sequence[Answer], judged: Judgement, number: int, seconds: float
    ) -> None:
        report = ProbeReport(
            name=probe.name,
            round=number,
            status=judged.status,
            evidence=redact(printable(judged.evidence)),
            symptom=judged.symptom,
            description=probe.description,
            caveat=redact(printable(judged.caveat)),
            requests=len(answers) or len(probe.requests()),
            tokens=sum((one.prompt_tokens or 0) + (one.completion_tokens or 0) for one in answers),
            seconds=round(seconds, 3),
            concurrency=max((len(one) for one in probe.asked()), default=1),
            known=any(request.expect is not None for request in probe.requests()),
        )
        self.probes.append(report)
        self._report(report)

    def result(self, *, target: str, started: str, seconds: float, interrupted: bool) -> Verification:
        """What was seen so far, as one value."""
        self._kernel.look()
        return Verification(
            culpa_version=culpa.__version__,
            started=started,
            target=redact(target),
            engine=self._target.engine,
            engine_version=self._target.version,
            model=self._target.limits.model,
            suite=self._options.suite,
            probes=tuple(self.probes),
            seconds=round(seconds, 3),
            counters=counters(self._before, self._after),
            xids=tuple(self._kernel.own),
            other_xids=tuple(self._kernel.others),
            kernel_log=self._kernel.source,
            incident=self.incident,
            golden=str(self._options.golden or ""),
            untestable=redact(printable(self.untestable)),
            interrupted=interrupted,
        )

    def golden(self) -> Golden:
        """The answers so far as trusted ones. Raises BadGolden if a probe failed."""
        wrong = [one.name for one in self.probes if one.status == "wrong"]
        if wrong or self.incident is not None or not self.asked:
            raise BadGolden(f"{', '.join(dict.fromkeys(wrong)) or 'the engine'} failed")
        if self.untestable:
            raise BadGolden("the suite was not asked to its end")
        return Golden(
            reference_from([(one.probe, one.answers) for one in self.asked]),
            self._options.probes.seed,
            self._limits,
            self._sizes.now,
            self._options.suite,
            self._options.asking,
        )


def with_suite(options: VerifyOptions) -> VerifyOptions:
    """The options with the kinds of request, and their size, that the suite stands for."""
    if options.suite != "quick":
        return options
    chosen = options.probes
    tokens = QUICK_TOKENS if chosen.probe_tokens is None else chosen.probe_tokens
    return replace(
        options,
        probes=replace(chosen, probes=QUICK, probe_tokens=tokens),
        size_chosen=chosen.probe_tokens is None,
    )


def fitting(options: VerifyOptions, limits: Limits) -> IsolateOptions:
    """What is asked of an engine with these limits: a length that the suite chose, and not the user, must fit in."""
    probes, context = options.probes, limits.context_tokens
    if not options.size_chosen or probes.probe_tokens is None or context is None:
        return probes
    return replace(probes, probe_tokens=min(probes.probe_tokens, long_prompt_tokens(limits)))
