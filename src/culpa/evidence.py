"""What a trial saw, while it runs, and the files that it leaves behind."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from culpa.model import Incident, Outcome, Signature, Trial
from culpa.probes import Answer, Judgement, Probe
from culpa.session import EngineSession, Failed, Unanswerable, write_json
from culpa.triage import same_failure

# Symptoms that lie in the answer itself: only an answer known to be right is a pass then.
WRONG_OUTPUT = frozenset({"wrong_answer", "gibberish", "degenerate", "nan_logits", "malformed_answer"})
BAD_ARGUMENT = "bad_argument"


@dataclass(frozen=True, slots=True)
class Asked:
    """One probe of a trial: what was asked, what came back, what that means."""

    probe: Probe
    answers: tuple[Answer, ...]
    judgement: Judgement


@dataclass(slots=True)
class Verdict:
    """The state of a trial under way; becomes a Trial."""

    outcome: Outcome = Outcome.PASS
    reason: str = ""
    incident: Incident | None = None
    seen_at: float | None = None
    exit_code: int | None = None
    mismatches: tuple[str, ...] = ()
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0
    failed_probe: Probe | None = None

    def record(self, ended: Failed | Unanswerable, hunted: Signature | None) -> None:
        """Take in how the engine's part ended."""
        if isinstance(ended, Unanswerable):
            self.outcome = Outcome.UNTESTABLE
            self.reason = ended.reason
            return
        self.exit_code = ended.exit_code
        text = ended.incident.root.text if ended.incident.root else (ended.incident.event or "")
        self.fail(ended.incident, ended.seen_at, hunted, text)

    def fail(self, incident: Incident, seen_at: float, hunted: Signature | None, reason: str) -> None:
        """The engine failed: FAIL if this is the failure that is hunted, or if none is hunted yet."""
        self.incident = incident
        self.seen_at = seen_at
        self.reason = reason
        if incident.symptom == BAD_ARGUMENT:
            # The arm never ran: this release or build does not take such a flag or level.
            self.outcome = Outcome.UNTESTABLE
            self.reason = f"the engine refuses an argument: {reason}"
        elif hunted is None or same_failure(hunted, incident.signature()):
            self.outcome = Outcome.FAIL
        else:
            self.outcome = Outcome.OTHER


def inconclusive_because(judgement: Judgement, hunted: Signature | None) -> str:
    """Why an answer that is not wrong is no pass either, where a certain failure is hunted; else empty."""
    if hunted is None:
        return ""
    if judgement.status == "unsupported":
        return f"the engine refuses this kind of request: {judgement.evidence}"
    if judgement.status == "unknown" and hunted.symptom in WRONG_OUTPUT:
        return f"whether the answer is right can't be told: {judgement.evidence}"
    return ""


def write_evidence(folder: Path, trial: Trial, verdict: Verdict, session: EngineSession | None) -> None:
    """Write what a person needs to check the verdict; the launch and the log lie in the folder already."""
    if session is not None:
        write_json(folder / "effective.json", {"effective": session.effective, "api": session.api})
        if session.folder != folder:
            (folder / "engine.log.txt").write_text(
                f"This trial went on with the engine of trial {session.folder.name}: see its engine.log.\n",
                encoding="utf-8",
            )
    write_json(
        folder / "answers.json",
        [
            {
                "probe": asked.probe.name,
                "judgement": dataclasses.asdict(asked.judgement),
                "requests": [
                    {"endpoint": request.endpoint, "body": dict(request.body)}
                    for request in asked.probe.requests()
                ],
                "answers": [dataclasses.asdict(answer) for answer in asked.answers],
            }
            for asked in verdict.asked
        ],
    )
    if verdict.failed_probe is not None:
        # What was under way when the engine died has no answer, but it is what has to be sent again.
        write_json(
            folder / "failed_probe.json",
            {
                "probe": verdict.failed_probe.name,
                "rounds": [
                    [{"endpoint": request.endpoint, "body": dict(request.body)} for request in one]
                    for one in verdict.failed_probe.asked()
                ],
            },
        )
    write_json(
        folder / "trial.json",
        {
            "arm": trial.arm,
            "purpose": trial.purpose,
            "outcome": trial.outcome,
            "reason": trial.reason,
            "incident": dataclasses.asdict(verdict.incident) if verdict.incident else None,
        },
    )
