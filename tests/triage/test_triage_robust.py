"""Whatever surrounds a recorded failure, however its lines were interleaved, wrapped or cut: the same root event is
found, or the incident says that it is gone."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.triage.test_triage_shapes import WRAPPERS, wrapped

from culpa.model import Incident
from culpa.triage import LogDocument, LogReader


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n")


def truth_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((path.parent / f"{path.stem}.expected.json").read_text("utf-8")))


HERE = Path(__file__).parent
PATHS = sorted((HERE / "cases").glob("*.log")) + sorted((HERE / "kinds").glob("*.log"))
PATH = st.sampled_from(PATHS)
#: A log with an older failure in it, cut before its engine starts, is a log of that failure.
PART = st.sampled_from([path for path in PATHS if not truth_of(path)["stale_lines"]])
#: Wrappers that bring no clock of their own and so leave every order as it is.
TIMELESS = (
    "compose",
    "compose with a container's name",
    "kubectl --prefix",
    "colours",
    "CRLF",
    "trailing blanks",
)
BYSTANDERS = [
    "",
    'INFO:     10.0.0.5:52114 - "GET /health HTTP/1.1" 200 OK',
    "Loading safetensors checkpoint shards:  93% Completed | 14/15 [00:14<00:01,  1.02s/it]",
    "Capturing CUDA graphs (decode, FULL): 100%|##########| 11/11 [00:03<00:00]",
    "2026-04-16 01:01:02,995\tINFO worker.py:1660 -- Connecting to existing Ray cluster",
    "/usr/lib/python3/dist-packages/x.py:12: UserWarning: this function is deprecated",
    "some text that means nothing",
    "| NVIDIA-SMI 595.71.05    Driver Version: 595.71.05    CUDA Version: 13.0 |",
]


def judge(lines: list[str]) -> Incident | None:
    reader = LogReader("generic")
    reader.feed(lines)
    return reader.incident(alive=False)


def accepted(truth: dict[str, Any]) -> set[int]:
    return {truth["root_event_line"], *truth["root_alternate_lines"]}


def says_so(incident: Incident | None, truth: dict[str, Any]) -> bool:
    """Whether the incident owns up that the root may be gone, or names the same failure by another of its faces."""
    return incident is None or bool(incident.missing_evidence) or incident.symptom == truth["symptom_class"]


@given(
    PATH,
    st.lists(st.sampled_from(BYSTANDERS), max_size=30),
    st.lists(st.sampled_from(BYSTANDERS), max_size=30),
)
@settings(max_examples=120, deadline=None)
def test_what_stands_before_and_after_changes_nothing(
    path: Path, before: list[str], after: list[str]
) -> None:
    truth, lines = truth_of(path), lines_of(path)
    alone, incident = judge(lines), judge(before + lines + after)
    assert alone is not None
    assert incident is not None
    assert incident.root is not None
    assert incident.root.line - len(before) in accepted(truth)
    assert incident.symptom == alone.symptom
    assert incident.first_failed_rank == alone.first_failed_rank


@given(PART, st.data())
@settings(max_examples=150, deadline=None)
def test_a_part_of_a_log_has_the_same_root_or_says_that_it_is_gone(path: Path, data: st.DataObject) -> None:
    truth, lines = truth_of(path), lines_of(path)
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start, len(lines)))
    incident = judge(lines[start:end])
    if incident is not None and incident.root is not None and incident.root.line + start in accepted(truth):
        return
    assert says_so(incident, truth), incident


@given(PART, st.data())
@settings(max_examples=80, deadline=None)
def test_a_last_line_that_breaks_off_changes_nothing_else(path: Path, data: st.DataObject) -> None:
    truth, lines = truth_of(path), lines_of(path)
    whole = "\n".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    part = whole[:cut].split("\n")
    incident = judge(part)
    # Of a torn line nobody knows what it was going to say.
    told = {*accepted(truth), len(part)}
    if incident is not None and incident.root is not None and incident.root.line in told:
        return
    assert says_so(incident, truth), incident


def speakers(lines: list[str]) -> list[list[int]]:
    """Runs of line numbers that must stay in order: those of one process, bare lines with the line before them."""
    streams: dict[str, list[int]] = defaultdict(list)
    last = ""
    for number, line in enumerate(lines):
        match = re.match(
            r"^(\((?:Worker|VllmWorker|EngineCore|APIServer)[^)]*\))",
            line,
        )
        last = match[1] if match else last
        streams[last].append(number)
    return list(streams.values())


INTERLEAVED = [
    path
    for path in PATHS
    if path.stem[:2] in ("01", "16", "65", "68")  # every line belongs to a process, or to the one before it
]


@given(st.sampled_from(INTERLEAVED), st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_any_interleaving_has_the_same_root_and_rank(path: Path, seed: int) -> None:
    truth, lines = truth_of(path), lines_of(path)
    chance = random.Random(seed)
    waiting = [list(stream) for stream in speakers(lines)]
    order: list[int] = []
    while any(waiting):
        stream = chance.choice([stream for stream in waiting if stream])
        count = chance.randint(1, 3)
        order += stream[:count]
        del stream[:count]
    incident = judge([lines[number] for number in order])
    assert incident is not None
    assert incident.root is not None
    assert order[incident.root.line - 1] + 1 in accepted(truth)
    assert incident.symptom == truth["symptom_class"]
    rank = dict(incident.first_failed_rank) if incident.first_failed_rank else None
    assert rank in (truth["first_failed_rank"], None)


@pytest.mark.parametrize("wrapper", TIMELESS)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_wrapper_around_a_whole_log_changes_nothing(path: Path, wrapper: str) -> None:
    truth, lines = truth_of(path), lines_of(path)
    wrap: Callable[[str], str] = WRAPPERS[wrapper]
    incident = judge([wrap(line.rstrip("\r")) for line in lines])
    assert incident is not None
    assert incident.root is not None
    assert incident.root.line in accepted(truth)
    assert incident.symptom == truth["symptom_class"]
    assert (dict(incident.first_failed_rank) if incident.first_failed_rank else None) == truth[
        "first_failed_rank"
    ]


def stamped(kind: str, line: str, number: int) -> str:
    """A line as a collector with a clock of its own writes it, a second after the one before."""
    day, time = "2026-08-28", f"08:{number // 60:02d}:{number % 60:02d}.{number:09d}"
    record = {"log": line + "\n", "stream": "stderr", "time": f"{day}T{time}Z"}
    return {
        "timestamps": f"{day}T{time}Z {line}",
        "CRI": f"{day}T{time}Z stdout F {line}",
        "json-file": json.dumps(record),
        "json-file in CRI": f"{day}T{time}Z stdout F {json.dumps(record)}",
        "GCP, JSON": json.dumps({"textPayload": line, "timestamp": f"{day}T{time}Z", "severity": "ERROR"}),
        "GCP": f"ERROR {day}T{time}Z {line}",
        "CloudWatch": f"{day}T{time[:12]}Z   {line}",
        "job platform": f"  |   | {day} {time} master-0 >> {line} |  ",
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["timestamps", "CRI", "json-file", "json-file in CRI", "GCP, JSON", "GCP", "CloudWatch", "job platform"],
)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_collector_with_a_clock_of_its_own_changes_no_root(path: Path, kind: str) -> None:
    truth, lines = truth_of(path), lines_of(path)
    incident = judge([stamped(kind, line.rstrip("\r"), number) for number, line in enumerate(lines)])
    assert incident is not None
    assert incident.root is not None
    assert incident.root.line in accepted(truth)
    assert incident.symptom == truth["symptom_class"]


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_paste_with_hard_wraps_has_the_same_root(path: Path, width: int) -> None:
    truth, lines = truth_of(path), [line.rstrip("\r") for line in lines_of(path)]
    document = LogDocument()
    document.feed(wrapped("\n".join(lines), width).encode())
    document.end()
    incident = document.incident()
    assert incident is not None
    assert incident.root is not None
    pieces = [number for number, line in enumerate(lines, 1) for _ in wrapped(line, width).split("\n")]
    assert pieces[incident.root.line - 1] in accepted(truth)
    assert incident.symptom == truth["symptom_class"]
