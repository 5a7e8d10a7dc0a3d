"""Files are written whole or not at all, and what is no regular file is never replaced."""

import os
from pathlib import Path

import pytest

from culpa.written import why_unwritable, write_whole, written_whole


def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with pytest.raises(TypeError), written_whole(target) as out:
        out.writelines(["new", None])  # type: ignore[list-item]
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "report", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, "new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_what_can_not_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert why_unwritable(tmp_path / "new") == ""
    assert why_unwritable(tmp_path / "file") == ""
    assert why_unwritable(Path("/dev/null")) == ""
    assert "is a folder" in why_unwritable(tmp_path)
    assert "is a folder" in why_unwritable(Path())
    assert "does not exist" in why_unwritable(tmp_path / "nowhere" / "new")
    assert "is no folder" in why_unwritable(tmp_path / "file" / "new")
