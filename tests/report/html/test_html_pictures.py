"""What the pictures are made from: marks, lines, order of events, rates, differing words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.report.blocks import trial
from tests.report.cases import incident, isolated
from tests.report.html.sources import engine_log, kernel_log, large

from culpa.model import Configuration, Factor, Outcome
from culpa.model.told import Told
from culpa.report.excerpts import LogExcerpt, ShownLine
from culpa.report.html.belief import lines
from culpa.report.html.columns import NARROW, WIDE, narrow_grid, wide_grid
from culpa.report.html.conclusion import marked
from culpa.report.html.labels import Labels
from culpa.report.html.logs import marked_rows, read_rows
from culpa.report.html.matrix import legend, mark, rows
from culpa.report.html.rates import rates
from culpa.report.html.timeline import timeline

FACTOR = Factor("pipeline_parallel_size", "4", ("1", "2"), numeric=True)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"pipeline_parallel_size": "4"}, "suspect"),
        ({}, "suspect"),
        ({"pipeline_parallel_size": "1"}, "safe"),
        ({"pipeline_parallel_size": "2"}, "safe"),
        ({"pipeline_parallel_size": "3"}, "between"),
    ],
)
def test_a_mark_tells_the_level(levels: dict[str, str], expected: str) -> None:
    made = trial(1, Outcome.PASS, Configuration.of(levels), arm="one")
    assert mark(FACTOR, made) == expected


def test_rows_begin_with_what_the_failure_needs() -> None:
    names = [row.factor.name for row in rows(isolated())]
    assert names[:2] == ["execution", "pipeline_parallel_size"]
    assert sorted(names) == sorted(factor.name for factor in isolated().factors)


@given(some.integers(1, 3000))
def test_columns_never_leave_the_picture(count: int) -> None:
    for grid, width, right in ((wide_grid(count), WIDE, 90), (narrow_grid(count), NARROW, 0)):
        assert grid.per_band >= 1
        assert grid.left + grid.per_band * grid.step <= width - right
        bands = grid.bands(large(1).experiment.trials * count)
        assert sum(len(band) for band in bands) == count


def _told(number: int, **chances: float) -> Told:
    after = tuple(((name,), chance) for name, chance in chances.items())
    return Told(number, 0.5, 0.8, 0.5, (), after)


def test_belief_begins_with_what_is_likeliest_in_the_end() -> None:
    trials = incident().trials[:4]
    told = {2: _told(2, a=0.6, b=0.3), 3: _told(3, a=0.2, b=0.7), 4: _told(4, b=0.9, c=0.01)}
    found = lines(trials, told)
    assert [line.members for line in found] == [("b",), ("a",), ("c",)]
    assert found[0].chances == (None, 0.3, 0.7, 0.9)
    assert found[1].chances == (None, 0.6, 0.2, None)


def test_a_trial_that_tells_nothing_leaves_the_belief_as_it_was() -> None:
    found = lines(incident().trials[:3], {1: _told(1, a=0.6)})
    assert found[0].chances == (0.6, 0.6, 0.6)


def test_without_an_account_there_is_no_belief() -> None:
    assert lines(incident().trials, {}) == []


def test_events_begin_with_the_root_and_follow_the_clock() -> None:
    found = timeline(marked_rows((engine_log("trials/0001"), kernel_log("trials/0001"))))
    assert found is not None
    assert [event.row.role for event in found.events] == ["root", "same", "cascade", "cascade"]
    assert [event.row.speaker.split(" ")[0] for event in found.events] == [
        "kernel",
        "Worker_PP1",
        "EngineCore",
        "APIServer",
    ]


def test_lanes_stand_by_rank_and_the_kernel_comes_last() -> None:
    log = LogExcerpt(
        "trials/0001/engine.log",
        100,
        4,
        tuple(
            ShownLine(
                number, f"(Worker_TP{rank} pid={rank}) ERROR 12-01 15:19:58 [a.py:1] it broke", "cascade"
            )
            for number, rank in enumerate((10, 2, 0, 1), start=1)
        ),
    )
    found = timeline(marked_rows((log, kernel_log("trials/0001"))))
    assert found is not None
    assert [lane.split(" ")[0] for lane in found.lanes] == [
        "Worker_TP0",
        "Worker_TP1",
        "Worker_TP2",
        "Worker_TP10",
        "kernel",
    ]


def test_a_kernel_that_counts_in_another_zone_does_not_move_the_order() -> None:
    late = ShownLine(1, "2026-12-01T23:19:58+0000 host kernel: NVRM: Xid (PCI:0): 31", "xid", "kernel")
    other = LogExcerpt("trials/0001/kernel.log", 10, 1, (late,))
    found = timeline(marked_rows((engine_log("trials/0001"), other)))
    assert found is not None
    assert found.events[0].row.speaker == "kernel"


def test_a_log_that_tells_of_no_failure_has_no_timeline() -> None:
    plain = LogExcerpt("trials/0001/engine.log", 10, 1, (ShownLine(1, "all is well"),))
    assert timeline(marked_rows((plain,))) is None


def test_many_events_are_counted_where_they_are_not_shown() -> None:
    lines_of_it = tuple(ShownLine(number, f"line {number}", "cascade") for number in range(1, 101))
    found = timeline(marked_rows((LogExcerpt("trials/0001/engine.log", 10, 100, lines_of_it),)))
    assert found is not None
    assert len(found.events) + found.dropped == 100
    assert found.dropped > 0


def test_rows_count_the_lines_that_are_left_out() -> None:
    log = LogExcerpt("engine.log", 10, 90, (ShownLine(3, "a"), ShownLine(4, "b"), ShownLine(80, "c")))
    assert [row.skipped for row in read_rows(log)] == [2, 0, 75]


def test_a_rate_has_the_interval_that_the_rest_of_culpa_gives() -> None:
    _, found = rates(incident())
    baseline = found[0]
    assert (baseline.count.failed, baseline.count.trials) == (2, 3)
    assert 0.2 < baseline.low < 2 / 3 < baseline.high < 0.95
    passed = next(rate for rate in found if rate.row.arm == "eager")
    assert passed.low == 0.0
    assert passed.high == pytest.approx(0.95)


def test_a_trial_that_is_no_evidence_has_no_rate() -> None:
    _, found = rates(incident())
    shifted = next(rate for rate in found if rate.row.arm == "prefix off")
    assert shifted.count.trials == 0
    assert shifted.interval == ""
    assert shifted.picture == ""


def test_words_that_differ_are_marked_on_both_sides() -> None:
    left, right = "vllm serve m -pp 3 --seed 0", "vllm serve m -pp 1 --seed 0"
    assert marked(left, right) == [(False, "vllm serve m -pp"), (True, "3"), (False, "--seed 0")]
    assert marked(right, left) == [(False, "vllm serve m -pp"), (True, "1"), (False, "--seed 0")]


_COMMAND = some.lists(some.sampled_from(["a", "b", "-pp", "3", "'x y'", ""]), max_size=8).map(" ".join)


@given(_COMMAND, _COMMAND)
def test_a_marked_command_is_still_the_command(one: str, other: str) -> None:
    assert " ".join(text for _, text in marked(one, other)) == one


def test_the_reference_counts_for_no_rate() -> None:
    base = incident()
    trials = tuple(replace(one, purpose="reference") if one.arm == "all safe" else one for one in base.trials)
    _, found = rates(replace(base, trials=trials))
    safe = next(rate for rate in found if rate.row.arm == "all safe")
    assert safe.count.trials == 0


def test_the_legend_has_the_signs_that_occur() -> None:
    meanings = [entry["means"] for entry in legend(isolated(), Labels())]
    assert "failed, with the failure that was searched for" in meanings
    assert "could not be tested" in meanings
    assert not any("otherwise" in str(one) for one in meanings)
    assert "a level in between" not in meanings
