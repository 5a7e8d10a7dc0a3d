"""From recorded traffic that makes a launch fail to the smallest part of it that still does.

Each trial is a fresh engine that is asked a part of the requests, in their order, with their overlap and their
cancellations. Which part is tried next is decided by `culpa.reduction`.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

import culpa
from culpa.executors import LocalExecutor
from culpa.host import end_leftovers
from culpa.hunt import in_order
from culpa.interrupts import until_interrupted
from culpa.isolate import DEFAULT_ROOT, Setup
from culpa.model import Outcome, Signature, all_suspect
from culpa.model.redact import redact
from culpa.probes import Probe
from culpa.reduction import Reduced, Reduction, Step
from culpa.replay.journal import Remembered, digest_of, reopened
from culpa.session import Patience
from culpa.start import SCRATCH
from culpa.store import BadRunFolder, Journal, create_run
from culpa.traffic import (
    LONGEST_PAUSE,
    BadRecording,
    Recorded,
    Recording,
    askable,
    probe_from,
    renumbered,
    write_folder,
)
from culpa.trial import TrialRequest, TrialResult, TrialRunner

REDUCED = "reduced"
# After so many trials in a row that say nothing, the launch itself is broken by now.
_MOST_IN_VAIN = 5


@dataclass(frozen=True, slots=True)
class Options:
    """How a reduction is done. Times in seconds; `speed` as in `Probe`."""

    speed: float = 1.0
    pause: float = LONGEST_PAUSE
    tries: int = 3
    repeat: int = 2
    confidence: float = 0.95
    max_trials: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """A finished trial of a reduction."""

    number: int
    step: Step
    outcome: Outcome
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """How a reduction ended: what it came to, and the requests that are left, in the folder that replays them."""

    reduced: Reduced
    requests: tuple[Recorded, ...]
    of: int
    left_out: int
    signature: Signature | None
    reason: str
    trials: int
    seconds: float
    folder: Path
    kept_in: Path | None
    source: str
    stopped: str = ""
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether the failure was seen at all."""
        return bool(self.reduced.kept)

    @property
    def untestable(self) -> bool:
        """Whether no trial at all could say anything."""
        return not self.failed and not self.reduced.before[1]


class _Reducing:
    """The loop: ask the reduction, run the trial, tell it, journal it, stop."""

    def __init__(
        self,
        requests: tuple[Recorded, ...],
        runner: TrialRunner,
        setup: Setup,
        options: Options,
        journal: Journal,
        tell: Callable[[Tried], None],
    ) -> None:
        self.requests = requests
        self.reduction = Reduction(
            len(requests), confidence=options.confidence, tries=options.tries, repeat=options.repeat
        )
        self.trials = 0
        self.signature: Signature | None = None
        self.reason = ""
        self.stopped = ""
        self._runner = runner
        self._levels = all_suspect(setup.reading.factors)
        self._options = options
        self._journal = journal
        self._tell = tell
        self._watch = 0.0
        self._in_vain = 0
        self._contents: bool | None = None

    def recall(self, tried: Sequence[Remembered]) -> None:
        """Take in the trials of an earlier sitting. Raises BadRunFolder where they don't follow from each other."""
        for one in tried:
            step = self.reduction.next()
            if step is None or _ranges(step.kept) != one.kept:
                raise BadRunFolder(
                    f"{self._journal.folder}: trial {one.trial} is not the one that would be run now: culpa has "
                    "changed, so start a new run"
                )
            self.trials = max(self.trials, one.trial)
            self.reduction.tell(step, one.failed, one.reached)
            if one.signature is not None:
                self.signature, self.reason, self._watch = one.signature, one.reason, one.watch

    async def run(self) -> None:
        """Run to the end; a cancelled run leaves what it found so far in `reduction`."""
        began = time.monotonic()
        if any(one.failed for one in self.requests):
            self._contents = False  # the engine's end is what is looked for, in every part of the requests
        try:
            while (step := self.reduction.next()) is not None:
                self.stopped = self._spent(time.monotonic() - began)
                if self.stopped:
                    return
                await self._try(step)
                if self._in_vain >= _MOST_IN_VAIN:
                    self.stopped = f"{_MOST_IN_VAIN} trials in a row said nothing of the failure"
                    return
        finally:
            await self._runner.close()

    def _spent(self, seconds: float) -> str:
        options = self._options
        if options.max_trials is not None and self.trials >= options.max_trials:
            return f"--max-trials {options.max_trials} was reached"
        if options.max_seconds is not None and seconds >= options.max_seconds:
            return "--max-time was reached"
        return ""

    async def _try(self, step: Step) -> None:
        self.trials += 1
        probe = self._probe(step)
        result = await self._runner.run(
            TrialRequest(
                id=self.trials,
                configuration=self._levels,
                levels=self._levels,
                purpose=step.purpose,
                arm=f"{len(step.kept)} of {len(self.requests)} requests",
                probes=in_order((probe,)),
                hunted=self.signature,
                watch_seconds=self._watch,
            )
        )
        failed = _failed(result)
        self._in_vain = self._in_vain + 1 if failed is None else 0
        reached = _reached(result, probe) if failed else None
        first = failed is True and self.signature is None
        if first:
            self.signature = result.trial.signature
            self.reason = result.trial.reason
            # A pass must have lived on for as long as it took from the last request to the failure.
            self._watch = min(10.0, result.trial.verdict_delay_seconds or 0.0)
        self.reduction.tell(step, failed, reached)
        self._journal.append(
            "tried",
            trial=self.trials,
            purpose=step.purpose,
            kept=_ranges(step.kept),
            outcome=result.trial.outcome,
            reached=reached,
            reason=result.trial.reason,
            seconds=result.trial.seconds,
            **self._hunted() if first else {},
        )
        self._tell(Tried(self.trials, step, result.trial.outcome, result.trial.reason, result.trial.seconds))

    def _hunted(self) -> dict[str, object]:
        return {
            "signature": asdict(self.signature) if self.signature is not None else None,
            "watch": self._watch,
        }

    def _probe(self, step: Step) -> Probe:
        return probe_from(
            [self.requests[place] for place in step.kept],
            name="recorded",
            speed=self._options.speed,
            longest_pause=self._options.pause,
            contents=self._contents,
        )


