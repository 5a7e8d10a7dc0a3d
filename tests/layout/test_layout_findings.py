"""Every finding: when it is there, when it is not, with its level and its arithmetic."""

from dataclasses import replace
from typing import Any

import pytest
from tests.layout.shapes import dense, dense_config, incident, incident_config, incident_plan

from culpa.layout import Finding, Plan, Settings, find, make_plan, read_shape


def ids(plan: Plan) -> list[str]:
    return [finding.id for finding in find(plan)]


def one(plan: Plan, name: str) -> Finding:
    found = [finding for finding in find(plan) if finding.id == name]
    assert found, f"{name} is not among {ids(plan)}"
    return found[0]


def test_a_plain_model_on_one_gpu_has_nothing_to_tell() -> None:
    assert find(make_plan(dense(), Settings(blocks=10_000))) == ()


def test_the_gravest_come_first() -> None:
    levels = [finding.level for finding in find(incident_plan((64, 0, 0), gpu_memory=(24 << 30,)))]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)


def test_a_boundary_inside_a_period_is_told_with_what_the_incident_showed() -> None:
    found = one(incident_plan(blocks=492), "boundary_inside_period")
    assert found.level == "note"
    assert "layer 23 and layer 46" in found.text
    assert "24,24,16" in found.text
    assert "did not help" in found.text


def test_an_aligned_split_has_no_boundary_inside_a_period() -> None:
    assert "boundary_inside_period" not in ids(incident_plan((24, 24, 16), blocks=452))


@pytest.mark.parametrize(
    ("partition", "level"), [((23, 23, 18), None), ((24, 24, 16), "note"), ((40, 12, 12), "warning")]
)
def test_an_unbalanced_stage(partition: tuple[int, ...], level: str | None) -> None:
    plan = incident_plan(partition, blocks=100)
    if level is None:
        assert "unbalanced_stage" not in ids(plan)
    else:
        assert one(plan, "unbalanced_stage").level == level


@pytest.mark.parametrize("part", [0, -2])
def test_a_stage_without_layers_is_accepted_by_vllm_and_told_here(part: int) -> None:
    found = one(incident_plan((32, 32 - part, part), blocks=492), "empty_stage")
    assert found.level == "error"
    assert f"gets {part} layers" in found.text


def test_a_group_without_a_layer_on_a_stage() -> None:
    found = one(incident_plan((2, 60, 2), blocks=492), "empty_group")
    assert found.level == "warning"
    assert "stage 0" in found.text


def test_a_stage_whose_layers_keep_no_cache() -> None:
    config = {
        "model_type": "nemotron_h",
        "hidden_size": 256,
        "num_attention_heads": 4,
        "hybrid_override_pattern": "M*--",
    }
    plan = make_plan(read_shape(config), Settings(pipeline_parallel_size=2, max_model_len=4096))
    assert one(plan, "stage_without_cache").level == "error"


def test_a_cache_that_only_older_releases_would_take() -> None:
    assert "version_null_block" in ids(incident_plan(blocks=174))
    assert "version_null_block" not in ids(incident_plan(blocks=173))
    assert "version_null_block" not in ids(incident_plan(blocks=175))


def test_a_backend_that_is_not_in_the_table_is_said() -> None:
    assert "MAGIC" in one(make_plan(dense(), Settings(attention_backend="MAGIC")), "not_modelled").text


def test_a_model_without_any_cache() -> None:
    config = {
        "model_type": "nemotron_h",
        "hidden_size": 256,
        "num_attention_heads": 4,
        "hybrid_override_pattern": "--E",
    }
    plan = make_plan(read_shape(config), Settings(max_model_len=4096))
    assert one(plan, "no_cache").level == "error"


def test_padding_of_groups_over_a_fifth() -> None:
    found = one(incident_plan((2, 60, 2), blocks=492), "group_padding")
    assert "widths 1,1,0,0" in found.text
    assert "50%" in found.text


def test_padding_of_pages_over_a_fifth() -> None:
    plan = incident_plan(blocks=492, block_size=1024)
    assert one(plan, "page_padding").level == "warning"
    assert "24%" in one(plan, "page_padding").text
    assert plan.pages.state_padding == pytest.approx(1 - 3207168 / (1024 * 4096))


