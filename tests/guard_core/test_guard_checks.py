"""Each check by itself, on what a hybrid engine could be given."""

import pytest

from culpa_guard import Grant, Group, GroupView, Mirror, Plan, StepView
from culpa_guard.checks import (
    Bound,
    PageWatch,
    Parcel,
    Region,
    StoredStates,
    check_bindings,
    check_handover,
    check_pointers,
    check_sharing,
    check_slots,
    check_states,
    check_tables,
)

STATE = Group(0, "state", ("gdn",), 4, mode="none")
FULL = Group(1, "attention", ("full",), 4)


def stage() -> Mirror:
    """Request a at token 4 of 6 and request b at its beginning."""
    mirror = Mirror((STATE, FULL), 20)
    mirror.apply(Plan([Grant("a", [[1], [2]], 0, True)], {"a": 4}))
    mirror.apply(Plan([Grant("a", [[], [3]], 4), Grant("b", [[5], [6]], 0, True)], {"a": 2, "b": 3}))
    return mirror


def given(**fields: object) -> StepView:
    states = GroupView(0, ("gdn",), "gdn", states=[1, 5], has_initial=[True, False], identity=1)
    table = GroupView(
        1, ("full",), "attention", table=[[2, 3], [6, 0]], slots=[12, 13, 24, 25, 26], identity=2
    )
    values = {"states": states, "table": table, **fields}
    return StepView(("a", "b"), (2, 3), (values["states"], values["table"]))  # type: ignore[arg-type]


def test_what_is_right_is_not_reported() -> None:
    mirror, view = stage(), given()
    for check in (check_sharing, check_slots, check_states, check_tables):
        assert list(check(mirror, view)) == []


def test_padding_behind_the_requests_is_not_looked_at() -> None:
    states = GroupView(0, ("gdn",), "gdn", states=[1, 5, 0, -1], has_initial=[True, False, True], identity=1)
    assert list(check_states(stage(), given(states=states))) == []


def test_a_row_that_is_a_memoryview_is_compared_as_well() -> None:
    from array import array

    rows = [memoryview(array("i", [2, 3])), memoryview(array("i", [7, 0]))]
    (found,) = check_tables(stage(), given(table=GroupView(1, ("full",), "attention", table=rows)))
    assert (found.kind, found.request, found.expected, found.found) == ("block_not_owned", "b", 6, 7)


def test_a_foreign_block_is_reported_with_its_owner() -> None:
    view = given(table=GroupView(1, ("full",), "attention", table=[[2, 5], [6, 0]]))
    (found,) = check_tables(stage(), view)
    assert (found.kind, found.layer, found.group, found.request) == ("block_not_owned", "full", 1, "a")
    assert (found.index, found.expected, found.found) == (1, 3, 5)
    assert found.detail is not None
    assert "request b group 0" in found.detail


@pytest.mark.parametrize(
    ("slots", "asker", "index"),
    [
        ([9, 13, 24, 25, 26], "a", 0),
        ([12, 13, 24, 25, 30], "b", 2),
    ],
)
def test_a_wrong_slot_names_the_token(slots: list[int], asker: str, index: int) -> None:
    (found,) = check_slots(stage(), given(table=GroupView(1, ("full",), "attention", slots=slots)))
    assert (found.kind, found.request, found.index) == ("slot_mapping_mismatch", asker, index)


def test_the_first_token_of_each_block_is_looked_at() -> None:
    mirror = Mirror((STATE, FULL), 20)
    mirror.apply(Plan([Grant("a", [[1], [2, 3, 4]], 0, True)], {"a": 12}))
    slots = [*range(8, 16), 99, *range(17, 20)]
    view = StepView(("a",), (12,), (GroupView(1, ("full",), "attention", slots=slots),))
    (found,) = check_slots(mirror, view)
    assert (found.index, found.expected, found.found) == (8, 16, 99)


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        ([1, 0], ["state_index_out_of_range"]),
        ([1, 20], ["state_index_out_of_range"]),
        ([1, 6], ["state_index_not_scheduled"]),
        ([5, 5], ["state_index_not_scheduled", "state_index_not_unique"]),
    ],
)
def test_a_wrong_state_index_is_of_its_kind(states: list[int], kinds: list[str]) -> None:
    view = given(states=GroupView(0, ("gdn",), "gdn", states=states))
    assert [found.kind for found in check_states(stage(), view)] == kinds


