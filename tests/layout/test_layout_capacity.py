"""Capacity: the incident to the token, and the closed form against a simulation that knows nothing of it."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.layout.shapes import dense, incident, incident_plan

from culpa.layout import BadLayout, Plan, Settings, make_plan, read_shape


@pytest.mark.parametrize(
    ("partition", "blocks", "tokens"), [((23, 23, 18), 492, 370_617), ((24, 24, 16), 452, 340_485)]
)
def test_the_incident_capacities_to_the_token(partition: tuple[int, ...], blocks: int, tokens: int) -> None:
    plan = incident_plan(partition, blocks=blocks)
    assert plan.capacity_tokens == tokens
    assert plan.blocks_per_request == 174
    assert plan.refusal is None


def test_the_incident_block_holds_one_state() -> None:
    plan = incident_plan(blocks=492)
    assert plan.pages.state_bytes == 48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2
    assert plan.pages.token_bytes == 2 * 4 * 256 * 2
    assert (plan.block_size, plan.page_bytes) == (784, 784 * 4096)


@pytest.mark.parametrize(
    ("partition", "widths"),
    [
        ((23, 23, 18), [(6, 6, 6, 5), (6, 6, 5, 6), (4, 4, 5, 5)]),
        ((24, 24, 16), [(6, 6, 6, 6), (6, 6, 6, 6), (4, 4, 4, 4)]),
        ((2, 60, 2), [(1, 1, 0, 0), (15, 15, 15, 15), (0, 0, 1, 1)]),
    ],
)
def test_group_widths_of_stages(partition: tuple[int, ...], widths: list[tuple[int, ...]]) -> None:
    assert [stage.group_widths for stage in incident_plan(partition, blocks=492).stages] == widths


def test_groups_are_taken_in_turns_over_the_whole_model() -> None:
    groups = incident_plan(blocks=492).groups
    assert [group.first.type for group in groups] == ["linear_attention"] * 3 + ["full_attention"]
    assert [entry.layer for entry in groups[0].entries][:3] == [0, 4, 8]
    assert [entry.layer for entry in groups[3].entries][:3] == [3, 7, 11]
    assert all(len(group.entries) == 16 for group in groups)


@pytest.mark.parametrize(
    ("mode", "caching", "spec", "per_state_group"),
    [
        (None, True, 0, 2),
        (None, True, 2, 4),
        (None, False, 0, 1),
        ("none", False, 3, 4),
        ("align", True, 0, 2),
    ],
)
def test_blocks_that_a_state_group_takes(mode: str, caching: bool, spec: int, per_state_group: int) -> None:
    plan = incident_plan(
        blocks=492,
        mamba_cache_mode=mode,
        prefix_caching=caching,
        speculative_tokens=spec,
        speculative_method="ngram",
    )
    assert plan.per_group[:3] == (per_state_group,) * 3


def test_mode_all_keeps_a_state_for_every_block() -> None:
    plan = incident_plan(blocks=4000, mamba_cache_mode="all", engine_version=(0, 28, 0))
    assert plan.block_size == 2048
    assert plan.per_group == (64, 64, 64, 64)


def test_mtp_layers_join_the_full_attention_group_of_the_last_stage() -> None:
    plan = incident_plan(blocks=492, speculative_tokens=1, speculative_method="mtp")
    full = next(group for group in plan.groups if group.first.type == "full_attention")
    assert [entry.layer for entry in full.entries][-1] == 64
    assert plan.stages[-1].group_widths[-1] == 6
    assert plan.stages[-1].weights.drafting > 0


def test_tensor_parallelism_shrinks_states_and_heads_alike() -> None:
    one, two = incident_plan(blocks=492), incident_plan(blocks=492, tensor_parallel_size=2)
    assert two.pages.state_bytes * 2 == one.pages.state_bytes
    assert two.block_size == one.block_size
    assert two.page_bytes * 2 == one.page_bytes


def test_more_ranks_than_key_value_heads_repeat_them() -> None:
    assert make_plan(dense(), Settings(tensor_parallel_size=16)).pages.token_bytes == 2 * 1 * 128 * 2


def test_fp8_halves_a_token_and_doubles_the_block() -> None:
    plan = incident_plan(blocks=246, kv_cache_dtype="fp8", max_model_len=262144)
    assert plan.block_size == 1568
    assert plan.capacity_tokens == 370_617


def test_the_longest_length_that_fits() -> None:
    plan = incident_plan(blocks=100, max_model_len=-1)
    assert plan.refusal is None
    longer = incident_plan(blocks=100, max_model_len=plan.max_model_len + 1)
    assert longer.refusal is not None


def test_the_null_block_counts_since_0_30() -> None:
    assert incident_plan(blocks=174).refusal is not None
    assert incident_plan(blocks=175).refusal is None
    assert incident_plan(blocks=174, engine_version=(0, 28, 0)).refusal is None


def test_an_empty_stage_is_refused() -> None:
    plan = incident_plan((64, 0, 0), blocks=492)
    assert plan.refusal is not None
    assert "zero bytes" in plan.refusal


def test_gpu_memory_less_weights_and_overhead_is_for_the_cache() -> None:
    plan = incident_plan(gpu_memory=(32 << 30,), utilization=0.9, overhead=1 << 30)
    for stage in plan.stages:
        assert stage.available == int((32 << 30) * 0.9) - stage.weights.total - (1 << 30)
    fewest = min(stage.available // stage.bytes_per_block for stage in plan.stages if stage.available)
    assert plan.num_blocks == fewest
    assert plan.stages[plan.limiting_stage or 0].num_blocks == fewest


# --- a simulation, one token and one block at a time ---------------------------------------------------------


def simulated(
    plan: Plan, kinds: list[str], partition: tuple[int, ...], memory: list[int], align: bool
) -> int:
    """Tokens that fit, by placing pages one by one: groups by hand, a request token by token."""
    names = list(dict.fromkeys(kinds))
    counts = {name: kinds.count(name) for name in names}
    width = min(counts.values())
    if max(counts.values()) < 1.5 * width:
        width = max(counts.values())
    tables: list[tuple[str, list[int]]] = []
    for name in names:
        layers = [index for index, kind in enumerate(kinds) if kind == name]
        parts = 1
        while parts * width < len(layers):
            parts += 1
        hands: list[list[int]] = [[] for _ in range(parts)]
        for turn, layer in enumerate(layers):
            hands[turn % parts].append(layer)
        tables += [(name, hand) for hand in hands]
    if len(names) == 1:
        tables = [(names[0], list(range(len(kinds))))]
    fewest = None
    first = 0
    for size, free in zip(partition, memory, strict=True):
        here = set(range(first, first + size))
        first += size
        pages = max(len(here & set(layers)) for _, layers in tables)
        count = 0
        while free >= pages * plan.page_bytes:
            free -= pages * plan.page_bytes
            count += 1
        fewest = count if fewest is None else min(fewest, count)
    taken = 0
    for name, _ in tables:
        if name == "full_attention":
            taken += sum(1 for token in range(plan.max_model_len) if token % plan.block_size == 0)
        else:
            taken += (
                2 if align else 1
            )  # the state before the block that is being computed, and the running one
    return int(Fraction(fewest or 0, taken) * plan.max_model_len)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_closed_form_is_what_placing_pages_one_by_one_gives(data: st.DataObject) -> None:
    kinds = data.draw(
        st.lists(st.sampled_from(["linear_attention", "full_attention"]), min_size=2, max_size=24).filter(
            lambda drawn: "full_attention" in drawn
        )
    )
    stages = data.draw(st.integers(1, min(4, len(kinds))))
    marks = sorted(
        data.draw(st.sets(st.integers(1, len(kinds) - 1), min_size=stages - 1, max_size=stages - 1))
    )
    partition = tuple(end - start for start, end in zip([0, *marks], [*marks, len(kinds)], strict=True))
    align = data.draw(st.booleans())
    config = {
        "model_type": "qwen3_next", "num_hidden_layers": len(kinds), "hidden_size": 256, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "layer_types": kinds, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
    }  # fmt: skip
    memory = [data.draw(st.integers(50 << 20, 200 << 20)) for _ in partition]
    length = data.draw(st.integers(1, 20_000))
    plan = make_plan(
        read_shape(config),
        Settings(
            pipeline_parallel_size=stages, partition=partition, max_model_len=length, prefix_caching=align,
            kv_memory=tuple(memory),
        ),
    )  # fmt: skip
    expected = simulated(plan, kinds, partition, memory, align)
    # The engine divides floating-point numbers, which may lose the last token.
    assert plan.capacity_tokens is not None
    assert abs(plan.capacity_tokens - expected) <= 1


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1 << 28, 1 << 36),
    st.integers(0, 1 << 34),
    st.sampled_from([(23, 23, 18), (24, 24, 16), (1, 62, 1)]),
)
def test_more_memory_never_holds_fewer_tokens(memory: int, more: int, partition: tuple[int, ...]) -> None:
    little = incident_plan(partition, kv_memory=(memory,))
    much = incident_plan(partition, kv_memory=(memory + more,))
    assert (much.capacity_tokens or 0) >= (little.capacity_tokens or 0)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(lambda parts: sum(parts) > 0))
def test_every_layer_stands_on_one_stage_and_in_one_place_of_one_group(parts: list[int]) -> None:
    layers = sum(parts)
    config = {
        "model_type": "qwen3_next",
        "num_hidden_layers": layers,
        "hidden_size": 128,
        "num_attention_heads": 2,
    }
    plan = make_plan(
        read_shape(config),
        Settings(pipeline_parallel_size=len(parts), partition=tuple(parts), max_model_len=4096, blocks=1000),
    )
    assert [layer for stage in plan.stages for layer in stage.layers] == list(range(layers))
    assert sorted(entry.layer for group in plan.groups for entry in group.entries) == list(range(layers))
    # Projection loses no layer.
    assert sum(sum(stage.group_widths) for stage in plan.stages) == layers
    assert sum(stage.weights.layers for stage in plan.stages) == sum(plan.weights.layers)
    assert sum(stage.full_attention + stage.recurrent for stage in plan.stages) == layers


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"partition": (23, 23)}, "2 parts"),
        ({"partition": (23, 23, 19)}, "adds up to 65"),
        ({"pipeline_parallel_size": 0}, "1 or more stages"),
        ({"tensor_parallel_size": 0}, "1 or more ranks"),
        ({"blocks": 5, "kv_memory": (1,)}, "contradict"),
        ({"blocks": 0}, "1 or more"),
        ({"block_size": 0}, "1 or more"),
        ({"gpu_memory": (1, 2)}, "2 values"),
        ({"utilization": 1.5}, "share"),
        ({"kv_cache_dtype": "nvfp4"}, "not known here"),
        ({"dtype": "complex"}, "not known here"),
        ({"hybrid_manager": False}, "refuses to start"),
        ({"max_model_len": 0}, "1 or more tokens"),
        ({"speculative_tokens": -1}, "0 or more"),
    ],
)
def test_contradictions_are_one_clear_line(changes: dict[str, object], says: str) -> None:
    with pytest.raises(BadLayout, match=says):
        make_plan(incident(), Settings(**{"pipeline_parallel_size": 3, **changes}))  # type: ignore[arg-type]
