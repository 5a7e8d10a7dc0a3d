"""LogTail: every line exactly once, whatever the bytes and however they arrive."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.host import LogTail
from culpa.host.log_tail import MAX_LINE_BYTES


@pytest.mark.parametrize(
    ("writes", "reads", "rest"),
    [
        ([b"one\ntwo\n"], [["one", "two"]], []),
        ([b"one\ntw", b"o\n"], [["one"], ["two"]], []),
        ([b"one\n\n\ntwo\n"], [["one", "", "", "two"]], []),
        ([b"unfinished"], [[]], ["unfinished"]),
        ([b"dos\r\nline\r\n"], [["dos", "line"]], []),
        ([b"dos\r", b"\nline\n"], [["dos"], ["line"]], []),
        ([b" 1%\r 50%\r100%\nready\n"], [[" 1%", " 50%", "100%", "ready"]], []),
        ([b"\r 1%", b"\r 2%"], [[""], [" 1%"]], [" 2%"]),
        ([b"caf\xc3", b"\xa9\n"], [[], ["café"]], []),
        ([b"bad \xff\xfe bytes\n"], [["bad \ufffd\ufffd bytes"]], []),
        ([b"nul\0 \x1b[31mred\n"], [["nul\0 \x1b[31mred"]], []),
        ([b"", b""], [[], []], []),
    ],
)
def test_lines_come_once_and_complete(
    tmp_path: Path, writes: list[bytes], reads: list[list[str]], rest: list[str]
) -> None:
    path = tmp_path / "log"
    tail = LogTail(path)
    with path.open("wb", buffering=0) as file:
        for write, expected in zip(writes, reads, strict=True):
            file.write(write)
            assert tail.read() == expected
    assert tail.final() == rest
    assert tail.final() == []
    assert tail.bytes_read == sum(map(len, writes))


@given(st.lists(st.text(alphabet="ab\r\n切é").map(str.encode)), st.integers(1, 5))
def test_how_the_bytes_are_cut_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], size: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    whole = b"".join(pieces)
    tail, lines = LogTail(path), []
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(whole), size):
            file.write(whole[start : start + size])
            lines += tail.read()
    lines += tail.final()
    expected = re.split("\r\n|\r|\n", whole.decode())
    assert lines == (expected if expected[-1] else expected[:-1])


def test_a_log_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    assert tail.read() == []
    assert tail.final() == []
    (tmp_path / "log").write_text("now\n")
    assert tail.read() == ["now"]


@pytest.mark.parametrize("end", [b"\n", b""], ids=["complete", "unterminated"])
def test_of_a_giant_line_the_rest_is_dropped_and_that_is_said(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "log"
    tail = LogTail(path)
    lines = []
    with path.open("wb", buffering=0) as file:
        for _ in range(5):
            file.write(b"x" * MAX_LINE_BYTES)
            lines += tail.read()
        file.write(end)
    lines += tail.final()
    assert lines == [f"{'x' * MAX_LINE_BYTES} [... {4 * MAX_LINE_BYTES} more bytes in this line]"]


def test_a_line_of_the_largest_size_is_whole(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * MAX_LINE_BYTES + b"\nnext\n")
    assert LogTail(tmp_path / "log").read() == ["x" * MAX_LINE_BYTES, "next"]


def test_a_log_that_was_emptied_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old line\nold rest")
    tail = LogTail(path)
    assert tail.read() == ["old line"]
    path.write_text("new\n")
    assert tail.read() == ["new"]
