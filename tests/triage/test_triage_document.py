"""Whole logs as bytes: any pieces, several files, and a quick look that misses nothing."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.model import Incident
from culpa.triage import LogDocument
from culpa.triage import document as module
from culpa.triage.scan import MAX_RAW_LINE
from culpa.triage.tables import load_tables, searcher

CASES = sorted((Path(__file__).parent / "cases").glob("*.log"))
FILLER = b"".join(
    b"(Worker_TP%d pid=%d) DEBUG 07-15 20:%02d:%02d [gpu_model_runner.py:2602] step %d takes %d tokens of the batch\n"
    % (number % 4, 300 + number % 4, number // 60 % 60, number % 60, number, number * 7 % 512)
    for number in range(1500)
)


def read(data: bytes, *, whole: bool = False, piece: int = 1 << 16) -> LogDocument:
    document = LogDocument(whole=whole)
    for start in range(0, len(data), piece):
        document.feed(data[start : start + piece])
    document.end()
    return document


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read only a little at both ends, so that the quick look has to find the rest."""
    monkeypatch.setattr(module, "HEAD", 2000)
    monkeypatch.setattr(module, "TAIL", 500)
    monkeypatch.setattr(module, "SAMPLE", 1000)


def judged(document: LogDocument) -> Incident:
    incident = document.incident()
    assert incident is not None
    return incident


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_quick_look_finds_the_incident_in_a_haystack(path: Path) -> None:
    data = FILLER + path.read_bytes().rstrip(b"\n") + b"\n" + FILLER
    slow, fast = judged(read(data, whole=True)), judged(read(data, piece=70_000))
    assert fast.root is not None
    assert fast.root == slow.root
    assert fast.symptom == slow.symptom
    assert fast.first_failed_rank == slow.first_failed_rank
    assert set(fast.cascade_lines) == set(slow.cascade_lines)
    assert fast.root_alternates == slow.root_alternates


@pytest.mark.usefixtures("quick")
def test_every_line_is_counted() -> None:
    document = read(FILLER * 3)
    assert document.reader.lines == 4500


@pytest.mark.usefixtures("quick")
@given(st.lists(st.integers(0, 9000), max_size=6), st.sampled_from(CASES))
@settings(max_examples=25, deadline=None)
def test_pieces_of_any_size_say_the_same(cuts: list[int], path: Path) -> None:
    data = path.read_bytes()
    whole = judged(read(data))
    document = LogDocument()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in pairwise(edges):
        document.feed(data[start:end])
    document.end()
    assert judged(document) == whole


@given(st.lists(st.binary(max_size=300), max_size=10), st.booleans())
@settings(max_examples=100, deadline=None)
def test_no_bytes_make_it_raise(pieces: list[bytes], whole: bool) -> None:
    document = LogDocument(whole=whole)
    for piece in pieces:
        document.feed(piece)
        document.settle()
    document.end()
    document.incident()


def test_lines_of_several_files_are_told_with_their_file() -> None:
    document = LogDocument()
    for name, data in (("engine.log", b"a\nb\n"), ("kernel.log", b"c\nd\ne")):
        document.begin(name)
        document.feed(data)
        document.end()
    assert [document.locate(line) for line in range(1, 6)] == [
        ("engine.log", 1),
        ("engine.log", 2),
        ("kernel.log", 1),
        ("kernel.log", 2),
        ("kernel.log", 3),
    ]


def test_a_line_without_end_takes_no_memory() -> None:
    document = LogDocument()
    for _ in range(64):
        document.feed(b"x" * (1 << 20))
    assert len(document._rest) <= MAX_RAW_LINE
    document.feed(b"\nterminate called after throwing an instance of 'c10::Error'\n")
    document.end()
    root = judged(document).root
    assert root is not None
    assert root.line == 2


def test_the_quick_look_finds_every_sample() -> None:
    tables = load_tables("generic")
    pattern = searcher(tables.scan)
    missed = [
        sample
        for rule in tables.signatures
        if rule.role not in ("noise", "recovery")
        for sample in rule.samples
        if not pattern.search(sample.encode())
    ]
    assert missed == []


def test_no_expression_of_the_quick_look_runs_beyond_its_line() -> None:
    # One that did would be tried to the end of the block for every hit: time would grow with the square.
    for expression in load_tables("generic").scan:
        assert "[^" not in expression.replace("[^\\n", ""), expression