def test_a_state_that_was_freed_is_told_from_one_that_was_never_scheduled() -> None:
    mirror = stage()
    mirror.apply(Plan([Grant("b", None, 3)], {"b": 1}, finished=["a"]))
    view = StepView(("b",), (1,), (GroupView(0, ("gdn",), "gdn", states=[1]),))
    (found,) = check_states(mirror, view)
    assert (found.kind, found.request, found.expected, found.found) == ("freed_state_read", "b", 5, 1)


@pytest.mark.parametrize(("initial", "asker"), [([False, False], "a"), ([True, True], "b")])
def test_a_state_is_read_exactly_when_it_was_stored(initial: list[bool], asker: str) -> None:
    view = given(states=GroupView(0, ("gdn",), "gdn", has_initial=initial))
    (found,) = check_states(stage(), view)
    assert (found.kind, found.request) == ("initial_state_mismatch", asker)


def test_one_metadata_object_in_two_groups_is_reported() -> None:
    view = given(table=GroupView(1, ("full",), "attention", identity=1))
    (found,) = check_sharing(stage(), view)
    assert (found.kind, found.layer, found.group) == ("metadata_shared_across_groups", "full", 1)


def test_one_index_buffer_in_two_groups_is_reported() -> None:
    first = GroupView(0, ("gdn",), "gdn", identity=1, buffers=(("states", 4096),))
    second = GroupView(1, ("full",), "attention", identity=2, buffers=(("table", 4096), ("slots", 8192)))
    (found,) = check_sharing(stage(), given(states=first, table=second))
    assert found.detail is not None
    assert "table (there states)" in found.detail


def region(layer: str, offset: int, group: int = 0) -> Region:
    return Region(layer, "gdn", group, "kv", offset, stride=64, page=64, blocks=10, size=1280)


def bound(layer: str, address: int, **fields: object) -> Bound:
    values: dict[str, object] = {"stride": 64, "begins": 0, "length": 640, "storage": 1 << 20, **fields}
    return Bound(layer, 0, address=(1 << 20) + address, **values)  # type: ignore[arg-type]


REGIONS = {"a": region("a", 0), "b": region("b", 640), "c": region("c", 0, group=1)}


def test_layers_that_lie_where_the_configuration_puts_them_are_fine() -> None:
    tensors = [bound("a", 0), bound("a", 16, begins=16, length=600), bound("b", 640), bound("c", 0)]
    assert list(check_bindings(REGIONS, tensors)) == []


def test_two_layers_in_each_others_place_are_both_named() -> None:
    found = list(check_bindings(REGIONS, [bound("a", 640), bound("b", 0), bound("c", 0)]))
    assert [(one.kind, one.layer, one.expected, one.found) for one in found] == [
        ("bind_mismatch", "a", 0, 640),
        ("bind_mismatch", "b", 640, 0),
    ]
    assert found[0].detail is not None
    assert "the region of b" in found[0].detail


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"storage": 1 << 30}, "another allocation"),
        ({"stride": 128}, "from block to block"),
        ({"length": 700}, "beyond"),
        ({"dtype": "float16", "expected_dtype": "float32"}, "type"),
    ],
)
def test_each_property_of_a_bound_tensor_is_compared(fields: dict[str, object], word: str) -> None:
    (found,) = check_bindings(REGIONS, [bound("a", 0, **fields), bound("b", 640), bound("c", 0)])
    assert found.layer == "a"
    assert found.detail is not None
    assert word in found.detail


