"""What a trial saw, while it runs, and the files that it leaves behind."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from culpa.model import Incident, Outcome, Trial
from culpa.probes import Answer, Judgement, Probe
from culpa.session import EngineSession, write_json


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
