"""`experiment.json`: the whole experiment for programs, redacted, the same bytes for the same run."""

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any

from pydantic import TypeAdapter

from culpa.model import (
    Commands,
    Count,
    Experiment,
    Finding,
    Member,
    OtherFailure,
    RootEvidence,
    Signature,
    Trial,
)
from culpa.model.guard import GuardedTrial, Located
from culpa.model.redact import redact
from culpa.redaction import Redacted
from culpa.report import clean
from culpa.report.asked_arms import asked_arms
from culpa.report.incident_json import gpu_json, issue_json
from culpa.report.passing_arms import PassingArm, passing_arms
from culpa.report.schema import SCHEMA, ExperimentDocument
from culpa.report.words import NOT_JUDGED, headline

_Json = dict[str, Any]
_LOCATED = TypeAdapter[Located | None](Located | None)
_GUARDED = TypeAdapter(tuple[GuardedTrial, ...])


def experiment_document(experiment: Experiment) -> ExperimentDocument:
    """The experiment in the shape of the schema, every text redacted."""
    return ExperimentDocument.model_validate(_redacted(_document(experiment)))


def experiment_json(experiment: Experiment, redactions: Iterable[Redacted] = ()) -> str:
    """The text of `experiment.json`, with a newline at its end; `redactions` say what was taken out before.

    Only ASCII is written: what a log holds in escape or direction-changing characters reaches no terminal.
    """
    document = experiment_document(experiment).model_dump(mode="json", by_alias=True)
    document["redactions"] = [
        {"kind": one.kind, "count": one.count, "different": one.different} for one in redactions
    ]
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _document(experiment: Experiment) -> _Json:
    conclusion = experiment.conclusion
    return {
        "schema": SCHEMA,
        "outcome": conclusion.outcome.value,
        "signature": _signature(experiment.hunted),
        "baseline": _count(experiment.baseline),
        "factors": _factors(experiment),
        "findings": [_finding(finding) for finding in conclusion.findings],
        "other_failures": [_other(failure) for failure in experiment.other_failures],
        "trials": [_trial(trial) for trial in experiment.trials],
        "not_excluded": list(conclusion.not_excluded),
        "commands": _commands(experiment.commands),
        "elapsed_seconds": _number(experiment.elapsed_seconds),
        "conclusion": headline(experiment),
        "no_failure": experiment.no_failure,
        "interrupted": experiment.interrupted,
        "limits_reached": list(experiment.limits_reached),
        "notes": list(experiment.notes),
        "root_event": _root(experiment.root),
        "culpa_version": experiment.culpa_version,
        "run_id": experiment.run_id,
        "started": experiment.started,
        "engine": experiment.engine,
        "engine_version": experiment.engine_version,
        "launch": {
            "command": experiment.launch.command_line(),
            "env": _values(experiment.launch.env),
            "cwd": experiment.launch.cwd,
        },
        "confidence": _number(experiment.confidence),
        "options": [{"name": name, "value": clean.value(name, value)} for name, value in experiment.options],
        "environment": _values(experiment.environment),
        "arms": _asked_arms(experiment),
        "passing_arms": [_passing(arm) for arm in passing_arms(experiment)],
        "layout": [
            {"id": found.id, "level": found.level, "text": found.text, "factors": list(found.factors)}
            for found in experiment.layout
        ],
        "guard": _GUARDED.dump_python(experiment.guarded, mode="json"),
    }


def _redacted(value: Any) -> Any:
    """The same tree with every text redacted; keys are names of culpa's own and stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return value


def _values(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Named values; the name takes part in the redaction, for it may be all that tells a secret."""
    return {name: None if value is None else clean.value(name, value) for name, value in pairs}


def _number(value: float | None) -> float | None:
    """A number rounded to microseconds; what is not finite is unknown."""
    return round(value, 6) if value is not None and isfinite(value) else None


def _signature(signature: Signature | None) -> _Json | None:
    if signature is None:
        return None
    return {
        "symptom": signature.symptom,
        "process": signature.process,
        "rank": signature.rank,
        "event": signature.event,
    }


def _count(count: Count) -> _Json:
    return {"failed": count.failed, "trials": count.trials}


def _member(member: Member) -> _Json:
    return {"name": member.name, "suspect": member.suspect, "safe": member.safe}


