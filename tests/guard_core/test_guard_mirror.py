"""The mirror by itself: who holds a block, and what is wrong in a plan."""

import pytest

from culpa_guard import Grant, Group, Mirror, Plan

STATE = Group(0, "state", ("s",), 4, mode="align")
FULL = Group(1, "attention", ("f",), 4)
WINDOW = Group(1, "window", ("w",), 4, window=8)


def mirror(*groups: Group) -> Mirror:
    return Mirror(groups or (STATE, FULL), 20)


def new(request: str, *blocks: list[int], computed: int = 0) -> Grant:
    return Grant(request, blocks, computed, replaces=True)


def test_blocks_of_a_live_request_are_held() -> None:
    one = mirror()
    assert one.apply(Plan([new("a", [1], [2])], {"a": 4})) == []
    assert one.holders(1) == [("a", 0)]
    assert one.holders(2) == [("a", 1)]


def test_a_finished_request_holds_nothing_and_its_blocks_are_freed() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    one.apply(Plan([], {}, finished=["a"]))
    assert one.holders(1) == []
    assert one.is_freed(1)
    assert not one.is_freed(3)


def test_blocks_of_a_finished_request_may_be_granted_in_the_same_plan() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    assert one.apply(Plan([new("b", [2], [1])], {"b": 4}, finished=["a"])) == []


def test_blocks_of_a_preempted_request_are_free_until_it_resumes_with_a_new_row() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    assert one.apply(Plan([new("b", [2], [1])], {"b": 4}, preempted=["a"])) == []
    assert one.apply(Plan([new("a", [3], [4])], {"a": 4})) == []
    assert list(one.live["a"].rows[1]) == [4]


def test_a_block_in_two_groups_is_a_violation() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    (found,) = one.apply(Plan([new("b", [2], [3])], {"b": 4}))
    assert (found.kind, found.request, found.group) == ("block_owned_by_two_groups", "b", 0)
    assert (found.block, found.found) == (2, "also request a group 1")


def test_a_new_block_in_two_requests_is_a_violation() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    (found,) = one.apply(Plan([new("b", [3], [2])], {"b": 4}))
    assert (found.kind, found.request, found.block) == ("block_owned_by_two_requests", "b", 2)


def test_what_a_prefix_hit_found_may_be_shared() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1, 5], [2, 6])], {"a": 8}))
    assert one.apply(Plan([new("b", [0, 5, 7], [2, 6, 8], computed=8)], {"b": 2})) == []


def test_a_state_that_is_two_steps_old_may_be_granted_again() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    one.apply(Plan([Grant("a", [[3], [4]], 4)], {"a": 4}))
    assert one.apply(Plan([Grant("a", [[5], [6]], 8), new("b", [1], [7])], {"a": 4, "b": 4})) == []


def test_the_state_that_the_step_reads_may_not_be_granted_again() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    (found,) = one.apply(Plan([Grant("a", [[3], [4]], 4), new("b", [9], [1])], {"a": 4, "b": 4}))
    assert (found.kind, found.request, found.block) == ("block_owned_by_two_groups", "b", 1)


@pytest.mark.parametrize(("computed", "held"), [(8, True), (10, True), (11, False), (12, False)])
def test_a_windowed_group_holds_the_blocks_that_its_window_reaches(computed: int, held: bool) -> None:
    one = mirror(STATE, WINDOW)
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    one.apply(Plan([Grant("a", None, computed)], {"a": 1}))
    assert (one.holders(2) == [("a", 1)]) is held


@pytest.mark.parametrize("block", [-1, 20, 4000])
def test_a_granted_block_outside_the_pool_is_a_violation(block: int) -> None:
    (found,) = mirror().apply(Plan([new("a", [1], [block])], {"a": 4}))
    assert (found.kind, found.group, found.found) == ("block_out_of_range", 1, block)


def test_block_zero_belongs_to_nobody() -> None:
    one = mirror()
    one.apply(Plan([new("a", [0, 1], [2, 3])], {"a": 8}))
    assert one.apply(Plan([new("b", [0, 4], [5, 6])], {"b": 8})) == []
    assert one.holders(0) == []


def test_a_mirror_kept_for_later_stays_in_its_step() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2])], {"a": 4}))
    kept = one.still()
    one.apply(Plan([Grant("a", [[3], [4]], 4)], {"a": 4}))
    assert (kept.live["a"].end, one.live["a"].end) == (4, 8)
    assert list(kept.expected_states("a", STATE)) == [1]
    assert list(one.expected_states("a", STATE)) == [3]


def test_written_blocks_are_those_of_the_step_and_block_zero() -> None:
    one = mirror()
    one.apply(Plan([new("a", [1], [2]), new("b", [7], [8])], {"a": 4, "b": 4}))
    one.apply(Plan([Grant("a", [[3], [4]], 4)], {"a": 1}))
    assert one.written_blocks() == {0, 3, 4}
