"""What the guard reads of vLLM, on objects of the shapes that its versions have; no engine, no torch."""

from types import SimpleNamespace
from typing import Any

import pytest

from culpa_guard import Grant, Guard, Place, Settings
from culpa_guard.settings import BadSetting, Planted
from culpa_guard.vllm.layout import layer_type, left_out_groups, read_groups, read_regions
from culpa_guard.vllm.plan import read_plan
from culpa_guard.vllm.plants import Plant


class FullAttentionSpec(SimpleNamespace):
    pass


class SlidingWindowSpec(SimpleNamespace):
    pass


class MambaSpec(SimpleNamespace):
    pass


class CrossAttentionSpec(SimpleNamespace):
    pass


def state(mode: str = "align") -> MambaSpec:
    kind = SimpleNamespace(name="GDN_ATTN")
    return MambaSpec(
        block_size=64, page_size_bytes=1000, mamba_type=kind, mamba_cache_mode=mode, num_speculative_blocks=0
    )


def full() -> FullAttentionSpec:
    return FullAttentionSpec(block_size=64, page_size_bytes=1000)


def group(spec: object, *names: str) -> SimpleNamespace:
    return SimpleNamespace(kv_cache_spec=spec, layer_names=list(names))


def config(tensors: list[SimpleNamespace], *groups: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(num_blocks=10, kv_cache_tensors=tensors, kv_cache_groups=list(groups))


def test_groups_have_their_kind_mode_and_kernel_blocks() -> None:
    window = SlidingWindowSpec(block_size=64, page_size_bytes=1000, sliding_window=100)
    given = config([], group(state(), "a"), group(full(), "b"), group(window, "c"))
    one, two, three = read_groups(given, [64, 16, 32])
    assert (one.kind, one.mode, one.ratio, one.block_size) == ("state", "align", 1, 64)
    assert (two.kind, two.ratio, two.kernel_block_size) == ("attention", 4, 16)
    assert (three.kind, three.window, three.ratio) == ("window", 100, 2)


@pytest.mark.parametrize(
    "spec",
    [
        CrossAttentionSpec(block_size=64, page_size_bytes=1),
        FullAttentionSpec(block_size=64, page_size_bytes=1, storage_block_size=16),
        state("all"),
    ],
)
def test_a_cache_that_is_not_known_is_left_out_by_name(spec: object) -> None:
    given = config([], group(spec, "a"))
    groups = read_groups(given, [64])
    assert groups[0].kind == "other"
    ((check, reason),) = left_out_groups(given, groups)
    assert check == "group_0"
    assert type(spec).__name__ in reason


def test_without_kernel_block_sizes_attention_is_left_out_and_state_is_not() -> None:
    one, two = read_groups(config([], group(state(), "a"), group(full(), "b")), None)
    assert (one.kind, two.kind) == ("state", "other")


def test_layer_types_are_the_recurrence_or_the_attention() -> None:
    assert [layer_type(spec) for spec in (state(), full(), SlidingWindowSpec())] == [
        "gdn_attn",
        "full_attention",
        "sliding_attention",
    ]


def test_regions_of_one_allocation_are_read_from_offsets_and_strides() -> None:
    tensors = [
        SimpleNamespace(size=30000, layers=["a", "b"], layer_stride=10000, block_stride=1000, offset=0),
        SimpleNamespace(size=30000, layers=["c"], layer_stride=10000, block_stride=1000, offset=20000),
    ]
    regions = read_regions(config(tensors, group(state(), "a", "b"), group(full(), "c")))
    assert {name: region.offset for name, region in regions.items()} == {"a": 0, "b": 10000, "c": 20000}
    assert regions["b"].end == 20000
    assert {region.allocation for region in regions.values()} == {"kv"}


def test_regions_of_shared_allocations_are_read_from_who_shares_them() -> None:
    tensors = [
        SimpleNamespace(size=10000, shared_by=["a", "c"], offset=0, block_stride=0),
        SimpleNamespace(size=10000, shared_by=["b"], offset=0, block_stride=0),
    ]
    regions = read_regions(config(tensors, group(state(), "a", "b"), group(full(), "c")))
    assert regions["a"].allocation == regions["c"].allocation != regions["b"].allocation
    assert {region.offset for region in regions.values()} == {0}
    assert {region.stride for region in regions.values()} == {1000}


def test_a_configuration_of_another_form_is_told() -> None:
    with pytest.raises(AttributeError):
        read_regions(config([SimpleNamespace(size=1)], group(state(), "a")))


def test_the_scheduler_output_becomes_a_plan() -> None:
    new = SimpleNamespace(req_id="n", block_ids=([1], [2]), num_computed_tokens=64)
    cached = SimpleNamespace(
        req_ids=["c", "r", "q"],
        resumed_req_ids={"r"},
        new_block_ids=[None, ([3], [4]), ([], [5])],
        num_computed_tokens=[10, 0, 20],
    )
    output = SimpleNamespace(
        scheduled_new_reqs=[new],
        scheduled_cached_reqs=cached,
        num_scheduled_tokens={"n": 5, "c": 1, "r": 9, "q": 1},
        finished_req_ids={"f"},
        preempted_req_ids=None,
    )
    plan = read_plan(output)
    assert list(plan.grants) == [
        Grant("n", ([1], [2]), 64, replaces=True),
        Grant("c", None, 10),
        Grant("r", ([3], [4]), 0, replaces=True),
        Grant("q", ([], [5]), 20),
    ]
    assert (plan.finished, plan.preempted) == (("f",), ())


@pytest.mark.parametrize(
    "planted",
    [Planted("no_such", {}), Planted("scribble", {"when": "1"}), Planted("scribble", {"step": "x"})],
)
def test_a_plant_that_there_is_not_is_refused(planted: Planted) -> None:
    guard: Any = Guard(Settings("log"), Place("vllm", "0", "worker"))
    with pytest.raises(BadSetting):
        Plant(planted, guard, 0)