def _factors(experiment: Experiment) -> list[_Json]:
    """Every factor once: those with a status first, then those never judged, then the left out."""
    listed: dict[str, _Json] = {}
    for status in experiment.conclusion.statuses:
        listed[status.name] = {
            "name": status.name,
            "suspect": status.suspect,
            "safe": status.safe,
            "status": status.status,
            "reason": status.reason,
        }
    for factor in experiment.factors:
        listed.setdefault(
            factor.name,
            {
                "name": factor.name,
                "suspect": factor.suspect,
                "safe": factor.safe[0],
                "status": "untested",
                "reason": NOT_JUDGED,
            },
        )
    for left in experiment.left_out:
        listed.setdefault(
            left.name,
            {"name": left.name, "suspect": None, "safe": None, "status": "untested", "reason": left.reason},
        )
    return list(listed.values())


def _finding(finding: Finding) -> _Json:
    return {
        "factors": [_member(member) for member in finding.members],
        "level": finding.level.value,
        "probability": _number(finding.probability),
        "sufficient": _count(finding.sufficient),
        "necessary": {name: _count(count) for name, count in finding.necessary},
        "conditions": list(finding.conditions),
        "located": _LOCATED.dump_python(finding.located, mode="json"),
    }


def _other(failure: OtherFailure) -> _Json:
    return {
        "signature": _signature(failure.signature),
        "levels": _values(failure.levels),
        "note": failure.note,
        "trials": list(failure.trials),
    }


def _trial(trial: Trial) -> _Json:
    return {
        "id": trial.id,
        "levels": _values(trial.configuration.levels),
        "outcome": trial.outcome.value,
        "signature": _signature(trial.signature),
        "reason": trial.reason,
        "seconds": _number(trial.seconds),
        "start_seconds": _number(trial.start_seconds),
        "requests": trial.exposure.requests,
        "tokens": trial.exposure.tokens,
        "verdict_delay_seconds": _number(trial.verdict_delay_seconds),
        "arm": trial.arm,
        "purpose": trial.purpose,
        "folder": trial.folder,
        "concurrency": trial.exposure.concurrency,
        "exit_code": trial.exit_code,
        "effective": _values(sorted(trial.effective)),
        "mismatches": list(trial.mismatches),
    }


def _asked_arms(experiment: Experiment) -> list[_Json]:
    asked = asked_arms(experiment)
    if asked is None:
        return []
    return [
        {
            "name": row.name,
            "levels": _values(zip(asked.columns, row.levels, strict=True)),
            "short_questions": row.questions,
            "long_prompts": row.long_prompts,
            "outcome": row.outcome,
            "tokens_per_second": float(row.speed) if row.speed else None,
            "kv_cache_tokens": int(row.cache_tokens.replace(",", "")) if row.cache_tokens else None,
            "trials": list(row.trials),
        }
        for row in asked.rows
    ]


def _passing(arm: PassingArm) -> _Json:
    return {
        "arm": arm.arm,
        "levels": _values(arm.configuration.levels),
        "passes": arm.passes,
        "requests": arm.requests,
        "tokens": arm.tokens,
        "seconds": _number(arm.seconds),
        "concurrency": arm.concurrency,
        "excluded_launch_rate_95": _number(arm.excluded_launch_rate),
        "excluded_request_rate_95": _number(arm.excluded_request_rate),
        "trials": list(arm.trials),
    }


def _commands(commands: Commands | None) -> _Json:
    found = commands or Commands(failing="")
    return {
        "failing": found.failing or None,
        "passing": found.passing or None,
        "failing_trial": found.failing_trial,
        "passing_trial": found.passing_trial,
        "failing_request": found.failing_request or None,
        "passing_request": found.passing_request or None,
        "differing": [_member(member) for member in found.differing],
    }


def _root(root: RootEvidence | None) -> _Json | None:
    if root is None:
        return None
    return {
        "trial": root.trial,
        "log": root.log,
        "line": root.event.line,
        "text": root.event.text,
        "time": root.event.time,
        "process": root.event.process,
        "rank": root.event.rank,
        "async_stack": root.async_stack,
        "cascade": root.cascade,
        "excerpt": [{"line": line, "text": text} for line, text in root.excerpt],
        "missing_evidence": list(root.missing),
        "gpu": gpu_json(root.gpu),
        "xids": [
            {
                "code": xid.code,
                "pci_bus": xid.pci_bus,
                "teardown": xid.teardown,
                "meaning": xid.means,
                "detail": xid.detail,
            }
            for xid in root.xids
        ],
        "known_issues": [issue_json(issue) for issue in root.known_issues],
    }
