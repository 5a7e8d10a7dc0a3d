"""Counts of parameters of a decoder layer, from the numbers in config.json.

They follow the modules of the transformers classes named in families.toml; norms and biases that weigh less
than a thousandth of a layer are left out.
"""

from collections.abc import Mapping
from typing import Any

from culpa.layout.errors import BadLayout
from culpa.layout.families import FamilyTable, factor, number, value
from culpa.layout.shape import AttentionShape, LayerKind, Parameters, StateShape

_EXPERTS = "num_experts|num_local_experts|n_routed_experts|moe_num_experts|ffn_config.moe_num_experts=0"
_EXPERT_WIDTH = "moe_intermediate_size|expert_ffn_hidden_size=0"
_SHARED_WIDTH = (
    "shared_expert_intermediate_size|moe_shared_expert_intermediate_size|shared_intermediate_size=0"
)
_SHARED_COUNT = "n_shared_experts|num_shared_experts|moe_num_shared_experts=0"
_LEADING_DENSE = "first_k_dense_replace|num_dense_layers|moe_layer_start_index=0"


def attention_parameters(
    config: Mapping[str, Any], family: FamilyTable, attention: AttentionShape, hidden: int
) -> Parameters:
    """Projections of one attention layer."""
    table = family.attention
    if attention.latent:
        return Parameters(linear=_latent(config, attention, hidden))
    source = hidden * table.hidden_factor
    queries = attention.heads * attention.head_dim
    keys = attention.kv_heads * attention.head_dim
    linear = source * queries * (2 if table.gate else 1) + 2 * source * keys + queries * hidden
    other = 2 * attention.head_dim if table.qk_norm else 0
    if table.bias or value(config, "attention_bias") is True:
        other += queries + 2 * keys + hidden
    return Parameters(linear=linear, other=other)


def _latent(config: Mapping[str, Any], attention: AttentionShape, hidden: int) -> int:
    """Multi-head latent attention: keys and values through one narrow vector."""
    heads = attention.heads
    rank = number(config, "kv_lora_rank=512")
    rope = number(config, "qk_rope_head_dim=64")
    plain = number(config, "qk_nope_head_dim=128")
    values = number(config, "v_head_dim=128")
    query_rank = number(config, "q_lora_rank=0")
    query = heads * (plain + rope)
    queries = hidden * query_rank + query_rank * query if query_rank else hidden * query
    return queries + hidden * (rank + rope) + rank * heads * (plain + values) + heads * values * hidden


def state_parameters(config: Mapping[str, Any], state: StateShape, hidden: int) -> Parameters:
    """The mixer of one recurrent layer."""
    if state.kind == "gdn":
        keys, values = state["key_dim"] * state["key_heads"], state["value_dim"] * state["value_heads"]
        linear = hidden * (2 * keys + 2 * values + 2 * state["value_heads"]) + values * hidden
        return Parameters(
            linear=linear, other=(2 * keys + values) * state["kernel"] + 2 * state["value_heads"]
        )
    if state.kind == "kda":
        wide, narrow = state["heads"] * state["head_dim"], state["head_dim"]
        linear = 4 * hidden * wide + 2 * (hidden * narrow + narrow * wide) + hidden * state["heads"]
        return Parameters(linear=linear, other=3 * wide * state["kernel"] + wide)
    if state.kind == "mamba2":
        inner, groups = state["inner"], state["groups"] * state["state"]
        linear = hidden * (2 * inner + 2 * groups + state["heads"]) + inner * hidden
        return Parameters(linear=linear, other=(inner + 2 * groups) * (state["kernel"] + 1) + inner)
    if state.kind == "mamba1":
        inner, width = state["inner"], state["state"]
        rank = value(config, "mamba_dt_rank|time_step_rank")
        rank = rank if isinstance(rank, int) else -(-hidden // 16)
        linear = 2 * hidden * inner + inner * (rank + 2 * width) + rank * inner + inner * hidden
        return Parameters(linear=linear, other=inner * (state["kernel"] + width + 3))
    if state.kind == "short_conv":
        return Parameters(linear=4 * hidden * state["dim"], other=state["dim"] * state["kernel"])
    wide = state["heads"] * state["head_dim"]
    return Parameters(linear=5 * hidden * wide, other=wide)


def mlp_parameters(
    config: Mapping[str, Any], family: FamilyTable, kind: LayerKind, index: int, hidden: int
) -> Parameters:
    """The feed-forward part of layer `index`: dense, or experts with those that are always used."""
    if family.mlp_in and kind not in family.mlp_in:
        return Parameters()
    experts = number(config, _EXPERTS)
    if kind != "mlp" and experts > 1 and _has_experts(config, kind, index):
        width = number(config, _EXPERT_WIDTH) or _dense_width(config, hidden)
        latent = number(config, "moe_latent_size=0") or hidden
        shared = number(config, _SHARED_WIDTH) or (
            (number(config, _SHARED_COUNT) or family.shared_experts) * width
        )
        linear = family.mlp_projections * hidden * shared
        if latent != hidden:
            linear += 2 * hidden * latent
        return Parameters(
            linear=linear,
            experts=experts * family.mlp_projections * latent * width,
            other=hidden * experts + (experts * (2 * width + hidden) if family.attention.bias else 0),
        )
    width = number(config, "shared_intermediate_size=0") if experts == 0 else 0
    width = width or number(config, "intermediate_size_mlp=0") or _dense_width(config, hidden)
    return Parameters(linear=family.mlp_projections * hidden * width)


def _dense_width(config: Mapping[str, Any], hidden: int) -> int:
    width = number(config, "intermediate_size|ffn_hidden_size|block_ff_dim|n_inner=0") or 4 * hidden
    if value(config, "block_auto_adjust_ff_dim") is True:  # LFM2: two thirds, rounded up
        width = int(2 * width / 3)
        width = int(factor(config, "block_ffn_dim_multiplier=1") * width)
        multiple = number(config, "block_multiple_of=256") or 1
        width = -(-width // multiple) * multiple
    return width


def _has_experts(config: Mapping[str, Any], kind: LayerKind, index: int) -> bool:
    """Whether layer `index` has experts, by the switches that families use."""
    if kind == "moe":
        return True
    excluded = value(config, "mlp_only_layers")
    if isinstance(excluded, list) and index in excluded:
        return False
    if index < number(config, _LEADING_DENSE):
        return False
    listed = value(config, "mlp_layer_types|moe_layers")
    if isinstance(listed, list) and listed:
        return (
            listed[index] == "sparse"
            if isinstance(listed[0], str) and index < len(listed)
            else index in listed
        )
    period = number(config, "expert_layer_period=0")
    if period:
        return index % period == number(config, "expert_layer_offset=0")
    step = number(config, "decoder_sparse_step|interleave_moe_layer_step=1")
    if step == 0:
        raise BadLayout("config.json: decoder_sparse_step should be at least 1")
    return (index + 1) % step == 0