def test_a_layer_without_a_tensor_is_named() -> None:
    (found,) = check_bindings(REGIONS, [bound("a", 0), bound("c", 0)])
    assert (found.layer, found.found) == ("b", None)


def test_a_captured_address_that_is_no_longer_bound_is_stale() -> None:
    captured = {("a", "runner"): 100, ("b", "runner"): 200}
    (found,) = check_pointers(REGIONS, captured, {("a", "runner"): 100, ("b", "runner"): 300})
    assert (found.kind, found.layer, found.expected, found.found) == (
        "captured_pointer_stale",
        "b",
        hex(200),
        hex(300),
    )


@pytest.mark.parametrize(
    "found",
    [{}, {"h": Parcel((2, 3), 8)}, {"h": Parcel((3, 2), 7)}, {"h": Parcel((2, 3), 7), "r": Parcel((1,), 0)}],
)
def test_a_hand_over_that_differs_is_reported_once(found: dict[str, Parcel]) -> None:
    (only,) = check_handover({"h": Parcel((2, 3), 7)}, found, "received")
    assert only.kind == "handover_mismatch"


def test_a_hand_over_that_is_the_same_is_fine() -> None:
    assert list(check_handover({"h": Parcel((2, 3), 7)}, {"h": Parcel((2, 3), 7)}, "received")) == []


def look(watch: PageWatch, step: int, pages: dict[int, int], quiet: bool = True) -> list[int | None]:
    found = watch.look(step, lambda block: {"a": pages[block]}, str, lambda block: quiet)
    return [one.block for one in found]


def test_a_page_that_changes_by_itself_is_found_within_one_rotation() -> None:
    watch, pages = PageWatch(blocks=5, budget=2), {1: 10, 2: 20, 3: 30, 4: 40}
    assert look(watch, 1, pages) + look(watch, 2, pages) == []
    pages[3] = 31
    assert look(watch, 3, pages) + look(watch, 4, pages) == [3]


def test_blocks_in_use_are_looked_at_every_other_time_however_large_the_cache_is() -> None:
    watch, pages = PageWatch(blocks=5000, budget=1), dict.fromkeys(range(5000), 0)

    def found(step: int) -> list[int | None]:
        sums = watch.look(step, lambda block: {"a": pages[block]}, str, lambda block: True, [70, 80])
        return [one.block for one in sums]

    assert [block for step in range(4) for block in found(step)] == []
    pages[70] = pages[3] = 1
    assert [block for step in range(4, 8) for block in found(step)] == [70]


def test_a_page_that_a_step_wrote_may_change() -> None:
    watch, pages = PageWatch(blocks=3, budget=2), {1: 10, 2: 20}
    look(watch, 1, pages)
    watch.forget({2})
    pages[2] = 21
    assert look(watch, 2, pages) == []


def test_a_page_that_the_next_step_writes_is_not_recorded() -> None:
    watch = PageWatch(blocks=3, budget=2)
    look(watch, 1, {1: 10, 2: 20}, quiet=False)
    assert watch.recorded == {}


def test_a_restored_state_is_compared_with_the_stored_one() -> None:
    states = StoredStates()
    states.store(0, 5, 8, {"gdn": 1})
    assert list(states.restore(0, 5, 8, "a", {"gdn": 1})) == []
    (found,) = states.restore(0, 5, 8, "a", {"gdn": 2})
    assert (found.kind, found.layer, found.request, found.block) == ("prefix_state_mismatch", "gdn", "a", 5)
    (found,) = states.restore(0, 5, 12, "a", {"gdn": 1})
    assert (found.expected, found.found) == (12, 8)


def test_a_state_that_was_written_again_is_not_compared() -> None:
    states = StoredStates()
    states.store(0, 5, 8, {"gdn": 1})
    states.forget(0, 5)
    assert list(states.restore(0, 5, 8, "a", {"gdn": 2})) == []