def test_a_cache_below_one_request() -> None:
    found = one(incident_plan(blocks=100), "capacity_below_request")
    assert found.level == "error"
    assert "174 blocks of 19,267,584 bytes" in found.text


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        (131_073, "longer than max_model_len"),
        (200_000, "longer than max_model_len"),
        (131_072, None),
        (27_000, None),
    ],
)
def test_a_prompt_that_cannot_fit(prompt: int, says: str | None) -> None:
    plan = incident_plan(blocks=492, prompt_tokens=prompt)
    if says is None:
        assert "prompt_cannot_fit" not in ids(plan)
    else:
        assert says in one(plan, "prompt_cannot_fit").text


def test_a_prompt_longer_than_the_cache() -> None:
    found = one(incident_plan(blocks=100, prompt_tokens=100_000), "prompt_cannot_fit")
    assert "75,328 tokens" in found.text


@pytest.mark.parametrize(("gib", "level"), [(20, "error"), (22, "warning"), (40, None)])
def test_out_of_memory_is_foreseen(gib: int, level: str | None) -> None:
    plan = incident_plan(gpu_memory=(gib << 30,), overhead=1 << 30)
    levels = {finding.level for finding in find(plan) if finding.id == "oom_likely"}
    assert (level in levels) if level else not levels


def test_more_blocks_than_there_is_memory_for() -> None:
    plan = incident_plan(gpu_memory=(32 << 30,), blocks=5000)
    assert one(plan, "blocks_exceed_memory").level == "error"


@pytest.mark.parametrize(
    ("block", "backend", "bad"),
    [
        (16, None, False),
        (24, None, True),
        (48, "FLASHINFER", False),
        (24, "FLASHINFER", True),
        (48, "CPU_ATTN", True),
    ],
)
def test_a_block_that_kernels_cannot_take(block: int, backend: str | None, bad: bool) -> None:
    plan = make_plan(dense(), Settings(block_size=block, attention_backend=backend))
    assert ("kernel_block_size" in ids(plan)) is bad


def test_a_block_that_is_raised_to_hold_a_state() -> None:
    assert one(incident_plan(blocks=492, block_size=32), "block_size_raised").level == "warning"
    found = one(incident_plan(blocks=492), "block_size_raised")
    assert found.level == "note"
    assert "784" in found.text
    assert "783 tokens" in found.text


@pytest.mark.parametrize(
    ("ranks", "says"), [(5, "24 attention heads"), (7, "48 value heads"), (3, "4 key-value heads")]
)
def test_ranks_that_do_not_divide_heads_or_states(ranks: int, says: str) -> None:
    plan = incident_plan(blocks=492, tensor_parallel_size=ranks)
    found = one(plan, "tensor_parallel")
    assert found.level == "error"
    assert says in found.text
    assert plan.refusal is not None


def test_ranks_that_divide_are_no_finding() -> None:
    assert "tensor_parallel" not in ids(incident_plan(blocks=492, tensor_parallel_size=2))


def test_heads_and_state_groups_that_are_repeated() -> None:
    assert "kv_heads_repeated" in ids(incident_plan(blocks=492, tensor_parallel_size=8))
    config = {"model_type": "bamba", "num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 32}
    plan = make_plan(
        read_shape(config), Settings(tensor_parallel_size=4, max_model_len=4096, engine_version=(0, 20))
    )
    assert "state_groups_repeated" in ids(plan)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mamba_cache_mode": "align", "prefix_caching": False}, "set back to none"),
        ({"mamba_cache_mode": "none", "prefix_caching": True}, "becomes align"),
        ({"mamba_cache_mode": "none"}, "vLLM makes it align"),
        ({"mamba_cache_mode": "all"}, "gone"),
        ({"async_scheduling": True, "v2_runner": False}, "V1 model runner"),
        ({"mamba_ssm_cache_dtype": "bfloat16"}, "asks for float32"),
    ],
)
def test_settings_that_switch_each_other_off(changes: dict[str, Any], says: str) -> None:
    assert says in one(incident_plan(blocks=492, **changes), "settings_conflict").text


def test_mtp_without_mtp_layers_and_a_mode_without_states() -> None:
    plan = make_plan(
        dense(), Settings(speculative_tokens=2, speculative_method="mtp", mamba_cache_mode="align")
    )
    texts = " ".join(finding.text for finding in find(plan) if finding.id == "settings_conflict")
    assert "no MTP layers" in texts
    assert "no recurrent layers" in texts


