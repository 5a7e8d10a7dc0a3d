"""Whatever a config.json holds, the answer is a shape or one clear line; never a crash, never a long wait."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.layout.shapes import dense_config, incident_config

from culpa.layout import BadLayout, Finding, Settings, find, make_plan, read_shape
from culpa.layout.families import families

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(allow_nan=True), st.text(max_size=8),
)  # fmt: skip
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=4), st.dictionaries(st.text(max_size=6), SCALARS, max_size=3)
)
OTHER_KEYS = """
layer_types layers_block_type quantization_config vision_config text_config attn_layer_indices hybrid_override_pattern
linear_attn_config num_experts sliding_window mamba_d_head mamba_expand kv_lora_rank full_attn_idxs attn_type_list
no_rope_layers mlp_layer_types moe_layers architectures rope_parameters num_nextn_predict_layers expert_layer_period
decoder_sparse_step moe_intermediate_size block_ffn_dim_multiplier block_auto_adjust_ff_dim mamba_dt_rank
mlp_only_layers
"""
KEYS = sorted({*dense_config(), *incident_config()["text_config"], *OTHER_KEYS.split()})


def planned(config: Any) -> None:
    """Plan it; what can't be planned is told in one line."""
    told = ""
    findings: tuple[Finding, ...] = ()
    try:
        findings = find(
            make_plan(read_shape(config), Settings(pipeline_parallel_size=2, gpu_memory=(24 << 30,)))
        )
    except BadLayout as error:
        told = str(error)
    assert told or all(finding.text for finding in findings)
    assert "\n" not in told
    assert len(told) < 300


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([name for family in families() for name in family.model_types]), st.data())
def test_any_value_under_any_key(model_type: str, data: st.DataObject) -> None:
    config = {**dense_config(4), "model_type": model_type}
    for key in data.draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4)):
        config[key] = data.draw(VALUES)
    planned(config)


@settings(deadline=None, max_examples=100)
@given(VALUES)
def test_any_document(document: Any) -> None:
    planned(document)


def test_more_heads_than_the_hidden_size_holds_are_refused_in_one_line() -> None:
    config = {**incident_config()["text_config"], "num_attention_heads": 1 << 20}
    del config["head_dim"]
    with pytest.raises(BadLayout, match="attention heads are more than the hidden size"):
        read_shape(config)
