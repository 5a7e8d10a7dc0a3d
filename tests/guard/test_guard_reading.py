"""The guard's files: read as they grow, whatever is in them."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from culpa.guard import GuardReader, read_folder
from culpa.guard.reading import MOST_BYTES_A_LINE, MOST_VIOLATIONS

START = {
    "event": "start", "version": "0.1.0", "engine": "vllm", "engine_version": "0.32.0", "mode": "log",
    "role": "worker", "stage": 1, "rank": 1, "checks": ["tables", "states"],
    "left_out": [{"check": "red_zone", "reason": "no allocator hook"}], "time": 1.0,
}  # fmt: skip


def violation(**fields: Any) -> dict[str, Any]:
    return {"event": "violation", "kind": "block_not_owned", "step": 3, "time": 2.0, **fields}


def write(folder: Path, *events: dict[str, Any], pid: int = 1, end: str = "\n") -> Path:
    path = folder / f"guard-{pid}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(json.dumps(event) for event in events) + end)
    return path


def test_a_process_is_known_by_its_start_and_its_last_summary(tmp_path: Path) -> None:
    first = {"event": "summary", "steps": 5, "requests": 1, "checked": {"tables": 5}, "violations": 0}
    write(tmp_path, START, first, {**first, "steps": 9, "requests": 2, "own_seconds": 0.5})
    (process,) = read_folder(tmp_path).processes
    assert (process.role, process.stage, process.rank, process.engine_version) == (
        "worker",
        "PP1",
        1,
        "0.32.0",
    )
    assert (process.steps, process.requests, process.own_seconds) == (9, 2, 0.5)
    assert process.checks == ("tables", "states")


def test_a_process_that_was_killed_before_its_summary_counts_nothing(tmp_path: Path) -> None:
    write(tmp_path, START)
    (process,) = read_folder(tmp_path).processes
    assert process.steps is None
    assert not process.ended


def test_the_earliest_step_is_first_whichever_process_wrote_it_later(tmp_path: Path) -> None:
    write(tmp_path, START, violation(step=7, time=1.0), pid=1)
    write(tmp_path, {**START, "stage": 2, "rank": 2}, violation(step=4, time=9.0), pid=2)
    record = read_folder(tmp_path)
    assert record.first is not None
    assert (record.first.step, record.first.stage) == (4, "PP2")


def test_within_a_step_the_earlier_moment_is_first(tmp_path: Path) -> None:
    write(tmp_path, START, violation(time=5.0, kind="state_not_finite"), pid=1)
    write(tmp_path, {**START, "stage": 0}, violation(time=4.0), pid=2)
    record = read_folder(tmp_path)
    assert record.first is not None
    assert record.first.kind == "block_not_owned"


def test_what_was_seen_before_any_step_comes_before_all_steps(tmp_path: Path) -> None:
    write(tmp_path, START, violation(step=1, time=1.0), violation(step=None, kind="bind_mismatch", time=8.0))
    record = read_folder(tmp_path)
    assert record.first is not None
    assert record.first.kind == "bind_mismatch"


def test_what_grows_is_read_once(tmp_path: Path) -> None:
    reader = GuardReader(tmp_path)
    write(tmp_path, START, violation())
    assert len(reader.update()) == 1
    assert reader.update() == []
    write(tmp_path, violation(step=4))
    assert [one.step for one in reader.update()] == [4]
    assert reader.record().total == 2


def test_a_line_that_is_cut_in_two_is_read_when_it_is_whole(tmp_path: Path) -> None:
    reader = GuardReader(tmp_path)
    path = write(tmp_path, START, end="\n")
    text = json.dumps(violation()) + "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(text[:30])
        file.flush()
        assert reader.update() == []
        assert any("in the middle of a line" in one for one in reader.record().problems)
        file.write(text[30:])
    assert len(reader.update()) == 1
    assert reader.record().problems == ()


def test_lines_that_are_none_are_told_and_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, START)
    with path.open("ab") as file:
        file.write(b"\xff\xfe\nnot json\n[1]\n" + b'{"event": "dance"}\n' + b"[" * 100_000 + b"\n")
    write(tmp_path, violation())
    record = read_folder(tmp_path)
    assert record.total == 1
    assert record.problems == ("guard-1.jsonl: a line that is none of the guard's was left out (5 times)",)


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path, START)
    with path.open("ab") as file:
        file.write(b"x" * (3 * MOST_BYTES_A_LINE) + b"\n")
    write(tmp_path, violation())
    record = read_folder(tmp_path)
    assert record.total == 1
    assert any("was left out" in one for one in record.problems)


def test_counts_are_of_all_violations_though_only_the_first_of_a_kind_are_written(tmp_path: Path) -> None:
    summary = {"event": "summary", "steps": 9, "violations": 700, "by_kind": {"block_not_owned": 700}}
    write(tmp_path, START, violation(), summary)
    record = read_folder(tmp_path)
    assert record.total == 700
    assert record.kinds == (("block_not_owned", 700),)
    assert record.processes[0].violations == 700


def test_the_earliest_of_many_are_kept(tmp_path: Path) -> None:
    write(tmp_path, START, *(violation(step=step) for step in range(3 * MOST_VIOLATIONS, 0, -1)))
    record = read_folder(tmp_path)
    assert len(record.violations) == MOST_VIOLATIONS
    assert record.first is not None
    assert record.first.step == 1
    assert record.total == 3 * MOST_VIOLATIONS


def test_a_check_that_is_switched_off_on_the_way_is_left_out(tmp_path: Path) -> None:
    gone = {"event": "left_out", "check": "states", "reason": "no such attribute"}
    write(tmp_path, START, gone)
    record = read_folder(tmp_path)
    assert record.checks == ("tables",)
    assert [one.check for one in record.left_out] == ["red_zone", "states"]


def test_a_check_that_another_process_makes_is_not_left_out(tmp_path: Path) -> None:
    write(tmp_path, START, pid=1)
    write(tmp_path, {**START, "stage": 0, "checks": ["red_zone"], "left_out": []}, pid=2)
    assert read_folder(tmp_path).left_out == ()


def test_an_error_of_the_guard_is_told(tmp_path: Path) -> None:
    write(tmp_path, START, {"event": "guard_error", "check": "tables", "error": "KeyError('x')"})
    assert read_folder(tmp_path).problems == ("the guard itself failed: KeyError('x')",)


def test_values_of_any_kind_become_text_without_escapes(tmp_path: Path) -> None:
    odd = violation(
        expected=[1, {"a": 2}], found="\x1b[31mred", layer=12, request="r" * 5000, time=float("nan")
    )
    write(tmp_path, START, odd)
    (found,) = read_folder(tmp_path).violations
    assert found.expected == '[1, {"a": 2}]'
    assert found.found == "red"
    assert found.layer == "12"
    assert found.request is not None
    assert len(found.request) <= 500
    assert found.time is None


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    record = read_folder(tmp_path / "nowhere")
    assert record.processes == ()
    assert record.first is None


@given(st.lists(st.binary(max_size=200), max_size=12), st.lists(st.integers(1, 150), max_size=6))
def test_any_bytes_in_any_pieces_are_read_without_an_error(parts: list[bytes], cuts: list[int]) -> None:
    from tempfile import TemporaryDirectory

    whole = b"\n".join([json.dumps(START).encode(), *parts, json.dumps(violation()).encode()]) + b"\n"
    with TemporaryDirectory() as name:
        reader = GuardReader(Path(name))
        at = 0
        with (Path(name) / "guard-7.jsonl").open("ab") as file:
            for cut in (*cuts, len(whole)):
                file.write(whole[at : at + cut])
                file.flush()
                at += cut
                reader.update()
        # A line of parts may itself be an event, but what was written whole is found.
        assert reader.record().total >= 1
        assert reader.record().processes