def test_an_fp8_cache_that_the_checkpoint_brings() -> None:
    shape = dense(quantization_config={"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8}})
    plan = make_plan(shape, Settings())
    assert "fp8_cache_by_checkpoint" in ids(plan)
    assert plan.pages.token_bytes == 2 * 8 * 128


def test_classes_that_are_gone_or_cannot_be_spread() -> None:
    config = {"model_type": "bamba", "num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 32}
    assert "class_removed" in ids(make_plan(read_shape(config), Settings(max_model_len=4096)))
    old = Settings(max_model_len=4096, engine_version=(0, 23, 0))
    assert "class_removed" not in ids(make_plan(read_shape(config), old))
    zamba = {**config, "model_type": "zamba2", "hybrid_layer_ids": [1]}
    two = Settings(max_model_len=4096, pipeline_parallel_size=2)
    assert "no_pipeline" in ids(make_plan(read_shape(zamba), two))


def test_version_notes_stand_where_they_matter() -> None:
    assert {"version_storage", "version_runner"} <= set(ids(incident_plan(blocks=492)))
    assert not [name for name in ids(make_plan(dense(), Settings(blocks=9000))) if name.startswith("version")]


def test_an_unknown_family_is_a_warning() -> None:
    plan = make_plan(read_shape(dense_config(model_type="brand_new")), Settings(blocks=9000))
    assert one(plan, "unknown_family").level == "warning"


def test_room_for_tokens_in_flight_is_said_where_it_is_assumed() -> None:
    gemma = read_shape(dense_config(model_type="gemma3_text", sliding_window=1024))
    assert "batch_tokens_assumed" in ids(make_plan(gemma, Settings()))
    assert "batch_tokens_assumed" not in ids(make_plan(gemma, Settings(max_num_batched_tokens=2048)))
    assert "batch_tokens_assumed" not in ids(make_plan(dense(), Settings()))


@pytest.mark.parametrize(("version", "share"), [((0, 24, 0), 0.9), ((0, 25, 0), 0.92), ((0, 32, 0), 0.92)])
def test_the_share_of_memory_is_that_of_the_release(version: tuple[int, ...], share: float) -> None:
    assert Settings(engine_version=version).share == share
    assert Settings(engine_version=version, utilization=0.5).share == 0.5


def test_what_is_not_computed_is_said() -> None:
    plan = make_plan(incident(), Settings(not_modelled=("--cpu-offload-gb",)))
    assert "--cpu-offload-gb" in one(plan, "not_modelled").text


def test_no_finding_speaks_of_what_no_factor_is_called() -> None:
    from culpa.engines.catalogue import embedded_catalogue

    catalogue = embedded_catalogue("vllm")
    known = {name for factor in catalogue.factors for name in (factor.name, *factor.aliases)} | {
        "engine_version"
    }
    plans = [
        incident_plan(
            (2, 60, 2), blocks=100, prompt_tokens=200_000, block_size=24, mamba_ssm_cache_dtype="bfloat16"
        ),
        incident_plan((64, 0, 0), gpu_memory=(22 << 30,), mamba_cache_mode="all"),
        incident_plan(blocks=492, async_scheduling=True, v2_runner=False, tensor_parallel_size=8),
    ]
    named = {name for plan in plans for finding in find(plan) for name in finding.factors}
    assert named <= known


def test_quantised_weights_are_smaller() -> None:
    plain = make_plan(dense(), Settings())
    awq = make_plan(dense(quantization_config={"quant_method": "awq", "bits": 4}), Settings())
    fp8 = make_plan(dense(), Settings(quantization="fp8"))
    assert sum(fp8.weights.layers) == pytest.approx(sum(plain.weights.layers) / 2, rel=0.01)
    assert sum(awq.weights.layers) == pytest.approx(sum(plain.weights.layers) * (4 + 20 / 128) / 16, rel=0.01)
    assert awq.weights.embedding == plain.weights.embedding


def test_first_and_last_stage_hold_what_their_class_puts_there() -> None:
    plan = make_plan(dense(), Settings(pipeline_parallel_size=3))
    held = [(stage.weights.embedding > 0, stage.weights.head > 0) for stage in plan.stages]
    assert held == [(True, False), (False, False), (False, True)]
    tied = make_plan(dense(tie_word_embeddings=True), Settings(pipeline_parallel_size=3))
    assert [(s.weights.embedding > 0, s.weights.head > 0) for s in tied.stages] == [
        (True, False), (False, False), (True, False),
    ]  # fmt: skip
    everywhere = make_plan(
        read_shape({**incident_config()["text_config"], "model_type": "qwen3_next"}),
        replace(Settings(), pipeline_parallel_size=3),
    )
    assert all(stage.weights.embedding and stage.weights.head for stage in everywhere.stages)
