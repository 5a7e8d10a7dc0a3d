"""The journal survives a kill at any byte, and says so when it is damaged otherwise."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.record import Record
from culpa.store import BadRunFolder, Journal, create_run, list_runs, open_run


def test_torn_last_line_is_not_an_entry(tmp_path: Path) -> None:
    create_run(tmp_path, {"started": "x"}).append("note", text="whole")
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind":"note","te')
    assert [entry["text"] for entry in open_run(tmp_path)[2]] == ["whole"]


def test_next_entry_cuts_off_a_torn_line(tmp_path: Path) -> None:
    journal = create_run(tmp_path, {"started": "x"})
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind":"torn"' + b" " * 9000)
    journal.append("note", text="after")
    assert [entry["kind"] for entry in open_run(tmp_path)[2]] == ["note"]


@given(cut=st.integers(min_value=0, max_value=400), texts=st.lists(st.text(max_size=20), max_size=6))
def test_any_truncation_gives_a_prefix_of_the_entries(
    tmp_path_factory: pytest.TempPathFactory, cut: int, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    journal = create_run(folder, {"started": "x"})
    for text in texts:
        journal.append("note", text=text)
    whole = list(journal.entries())
    path = folder / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:cut])
    rest = list(Journal(folder).entries())
    assert rest == whole[: len(rest)]


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    create_run(tmp_path, {"started": "x"})
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'garbage\n{"kind":"note"}\n')
    with pytest.raises(BadRunFolder, match="line 2 is not JSON"):
        open_run(tmp_path)


def test_folder_with_a_run_is_not_used_again(tmp_path: Path) -> None:
    create_run(tmp_path, {"started": "x"})
    with pytest.raises(BadRunFolder, match="already holds a run"):
        create_run(tmp_path, {"started": "y"})


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadRunFolder, match="is not a folder"):
        create_run(tmp_path / "file", {})


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    create_run(tmp_path / "b", {"started": "2026-01-02"})
    create_run(tmp_path / "a", {"started": "2026-01-03"})
    (tmp_path / "other").mkdir()
    assert [run.run_id for run in list_runs(tmp_path)] == ["b", "a"]


def test_unfinished_run_is_called_so(tmp_path: Path) -> None:
    create_run(tmp_path / "a", {"started": "x"})
    assert list_runs(tmp_path)[0].outcome == "unfinished"


def test_second_culpa_is_kept_out_of_a_run(tmp_path: Path) -> None:
    first = create_run(tmp_path, {"started": "x"})
    with pytest.raises(BadRunFolder, match="another culpa is at work"):
        Journal(tmp_path).lock()
    assert list(first.entries())


def test_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    create_run(tmp_path / "good", {"started": "x"})
    create_run(tmp_path / "bad", {"started": "x"}).append("trial", trial=7)
    assert [run.run_id for run in list_runs(tmp_path)] == ["good"]


def test_entry_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    journal = create_run(tmp_path, {"started": "x"})
    journal.append("trial", trial={})
    with pytest.raises(BadRunFolder, match="an entry of kind 'trial'"):
        Record(journal, open_run(tmp_path)[2])


@pytest.mark.parametrize("elapsed", ["x", None, [], float("inf")])
def test_an_entry_of_another_shape_is_damage(elapsed: object, tmp_path: Path) -> None:
    entry = {"kind": "trial_started", "id": elapsed, "elapsed": elapsed}
    with pytest.raises(BadRunFolder, match="the journal is damaged"):
        Record(Journal(tmp_path), [entry])


def test_a_full_disk_at_the_beginning_leaves_nothing_in_the_way_of_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            create_run(tmp_path, {"started": "x"})
    create_run(tmp_path, {"started": "y"})
    assert open_run(tmp_path)[1]["started"] == "y"
