"""One configuration -> one outcome with its evidence.

A trial starts the engine (or goes on with a living one if only the request changes), checks that the arm is what
it claims, asks its probes, and ends at the first root event. What it saw lies in its folder afterwards.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from culpa.engines.base import EngineAdapter
from culpa.evidence import Asked, Verdict, inconclusive_because, request_results, write_evidence
from culpa.executors import Executor
from culpa.host import Machine
from culpa.model import Configuration, Exposure, Incident, Launch, Outcome, RootEvent, Signature, Trial
from culpa.model.redact import printable, redact
from culpa.probes import Endpoint, Judgement, Limits, Probe, Progress, Reference, ask, judge, overlap
from culpa.session import EngineSession, Failed, Patience, Unanswerable
from culpa.start import Instrument, Starter

NO_CLAIMS = Configuration(())
# How long a failed engine is given to end by itself before it is killed; it has failed already.
GRACE_AFTER_FAILURE = 0.5
GRACE_AFTER_PASS = 10.0
# A wrong answer or a refused connection may have its cause a moment away in the log.
SECOND_LOOK_SECONDS = 1.0
# For how long a pass may be watched at the most, because the failure took so long to show, in seconds.
MOST_WATCHED = 60.0
TRANSPORT_SYMPTOMS = frozenset({"http_error", "connection_lost"})


# Gives the next probe from the engine's limits and from what was asked in this trial so far; None ends it.
ProbeSource = Callable[[Limits, Sequence[Asked]], Probe | None]


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What one trial shall do. `levels` are those of launch-scope factors, `configuration` those of all.

    `hunted` is the signature that counts as FAIL; None while nothing is hunted yet, then every failure counts.
    `claims` are the levels that the arm changes in the user's launch: the engine must confirm them, or the trial
    is untestable. `watch_seconds` is how long a passing engine must have lived since it was ready. `fresh`
    forbids to go on with a living engine. `guarded` puts the runner's instrument into the engine.
    """

    id: int
    configuration: Configuration
    levels: Configuration
    purpose: str
    arm: str
    probes: ProbeSource
    hunted: Signature | None = None
    reference: Reference | None = None
    claims: Configuration = NO_CLAIMS
    watch_seconds: float = 0.0
    fresh: bool = True
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A finished trial with what the experiment may need of it beyond the outcome.

    `failed_probe` is the probe that was running when the trial failed, None if the engine never got ready;
    `seconds_up` the time from ready (or from the first request of this trial) to the failure, `failed_request`
    the index of the request of that probe at which it showed.
    """

    trial: Trial
    asked: tuple[Asked, ...] = ()
    failed_probe: Probe | None = None
    seconds_up: float | None = None
    failed_request: int | None = None


class TrialRunner:
    """Runs trials one after the other on one engine at a time; keeps a passing engine for the next request."""

    def __init__(
        self,
        adapter: EngineAdapter,
        launch: Launch,
        executor: Executor,
        machine: Machine,
        *,
        patience: Patience,
        folder: Path,
        run_tag: str,
        port: int | None,
        kernel_log: Path | None = None,
        instrument: Instrument | None = None,
        on_progress: Callable[[int, str, float, str], None],
    ) -> None:
        self._instrument = instrument
        self._adapter = adapter
        self._launch = launch
        self._patience = patience
        self._folder = folder
        self._starter = Starter(
            adapter,
            executor,
            machine,
            patience,
            folder=folder,
            run_tag=run_tag,
            port=port,
            kernel_log=kernel_log,
        )
        self._on_progress = on_progress
        self._session: EngineSession | None = None
        self._usual_seconds: dict[str, float] = {}

    @property
    def can_guard(self) -> bool:
        """Whether there is an instrument for guarded trials."""
        return self._instrument is not None

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._folder

    @property
    def alive(self) -> Configuration | None:
        """The launch levels of the engine that lives now, None if none does."""
        return self._session.levels if self._session else None

    async def run(self, request: TrialRequest) -> TrialResult:
        """Run one trial to its end. Only cancellation gets out as an exception; the engine is ended then too."""
        began = time.monotonic()
        folder = self._folder / "trials" / f"{request.id:04d}"
        folder.mkdir(parents=True, exist_ok=True)
        verdict = Verdict()
        reused = self._reusable(request)
        session: EngineSession | None = None
        done = False
        try:
            if reused:
                assert self._session is not None
                session = self._session
                await self._probe(session, request, verdict, began)
                if verdict.outcome is not Outcome.PASS:
                    # Earlier requests may have had a part in it, and the arm does not claim them: once more, alone.
                    reused, verdict, began = False, Verdict(), time.monotonic()
            if not reused:
                session = await self._start(request, folder, verdict)
                if session is not None:
                    await self._probe(session, request, verdict, began)
            done = True
        finally:
            if not done:
                await self.close()
        judged_at = time.monotonic()
        if session is None or verdict.outcome is not Outcome.PASS:
            self._on_progress(request.id, "stopping", time.monotonic() - began, "")
            survivors = await self._end(GRACE_AFTER_FAILURE)
            if survivors:
                verdict.untestable(f"processes of the engine could not be ended: {', '.join(survivors)}")
        trial = self._finish(request, verdict, session, reused, began, judged_at, folder)
        write_evidence(folder, trial, verdict, session)
        return TrialResult(
            trial,
            tuple(verdict.asked),
            verdict.failed_probe,
            _seconds_up(session, verdict, began),
            verdict.failed_request,
        )

    async def close(self) -> None:
        """End the living engine, if there is one."""
        await self._end(GRACE_AFTER_PASS)

    # -- starting ------------------------------------------------------------------------------------------

    def _reusable(self, request: TrialRequest) -> bool:
        session = self._session
        return (
            not request.fresh
            and session is not None
            and session.levels == request.levels
            and session.exit_code() is None
        )

    async def _start(self, request: TrialRequest, folder: Path, verdict: Verdict) -> EngineSession | None:
        """Start the engine and wait until it is ready; on anything else the verdict is set and None returned."""
        survivors = await self._end(GRACE_AFTER_PASS)
        if survivors:
            verdict.untestable(f"the machine is not free for a trial: {'; '.join(survivors)}")
            return None
        began = time.monotonic()
        instrument = self._instrument if request.guarded else None
        started = await self._starter.start(self._launch, request.levels, folder, instrument)
        if isinstance(started, Unanswerable):
            verdict.untestable(started.reason)
            return None
        session = self._session = started
        self._on_progress(request.id, "starting", 0.0, "")
        ended = await session.wait_until_ready(
            lambda line: self._on_progress(request.id, "starting", time.monotonic() - began, line)
        )
        if ended is not None:
            verdict.record(ended, request.hunted)
            return session
        verdict.mismatches = tuple(self._adapter.mismatches(request.claims, session.effective))
        if verdict.mismatches:
            verdict.untestable(f"the arm is not what it claims: {'; '.join(verdict.mismatches)}")
        return session

    async def _end(self, grace: float) -> tuple[str, ...]:
        session, self._session = self._session, None
        return await session.close(grace) if session else ()

    # -- probing -------------------------------------------------------------------------------------------

    async def _probe(
        self, session: EngineSession, request: TrialRequest, verdict: Verdict, began: float
    ) -> None:
        if verdict.outcome is not Outcome.PASS:
            return
        limits = self._adapter.limits(session.api, session.effective)
        headers = {"Authorization": f"Bearer {session.api_key}"} if session.api_key else None
        endpoint = Endpoint(session.base_url, limits.model, headers=headers)
        try:
            while (probe := request.probes(limits, verdict.asked)) is not None:
                if not await self._ask_one(session, endpoint, probe, request, verdict, began):
                    return
            await self._watch_on(session, request, verdict, began)
        finally:
            await endpoint.close()

    async def _ask_one(
        self,
        session: EngineSession,
        endpoint: Endpoint,
        probe: Probe,
        request: TrialRequest,
        verdict: Verdict,
        began: float,
    ) -> bool:
        """Ask one probe; False if the trial is over with it."""
        asked_at = time.monotonic()
        last_token_at = asked_at
        sent_before = verdict.sent
        verdict.partial = []
        most_tokens = probe.most_tokens()
        received = 0

        def progressed(progress: Progress) -> None:
            nonlocal last_token_at, received
            received = progress.tokens
            verdict.failed_request = progress.sent - 1  # if it dies now, the last one sent is the suspect
            verdict.sent = sent_before + progress.sent
            last_token_at = time.monotonic()
            self._on_progress(request.id, "probing", last_token_at - began, _progress_text(probe, progress))

        self._on_progress(request.id, "probing", asked_at - began, probe.name)
        came = await session.watch(
            ask(probe, endpoint, progressed, verdict.partial),
            stall=self._stall(probe),
            last_token_at=lambda: last_token_at,
            runaway=lambda: f"{received} tokens and no end" if received > most_tokens else "",
        )
        if isinstance(came, (Failed, Unanswerable)):
            verdict.failed_probe = probe
            verdict.record(came, request.hunted)
            return False
        judgement = judge(probe, came, request.reference)
        verdict.asked.append(Asked(probe, came, judgement))
        inconclusive = inconclusive_because(judgement, request.hunted)
        if inconclusive:
            verdict.untestable(inconclusive)
            return False
        if judgement.status != "wrong":
            self._usual_seconds[probe.name] = max(
                self._usual_seconds.get(probe.name, 0.0), time.monotonic() - asked_at
            )
            return True
        verdict.failed_probe = probe
        if judgement.failed_request is not None:
            verdict.failed_request = judgement.failed_request
        await self._blame_answer(session, judgement, request, verdict)
        return False

    async def _watch_on(
        self, session: EngineSession, request: TrialRequest, verdict: Verdict, began: float
    ) -> None:
        """A pass must have lived as long as the failing engine did: else shorter requests would seem to help."""
        assert session.ready_at is not None
        since = max(session.ready_at, began)
        rest = since + min(request.watch_seconds, MOST_WATCHED) - time.monotonic()
        if rest > 0:
            self._on_progress(request.id, "watching", time.monotonic() - began, f"for another {rest:.0f} s")
            ended = await session.failure_after(rest)
            if ended is not None:
                verdict.record(ended, request.hunted)

    async def _blame_answer(
        self, session: EngineSession, judgement: Judgement, request: TrialRequest, verdict: Verdict
    ) -> None:
        """An answer is wrong. If the transport failed, the engine's log may say why; else the answer is the event."""
        seen_at = time.monotonic()
        symptom = judgement.symptom or "wrong_answer"
        incident = Incident(symptom=symptom, root=RootEvent(line=0, text=judgement.evidence))
        if symptom in TRANSPORT_SYMPTOMS:
            told = await session.failure_after(SECOND_LOOK_SECONDS)
            if told is not None:
                verdict.record(told, request.hunted)
                return
            incident = session.errors_so_far() or incident
        verdict.fail(incident, seen_at, request.hunted, judgement.evidence)

    def _stall(self, probe: Probe) -> float:
        """Idle seconds that count as a hang: far longer than this probe ever took, and never very short."""
        usual = self._usual_seconds.get(probe.name)
        if usual is None:
            return self._patience.stall
        return min(self._patience.stall, max(15.0, 20.0 * usual))

    # -- verdict and evidence ------------------------------------------------------------------------------

    def _finish(
        self,
        request: TrialRequest,
        verdict: Verdict,
        session: EngineSession | None,
        reused: bool,
        began: float,
        judged_at: float,
        folder: Path,
    ) -> Trial:
        answers = [answer for asked in verdict.asked for answer in asked.answers]
        now = time.monotonic()
        return Trial(
            id=request.id,
            configuration=request.configuration,
            outcome=verdict.outcome,
            purpose=request.purpose,
            arm=request.arm,
            reason=redact(printable(verdict.reason)),
            signature=verdict.incident.signature() if verdict.incident else None,
            root=verdict.incident.root if verdict.incident else None,
            async_stack=verdict.incident.async_stack if verdict.incident else False,
            seconds=round(now - began, 3),
            start_seconds=(
                round(session.seconds_to_ready, 3)
                if session and not reused and session.seconds_to_ready is not None
                else None
            ),
            verdict_delay_seconds=(
                round(judged_at - verdict.seen_at, 3) if verdict.seen_at is not None else None
            ),
            exposure=Exposure(
                # A refused request asked nothing of the engine.
                requests=max(0, verdict.sent - sum(answer.refused for answer in answers)),
                tokens=sum((a.prompt_tokens or 0) + (a.completion_tokens or 0) for a in answers),
                seconds=round(now - began, 3),
                concurrency=max(
                    (overlap(one) for asked in verdict.asked for one in asked.probe.asked()), default=1
                ),
            ),
            effective=tuple(sorted(session.effective.items())) if session else (),
            mismatches=verdict.mismatches,
            exit_code=verdict.exit_code,
            folder=str(folder.relative_to(self._folder)),
            requests=request_results(verdict),
        )


def _seconds_up(session: EngineSession | None, verdict: Verdict, began: float) -> float | None:
    if session is None or session.ready_at is None or verdict.seen_at is None:
        return None
    return max(0.0, verdict.seen_at - max(session.ready_at, began))


def _progress_text(probe: Probe, progress: Progress) -> str:
    text = f"{probe.name}: {progress.answered} of {progress.requests} answers"
    return f"{text}, {progress.tokens} tokens" if progress.tokens else text
