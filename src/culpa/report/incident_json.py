"""What `culpa triage --json` prints: redacted, ASCII only, the same bytes for the same logs."""

import json
from collections.abc import Sequence
from typing import Any

from culpa.model import Diagnosis, Gpu, Incident, KnownIssue, Reading, XidSeen
from culpa.report import clean
from culpa.report.incident_schema import SCHEMA, IncidentDocument

_Json = dict[str, Any]


def incident_document(reading: Reading) -> IncidentDocument:
    """The reading in the shape of the schema, every text redacted."""
    return IncidentDocument.model_validate(_cleaned(_document(reading)))


def incident_json(reading: Reading, *, indent: int | None = 2) -> str:
    """The JSON text with a newline at its end; one line if `indent` is None. Only ASCII is written: what a log holds
    in escape or direction-changing characters reaches no terminal."""
    document = incident_document(reading).model_dump(mode="json", by_alias=True)
    return json.dumps(document, indent=indent, ensure_ascii=True, allow_nan=False) + "\n"


def _document(reading: Reading) -> _Json:
    incident = reading.incident
    diagnosis = (incident.diagnosis if incident else None) or Diagnosis()
    files = [{"name": file.name} for file in reading.files]
    if incident is None:
        return {
            **_nothing(),
            "xids": _xids(reading, reading.xids),
            "next_steps": list(reading.next_steps),
            "files": files,
            "lines": reading.lines,
        }
    root_file = reading.locate(incident.root.line)[0] if incident.root else ""
    return {
        "schema": SCHEMA,
        "engine": diagnosis.engine,
        "engine_version": diagnosis.engine_version,
        "symptom": incident.symptom,
        "root_event": _root(reading, incident),
        "root_alternates": _lines(reading, incident.root_alternates, root_file),
        "first_failed_rank": dict(incident.first_failed_rank) if incident.first_failed_rank else None,
        "gpu": gpu_json(diagnosis.gpu),
        "xids": _xids(reading, diagnosis.xids),
        "cascade_lines": _lines(reading, incident.cascade_lines, root_file),
        "async_stack": incident.async_stack,
        "configuration": dict(diagnosis.configuration),
        "known_issues": [issue_json(issue) for issue in diagnosis.known_issues],
        "missing_evidence": list(incident.missing_evidence),
        "confidence": diagnosis.confidence,
        "confidence_why": list(diagnosis.confidence_why),
        "verdict": {"blame": diagnosis.verdict.blame, "why": diagnosis.verdict.why},
        "load": dict(diagnosis.load),
        "next_steps": list(reading.next_steps),
        "process_kind": incident.process,
        "elsewhere": _elsewhere(reading, incident, root_file),
        "files": files,
        "lines": reading.lines,
    }


def _nothing() -> _Json:
    return {
        "schema": SCHEMA,
        **dict.fromkeys(
            ("engine", "engine_version", "symptom", "root_event", "first_failed_rank", "gpu", "confidence",
             "verdict", "process_kind")
        ),
        **{
            name: []
            for name in (
                "root_alternates", "xids", "cascade_lines", "known_issues", "missing_evidence", "confidence_why",
                "next_steps", "elsewhere",
            )
        },
        "async_stack": False,
        "configuration": {},
        "load": {},
    }  # fmt: skip


def _root(reading: Reading, incident: Incident) -> _Json | None:
    root = incident.root
    if root is None:
        return None
    file, line = reading.locate(root.line)
    return {"file": file, "line": line, "time": root.time, "process": root.process, "text": root.text}


def gpu_json(gpu: Gpu | None) -> _Json | None:
    """A GPU in the shape of the schema."""
    return {"pci_bus": gpu.pci_bus, "index": gpu.index, "uuid": gpu.uuid, "why": gpu.why} if gpu else None


def issue_json(issue: KnownIssue) -> _Json:
    """A known issue in the shape of the schema."""
    return {
        "url": issue.url,
        "match": issue.match,
        "why": issue.why,
        "id": issue.id,
        "title": issue.title,
        "status": issue.status,
        "differs": list(issue.differs),
        "shown": issue.shown,
    }


def _xids(reading: Reading, xids: Sequence[XidSeen]) -> list[_Json]:
    found = []
    for xid in xids:
        file, line = reading.locate(xid.line)
        found.append(
            {
                "code": xid.code,
                "pci_bus": xid.pci_bus,
                "line": line,
                "stale": xid.stale,
                "file": file,
                "time": xid.time,
                "pid": xid.pid,
                "teardown": xid.teardown,
                "why": xid.why,
                "meaning": xid.means,
                "cause": xid.cause,
                "advice": xid.advice,
                "detail": xid.detail,
            }
        )
    return found


def _lines(reading: Reading, lines: tuple[int, ...], file: str) -> list[int]:
    located = [reading.locate(line) for line in lines]
    return [line for name, line in located if name == file or not file]


def _elsewhere(reading: Reading, incident: Incident, file: str) -> list[_Json]:
    found = []
    for role, lines in (("alternate", incident.root_alternates), ("cascade", incident.cascade_lines)):
        for name, line in map(reading.locate, lines):
            if file and name != file:
                found.append({"file": name, "line": line, "role": role})
    return found


def _cleaned(value: Any) -> Any:
    """Every text of the document fit to be shown; names of settings and of the schema are ours."""
    if isinstance(value, str):
        return clean.line(value)
    if isinstance(value, dict):
        return {
            key: clean.value(key, one) if isinstance(one, str) else _cleaned(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    return value
