"""The shape of `culpa layout --json`, schema "culpa.layout/1", and a plan in that shape.

Further keys may be added within version 1. Bytes are of one tensor-parallel rank; layers count from 0.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from culpa.layout import Explanation, Finding, Plan
from culpa.layout.storage import placements, shared_tensors
from culpa.report.schema import LayoutFindingDocument


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StageDocument(_Part):
    """One pipeline stage. `layers` is [first, last], or empty. `group_widths` has one entry for each group."""

    layers: list[int]
    full_attention: int
    local_attention: int
    recurrent: int
    weight_bytes: int
    weights: dict[str, int]
    group_widths: list[int]
    bytes_per_block: int
    padding: float
    available_bytes: int | None
    num_blocks: int | None
    storage: list[dict[str, Any]]


class GroupDocument(_Part):
    """Layers that share a block table. Layers past the last decoder layer are MTP layers."""

    type: str
    layers: list[int]
    places: int
    block_size: int
    page_bytes: int
    blocks_per_request: int


class VerificationDocument(_Part):
    """Whether the engine's own code was asked, and what it said."""

    engine: str | None
    differences: list[str]
    text: str


class LayoutDocument(_Part):
    """A whole layout. Null where memory or blocks are not known."""

    schema_: Literal["culpa.layout/1"] = Field(alias="schema")
    family: str
    known_family: bool
    model_type: str
    engine_version: str
    layer_types: list[str]
    period: int | None
    mtp_layers: int
    tied_embeddings: bool
    pipeline_parallel_size: int
    tensor_parallel_size: int
    partition: list[int]
    stages: list[StageDocument]
    groups: list[GroupDocument]
    block_size: int
    page_bytes: int
    state_bytes: int
    token_bytes: int
    bytes_per_block: int
    mamba_cache_mode: str
    max_model_len: int
    num_blocks: int | None
    blocks_per_request: int
    capacity_tokens: int | None
    concurrency: float | None
    limiting_stage: int | None
    weights_measured: bool
    refusal: str | None
    findings: list[LayoutFindingDocument]
    verification: VerificationDocument


def layout_document(plan: Plan, findings: Sequence[Finding], verification: dict[str, Any]) -> dict[str, Any]:
    """A plan as plain values in the schema's shape."""
    document = LayoutDocument(
        schema="culpa.layout/1",
        family=plan.shape.family,
        known_family=plan.shape.known_family,
        model_type=plan.shape.model_type,
        engine_version=plan.settings.version_text,
        layer_types=list(plan.shape.layer_types),
        period=plan.shape.period,
        mtp_layers=len(plan.shape.mtp_layers),
        tied_embeddings=plan.shape.tied_embeddings,
        pipeline_parallel_size=plan.settings.pipeline_parallel_size,
        tensor_parallel_size=plan.settings.tensor_parallel_size,
        partition=list(plan.partition),
        stages=[_stage(plan, index) for index in range(len(plan.stages))],
        groups=[
            GroupDocument(
                type=group.first.type,
                layers=[entry.layer for entry in group.entries],
                places=group.size,
                block_size=group.first.block_size,
                page_bytes=group.first.page_bytes,
                blocks_per_request=per,
            )
            for group, per in zip(plan.groups, plan.per_group, strict=True)
        ],
        block_size=plan.block_size,
        page_bytes=plan.page_bytes,
        state_bytes=plan.pages.state_bytes,
        token_bytes=plan.pages.token_bytes,
        bytes_per_block=plan.bytes_per_block,
        mamba_cache_mode=plan.pages.mode,
        max_model_len=plan.max_model_len,
        num_blocks=plan.num_blocks,
        blocks_per_request=plan.blocks_per_request,
        capacity_tokens=plan.capacity_tokens,
        concurrency=plan.concurrency,
        limiting_stage=plan.limiting_stage,
        weights_measured=plan.weights.measured,
        refusal=plan.refusal,
        findings=[
            LayoutFindingDocument(id=f.id, level=f.level, text=f.text, factors=list(f.factors))
            for f in findings
        ],
        verification=VerificationDocument.model_validate(verification),
    )
    return document.model_dump(by_alias=True, mode="json")


def layout_schema() -> str:
    """The JSON Schema of the document, as `layout.schema.json` holds it."""
    return json.dumps(LayoutDocument.model_json_schema(by_alias=True, mode="serialization"), indent=2) + "\n"


def layout_json(document: dict[str, Any]) -> str:
    """A document as text."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def comparison_document(
    documents: Sequence[dict[str, Any]], explanation: Explanation | None
) -> dict[str, Any]:
    """Layouts side by side, and two capacities explained, schema "culpa.layout-comparison/1"."""
    return {
        "schema": "culpa.layout-comparison/1",
        "layouts": list(documents),
        "explanation": None
        if explanation is None
        else {
            "blocks": list(explanation.blocks),
            "explained": explanation.explained,
            "sentences": list(explanation.sentences),
        },
    }


def _stage(plan: Plan, index: int) -> StageDocument:
    stage = plan.stages[index]
    held = stage.weights
    layers = stage.layers
    return StageDocument(
        layers=[layers.start, layers.stop - 1] if layers else [],
        full_attention=stage.full_attention,
        local_attention=stage.local_attention,
        recurrent=stage.recurrent,
        weight_bytes=held.total,
        weights={
            "layers": held.layers,
            "embedding": held.embedding,
            "head": held.head,
            "tower": held.tower,
            "mtp": held.drafting,
        },
        group_widths=list(stage.group_widths),
        bytes_per_block=stage.bytes_per_block,
        padding=round(stage.padding, 6),
        available_bytes=stage.available,
        num_blocks=stage.num_blocks,
        storage=_storage(plan, index) if plan.num_blocks is not None else [],
    )


def _storage(plan: Plan, index: int) -> list[dict[str, Any]]:
    """Where the layers of a stage lie, in the shape of the plan's release."""
    stage = plan.stages[index]
    if plan.settings.newer_shape:
        return [
            {
                "layers": [entry.layer for entry in place.entries],
                "layer_stride": place.layer_stride,
                "block_stride": place.block_stride,
                "offset": place.offset,
                "size": place.size,
            }
            for place in placements(plan, stage)
        ]
    return [
        {"shared_by": [entry.layer for entry in tensor.shared_by], "size": tensor.size}
        for tensor in shared_tensors(plan, stage)
    ]
