"""The incident for people and for programs: golden, in its schema, and safe whatever the logs hold."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.report import golden

import culpa.report
from culpa.logs import read_logs
from culpa.model import Diagnosis, Gpu, Incident, KnownIssue, LogFile, Reading, RootEvent, Verdict, XidSeen
from culpa.report.incident_json import incident_json
from culpa.report.incident_schema import IncidentDocument, incident_json_schema
from culpa.report.incident_terminal import print_incident
from culpa.triage.document import LogDocument

CASES = Path(__file__).parent.parent / "triage" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.log"))
SCHEMA_FILE = Path(culpa.report.__file__).parent / "incident.schema.json"
AGREED = {
    "schema", "engine", "engine_version", "symptom", "root_event", "root_alternates", "first_failed_rank", "gpu",
    "xids", "cascade_lines", "async_stack", "configuration", "known_issues", "missing_evidence", "confidence",
}  # fmt: skip
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def reading(name: str) -> Reading:
    """A case, under the name that a user would see."""
    found = read_logs([CASES / f"{name}.log"])
    return replace(found, files=(LogFile("engine.log", 1),))


def summary(found: Reading, width: int = 100) -> str:
    stream = io.StringIO()
    print_incident(found, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def hostile(text: str) -> Reading:
    """A reading with one text in every place that a log can fill."""
    return Reading(
        files=(LogFile(text, 1), LogFile("b", 3)),
        lines=9,
        incident=Incident(
            symptom=text or "x",
            root=RootEvent(2, text, text, text, text),
            event=text,
            process=text,
            rank=text,
            root_alternates=(1, 4),
            cascade_lines=(5,),
            missing_evidence=(text,),
            diagnosis=Diagnosis(
                engine=text,
                engine_version=text,
                gpu=Gpu("0000:01:00.0", 0, text, text),
                xids=(
                    XidSeen(31, "0000:01:00.0", 1, True, why=text, time=text, cause="either", detail=text),
                ),
                verdict=Verdict("unknown", text),
                configuration=(("model", text), ("tp", 2)),
                known_issues=(KnownIssue(text, text, text, True, text, text, (text,), text),),
                confidence_why=(text,),
            ),
        ),
        next_steps=(text,),
    )


@pytest.mark.parametrize("name", ["04-vllm-tp2-dmesg-uptime-xid13-31", "05-vllm-systemd-misaligned-exit0"])
def test_summary_is_the_golden_one(name: str) -> None:
    golden.check(f"triage.{name[:2]}.txt", summary(reading(name)))


def test_summary_of_a_log_without_a_failure() -> None:
    assert summary(Reading((LogFile("engine.log", 1),), 12, None)) == (
        "No failure is to be seen in 12 lines of engine.log.\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_document_has_the_agreed_keys_and_validates(name: str) -> None:
    document = json.loads(incident_json(reading(name)))
    assert set(document) >= AGREED
    assert document["schema"] == "culpa.incident/1"
    IncidentDocument.model_validate(document)


def test_nothing_found_is_a_document_too() -> None:
    document = json.loads(incident_json(Reading((LogFile("engine.log", 1),), 12, None)))
    assert document["symptom"] is None
    assert document["root_event"] is None
    assert document["lines"] == 12
    IncidentDocument.model_validate(document)


def test_schema_file_is_the_one_generated_from_the_models() -> None:
    text = json.dumps(incident_json_schema(), indent=2) + "\n"
    if os.environ.get("CULPA_UPDATE_GOLDEN") == "1":
        SCHEMA_FILE.write_text(text, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text


def test_lines_of_several_files_are_told_apart() -> None:
    document = json.loads(incident_json(hostile("a.log")))
    assert document["root_event"]["line"] == 2
    assert document["root_alternates"] == [1]
    assert document["elsewhere"] == [
        {"file": "b", "line": 2, "role": "alternate"},
        {"file": "b", "line": 3, "role": "cascade"},
    ]


@given(
    st.one_of(
        st.text(max_size=80),
        st.sampled_from(
            ["\x1b[31mred", "\x1b]0;title\x07", "a\rb\nc", "\u202eright", "[bold]x[/bold]", "\ud800"]
        ),
    )
)
@settings(max_examples=150, deadline=None)
def test_nothing_that_a_terminal_acts_upon_gets_out(text: str) -> None:
    shown = summary(hostile(text))
    assert not UNSAFE.search(shown.replace("\n", ""))
    written = incident_json(hostile(text))
    assert written.isascii()
    assert not UNSAFE.search(written.replace("\n", ""))
    IncidentDocument.model_validate(json.loads(written))


KNOWN = [line for name in NAMES for line in (CASES / f"{name}.log").read_bytes().split(b"\n") if line.strip()]


@given(st.lists(st.one_of(st.sampled_from(KNOWN), st.binary(max_size=120)), max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_bytes_make_triage_raise_or_leave_the_schema(lines: list[bytes]) -> None:
    document = LogDocument()
    document.begin("x")
    document.feed(b"\n".join(lines))
    document.end()
    found = Reading((LogFile("x", 1),), document.reader.lines, document.incident())
    IncidentDocument.model_validate(json.loads(incident_json(found)))
    assert not UNSAFE.search(summary(found).replace("\n", ""))


def test_secrets_are_redacted() -> None:
    found = hostile("--api-key sk-abcdefghijklmnop1234567890")
    assert "sk-abcdefgh" not in summary(found)
    assert "sk-abcdefgh" not in incident_json(found)


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_only_commands_and_addresses_are_wider_than_the_console(width: int) -> None:
    for line in summary(reading("05-vllm-systemd-misaligned-exit0"), width).splitlines():
        assert len(line) <= width or line.startswith(("  - ", "  match ", "  near "))
