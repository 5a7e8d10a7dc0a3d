"""The recorded cases with ground truth, field by field (conventions: cases/README.md)."""

import json
from pathlib import Path
from typing import Any

import pytest

from culpa.model import Incident
from culpa.triage import LogReader

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.log"))
DIALECTS = {"vllm": "vllm", "llama.cpp": "llamacpp"}

#: Fields that are known to be wrong today, with the reason; an entry that starts to hold must be taken out.
NOT_YET: dict[tuple[str, str], str] = {}


def expected(name: str) -> dict[str, Any]:
    return dict(json.loads((CASES / f"{name}.expected.json").read_text("utf-8")))


def read(name: str, dialect: str) -> LogReader:
    reader = LogReader(dialect)
    reader.feed((CASES / f"{name}.log").read_bytes().decode("utf-8", "replace").split("\n"))
    return reader


def judged(name: str, dialect: str) -> Incident:
    incident = read(name, dialect).incident(alive=False)
    assert incident is not None
    return incident


def fields(incident: Incident, truth: dict[str, Any]) -> dict[str, bool]:
    """Which fields are right."""
    accepted = {truth["root_event_line"], *truth["root_alternate_lines"]}
    first = dict(incident.first_failed_rank) if incident.first_failed_rank else None
    harmless = set(truth["red_herring_lines"]) | set(truth["stale_lines"])
    return {
        "root_event_line": incident.root is not None and incident.root.line in accepted,
        "root_alternates": not set(incident.root_alternates) & harmless,
        "first_failed_rank": first == truth["first_failed_rank"],
        "symptom_class": incident.symptom == truth["symptom_class"],
        "async_stack": incident.async_stack == truth["async_stack"],
        "is_consequence_lines": set(truth["is_consequence_lines"]) <= set(incident.cascade_lines),
        "red_herring_lines": not set(incident.cascade_lines) & harmless,
    }


def test_the_recorded_cases_are_there() -> None:
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_a_case_is_right(name: str) -> None:
    truth = expected(name)
    wrong = {
        key
        for key, right in fields(judged(name, DIALECTS.get(truth["engine"], "generic")), truth).items()
        if not right
    }
    assert wrong == {field for case, field in NOT_YET if case == name}


@pytest.mark.parametrize("name", NAMES)
def test_the_generic_reader_finds_the_same(name: str) -> None:
    truth = expected(name)
    wrong = {key for key, right in fields(judged(name, "generic"), truth).items() if not right}
    assert wrong == {field for case, field in NOT_YET if case == name}


@pytest.mark.parametrize("name", NAMES)
def test_a_log_without_its_end_has_the_same_root_or_says_what_is_missing(name: str) -> None:
    truth = expected(name)
    accepted = {truth["root_event_line"], *truth["root_alternate_lines"]}
    lines = (CASES / f"{name}.log").read_bytes().decode("utf-8", "replace").split("\n")
    reader = LogReader(DIALECTS.get(truth["engine"], "generic"))
    for number, line in enumerate(lines, 1):
        reader.feed([line])
        incident = reader.incident(alive=False)
        if incident is not None and incident.root is not None and incident.root.line not in accepted:
            assert incident.missing_evidence, f"after line {number}: {incident.root}"


@pytest.mark.parametrize("name", NAMES)
def test_a_log_without_its_beginning_has_the_same_root_or_says_that_it_is_gone(name: str) -> None:
    truth = expected(name)
    accepted = {truth["root_event_line"], *truth["root_alternate_lines"]}
    lines = (CASES / f"{name}.log").read_bytes().decode("utf-8", "replace").split("\n")
    for start in range(len(lines)):
        reader = LogReader(DIALECTS.get(truth["engine"], "generic"))
        reader.feed(lines[start:])
        incident = reader.incident(alive=False)
        line = incident.root.line + start if incident is not None and incident.root is not None else None
        if start < truth["root_event_line"]:
            assert line in accepted
        elif line is not None and line not in accepted:
            # Another rank that failed alike states the same event; anything else must own up.
            assert incident is not None
            assert incident.symptom == truth["symptom_class"] or incident.missing_evidence