def reduce(
    recording: Recording,
    requests: tuple[Recorded, ...],
    setup: Setup,
    options: Options,
    out: Path | None,
    tell: Callable[[Tried], None],
    *,
    resume: bool = False,
) -> Found:
    """Reduce the requests; a smaller recording is written into the run's folder.

    With `resume` the run in `out` goes on where it was cut off. Raises BadRunFolder and BadRecording. SIGINT and
    SIGTERM end the engine and give what was found so far.
    """
    asked = tuple(one for one in requests if askable(one))
    if not asked:
        raise BadRecording(f"{recording.source}: none of the requests is a POST of a JSON object")
    now = datetime.now(UTC)
    folder = out or DEFAULT_ROOT / f"{now:%Y%m%d-%H%M%S}-replay"
    command = redact(setup.launch.command_line())
    digest = digest_of(asked)
    tag = hashlib.sha256(os.fsencode(f"{folder.resolve()} {now} {os.getpid()}")).hexdigest()[:16]
    tried: list[Remembered] = []
    if resume:
        journal, tag, tried = reopened(folder, command, digest)
        end_leftovers(tag, folder.resolve())
    else:
        journal = create_run(
            folder,
            {
                "culpa": culpa.__version__,
                "started": now.isoformat(timespec="seconds"),
                "tag": tag,
                "engine": setup.adapter.name,
                "command": command,
                "recording": recording.source,
                "requests": len(asked),
                "digest": digest,
                "reduction": asdict(options),
            },
        )
    reducing = _Reducing(asked, _runner(setup, folder.resolve(), tag), setup, options, journal, tell)
    reducing.recall(tried)
    return asyncio.run(_reduce(recording, reducing, journal, left_out=len(requests) - len(asked)))


async def _reduce(recording: Recording, reducing: _Reducing, journal: Journal, *, left_out: int) -> Found:
    began = time.monotonic()
    asked, folder = reducing.requests, journal.folder
    _, interrupted = await until_interrupted(reducing.run())
    reduced = reducing.reduction.result()
    left = tuple(asked[place] for place in reduced.kept)
    kept_in = None
    if left:
        kept_in = folder / REDUCED
        rmtree(kept_in, ignore_errors=True)  # of an earlier sitting
        write_folder(kept_in, renumbered(left), recording)
    seconds = round(time.monotonic() - began, 3)
    journal.append(
        "interrupted" if interrupted else "ended",
        kept=_ranges(reduced.kept),
        result={
            "outcome": "no_failure" if not left else "reduced" if reduced.minimal else "reduced so far",
            "interrupted": interrupted,
            "headline": f"{len(left)} of {len(asked)} requests" if left else "",
            "trials_run": reducing.trials,
            "elapsed_seconds": seconds,
        },
    )
    return Found(
        reduced,
        left,
        of=len(asked),
        left_out=left_out,
        signature=reducing.signature,
        reason=reducing.reason,
        trials=reducing.trials,
        seconds=seconds,
        folder=folder,
        kept_in=kept_in,
        source=recording.source,
        stopped=reducing.stopped,
        interrupted=interrupted,
    )


def _runner(setup: Setup, folder: Path, tag: str) -> TrialRunner:
    options = setup.options
    given = options.kernel_log
    return TrialRunner(
        setup.adapter,
        setup.launch,
        LocalExecutor(),
        setup.machine,
        patience=Patience(options.start_timeout, options.stall_timeout, options.request_timeout),
        folder=folder,
        run_tag=tag,
        port=setup.port,
        kernel_log=Path(given).resolve() if given is not None else setup.adapter.kernel_log(folder / SCRATCH),
        on_progress=lambda *_: None,
    )


def _failed(result: TrialResult) -> bool | None:
    """Whether the failure came again; None where the trial says nothing of it."""
    match result.trial.outcome:
        case Outcome.FAIL:
            return True
        case Outcome.PASS:
            return False
        case _:
            return None


def _reached(result: TrialResult, probe: Probe) -> int | None:
    """How many requests had gone out when the failure came. An answer that is wrong may owe that to any request that
    went out before it ended."""
    index = result.failed_request
    requests = probe.requests()
    if result.failed_probe is None or index is None or not 0 <= index < len(requests):
        return None
    span = requests[index].span
    judged = bool(result.asked) and result.asked[-1].judgement.status == "wrong"
    if not judged or span is None:
        return index + 1
    if span.end is None:
        return len(requests)
    end = span.end
    return sum(other.span is not None and other.span.start < end for other in requests)


def _ranges(kept: tuple[int, ...]) -> str:
    """Places as ranges: `3, 10-20`."""
    runs: list[list[int]] = []
    for place in kept:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
