"""Properties of reading: any text, any portions, bounded memory."""

import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.triage import LogReader
from culpa.triage.text import MAX_LINE, clean, segments

CASES = sorted((Path(__file__).parent / "cases").glob("*.log"))
KNOWN = [
    line
    for path in CASES
    for line in path.read_bytes().decode("utf-8", "replace").split("\n")
    if line.strip()
]
DIALECT = st.sampled_from(["vllm", "llamacpp", "generic"])
EXIT = st.sampled_from([None, 0, 1, -6, -9, -11, 134, 137, -200, 300])


@given(
    DIALECT,
    st.lists(st.one_of(st.text(max_size=200), st.sampled_from(KNOWN)), max_size=40),
    EXIT,
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_no_text_makes_the_reader_raise(
    dialect: str, lines: list[str], exit_code: int | None, alive: bool
) -> None:
    reader = LogReader(dialect)
    reader.feed(lines)
    incident = reader.incident(exit_code=exit_code, alive=alive)
    if incident is not None and incident.root is not None:
        assert 1 <= incident.root.line <= len(lines)
        assert incident.root.line not in incident.cascade_lines
        assert incident.root.line not in incident.root_alternates
        assert not set(incident.cascade_lines) & set(incident.root_alternates)


@given(DIALECT, st.binary(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_no_bytes_make_the_reader_raise(dialect: str, data: bytes) -> None:
    for errors in ("replace", "surrogateescape"):
        reader = LogReader(dialect)
        reader.feed(data.decode("utf-8", errors).split("\n"))
        reader.incident(exit_code=1)


@given(st.lists(st.sampled_from(KNOWN), max_size=60), st.lists(st.integers(0, 60), max_size=8))
@settings(max_examples=100, deadline=None)
def test_lines_in_portions_say_the_same_as_all_at_once(lines: list[str], cuts: list[int]) -> None:
    whole, parts = LogReader("vllm"), LogReader("vllm")
    whole.feed(lines)
    edges = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    for start, end in pairwise(edges):
        parts.feed(lines[start:end])
        parts.incident()
    assert parts.incident(exit_code=1) == whole.incident(exit_code=1)
    assert parts.decisive == whole.decisive


@given(st.text(max_size=300))
def test_what_is_left_of_a_line_controls_no_terminal(text: str) -> None:
    left = clean(text)
    assert not [
        character
        for character in left
        if unicodedata.category(character) in ("Cc", "Cs") and character != "\t"
    ]
    assert not set(left) & set("\u202a\u202e\u2066\u2069\u200b\u2028\ufeff")


def test_colours_whole_or_mangled_are_taken_away() -> None:
    for coloured in (
        "\x1b[36m(W pid=1)\x1b[0m x",
        "^[[36m(W pid=1)^[[0m x",
        "[36m(W pid=1)[0m x",
        "#033[2m(W pid=1)#033[0m x",
    ):
        assert clean(coloured) == "(W pid=1) x"


def test_an_error_behind_a_progress_bar_is_found() -> None:
    reader = LogReader("generic")
    reader.feed(["Loading: 10%\rLoading: 50%\rterminate called after throwing an instance of 'c10::Error'\r"])
    assert reader.decisive
    assert segments("a\r\r") == ["a"]


def test_a_line_is_cut_before_it_is_matched() -> None:
    assert len(clean("x" * 1_000_000)) == MAX_LINE


@pytest.mark.slow
def test_memory_does_not_grow_with_repetition() -> None:
    reader = LogReader("vllm")
    head = "(Worker_TP0 pid=7) ERROR 07-15 21:01:01 [x.py:1] "
    for start in range(0, 24_000, 1000):
        reader.feed(f"{head}request {number} failed" for number in range(start, start + 1000))
        reader.feed(
            f"(Worker_TP0 pid={number}) ERROR 07-15 21:01:01 [x.py:1] odd {number}"
            for number in range(start, start + 1000)
        )
    assert len(reader._events) <= 20_000
