"""What a trial saw, while it runs, and the files that it leaves behind."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Literal

from culpa.model import Incident, Outcome, RequestResult, Signature, Trial
from culpa.probes import Answer, Judgement, LongPrompt, Probe, Question, Request, Round, overlap
from culpa.session import EngineSession, Failed, Unanswerable, write_json
from culpa.triage import same_failure

# Symptoms that lie in the answer itself: only an answer known to be right is a pass then.
WRONG_OUTPUT = frozenset({"wrong_answer", "gibberish", "degenerate", "nan_logits", "malformed_answer"})
BAD_ARGUMENT = "bad_argument"
REQUESTS = "requests.jsonl"


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
    failed_request: int | None = None
    partial: list[Answer] = field(default_factory=list)  # of the probe that is being asked

    def untestable(self, reason: str) -> None:
        """The trial says nothing about the fault, and why."""
        self.outcome = Outcome.UNTESTABLE
        self.reason = reason

    def record(self, ended: Failed | Unanswerable, hunted: Signature | None) -> None:
        """Take in how the engine's part ended."""
        if isinstance(ended, Unanswerable):
            self.untestable(ended.reason)
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
            self.untestable(f"the engine refuses an argument: {reason}")
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


def request_results(verdict: Verdict) -> tuple[RequestResult, ...]:
    """What came of every request of the trial; the one under way when the engine failed is among them."""
    results = [one for asked in verdict.asked for one in _results(asked.probe, asked.answers)]
    judged = verdict.asked[-1].probe if verdict.asked else None
    failed, index = verdict.failed_probe, verdict.failed_request
    if failed is not None and failed is not judged and index is not None:
        # The engine failed before this probe was answered in whole.
        results += _results(failed, verdict.partial)
        requests = failed.requests()
        at = max(min(index, len(requests) - 1), 0)
        if len(verdict.partial) <= at:
            results.append(_result(requests[at], Answer(failure="connection_lost"), 1))
    return tuple(results)


def asked_as(request: Request) -> str:
    """What identifies a request in the results of trials."""
    return request.fingerprint()[:16]


def _results(probe: Probe, answers: Sequence[Answer]) -> list[RequestResult]:
    at_once = [at_once for one in probe.asked() for at_once in [overlap(one)] * len(one)]
    return [_result(*one) for one in zip(probe.requests(), answers, at_once, strict=False)]


def _result(request: Request, answer: Answer, at_once: int) -> RequestResult:
    kind: Literal["question", "long_prompt", "other"] = "other"
    if isinstance(request.recipe, LongPrompt):
        kind = "long_prompt"
    elif isinstance(request.recipe, Question) and request.recipe.answer:
        kind = "question"
    return RequestResult(
        kind,
        _status(request, answer),
        answer.prompt_tokens,
        answer.completion_tokens,
        answer.cached_tokens,
        round(answer.seconds, 4),
        at_once,
        asked_as(request),
        request.recipe.tokens if isinstance(request.recipe, LongPrompt) else 0,
    )


def _status(request: Request, answer: Answer) -> Literal["right", "missed", "answered", "failed"]:
    if answer.failed:
        return "failed"
    if request.expect is None:
        return "answered"
    return "right" if request.expect.met(answer.text) else "missed"


def request_entries(probe: Probe) -> Iterator[dict[str, object]]:
    """The requests of a probe in the form that `--request` reads, in their order."""
    for one in probe.asked():
        for request, count in _runs(one):
            entry: dict[str, object] = {"endpoint": request.endpoint, "body": dict(request.body)}
            if request.span is not None:
                entry["span"] = dataclasses.asdict(request.span)
            yield entry if count == 1 else {**entry, "at_once": count}


def _runs(one: Round) -> Iterator[tuple[Request, int]]:
    """The requests of a round; equal neighbours are one entry that is sent at once."""
    for _, group in groupby(one, key=lambda request: (request.canonical(), request.span)):
        requests = list(group)
        yield requests[0], len(requests)


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
    probe = verdict.failed_probe or (verdict.asked[-1].probe if verdict.asked else None)
    if probe is not None:
        # What was under way when the engine died has no answer, but it is what has to be sent again.
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in request_entries(probe))
        (folder / REQUESTS).write_text(text, encoding="utf-8", errors="backslashreplace")
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
