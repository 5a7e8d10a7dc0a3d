"""The plan of a launch: stages, cache groups and capacity of one model with one set of settings.

Closed form (checked against `get_kv_cache_configs`): with w_s the widest group of stage s in pages,
N = min over s of floor(available_s / (w_s * page)), one request takes P blocks, and the capacity is
floor(N / P * max_model_len) tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from culpa.layout.errors import BadLayout
from culpa.layout.groups import CacheGroup, blocks_per_request, form_groups
from culpa.layout.pages import Pages, plan_pages
from culpa.layout.settings import Settings
from culpa.layout.shape import RECURRENT, ModelShape
from culpa.layout.stages import check_partition, default_partition, stage_ranges
from culpa.layout.states import undivided
from culpa.layout.weights import StageWeights, TensorSize, Weights, weights_of

_MOST_STAGES = 1024
_LONGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage, on each of its tensor-parallel ranks. Bytes are of one rank.

    `group_widths` are the layers of each group on it, in the order of the groups; `available` is what is left
    for the cache, None where no memory is known.
    """

    index: int
    layers: range
    full_attention: int
    local_attention: int
    recurrent: int
    weights: StageWeights
    group_widths: tuple[int, ...]
    bytes_per_block: int
    used_bytes_per_block: int
    available: int | None = None
    num_blocks: int | None = None

    @property
    def padding(self) -> float:
        """The part of a block's bytes, over all groups, that holds nothing."""
        whole = self.bytes_per_block * len(self.group_widths)
        return 1 - self.used_bytes_per_block / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that can be computed before a launch. None where memory or blocks are not known."""

    shape: ModelShape
    settings: Settings
    partition: tuple[int, ...]
    pages: Pages
    weights: Weights
    groups: tuple[CacheGroup, ...]
    stages: tuple[Stage, ...]
    max_model_len: int
    block_size: int
    page_bytes: int
    bytes_per_block: int
    per_group: tuple[int, ...]
    num_blocks: int | None
    capacity_tokens: int | None
    limiting_stage: int | None
    refusal: str | None = None

    @property
    def blocks_per_request(self) -> int:
        """Blocks that one request of the longest length takes, over all groups."""
        return sum(self.per_group)

    @property
    def concurrency(self) -> float | None:
        """How many requests of the longest length fit at once."""
        if self.num_blocks is None or not self.blocks_per_request:
            return None
        return self.num_blocks / self.blocks_per_request


def make_plan(shape: ModelShape, settings: Settings, tensors: Mapping[str, TensorSize] | None = None) -> Plan:
    """Plan one launch.

    Raises BadLayout for what vLLM refuses before it looks at memory, and for contradictions.
    """
    _check(settings)
    stages = settings.pipeline_parallel_size
    partition = settings.partition or default_partition(len(shape.layers), stages)
    check_partition(partition, len(shape.layers), stages)
    pages = plan_pages(shape, settings)
    groups = form_groups(pages.entries, settings)
    weights = weights_of(shape, settings, tensors)
    length = _length(shape, settings)
    built = tuple(
        _stage(index, layers, stages, shape, settings, groups, weights)
        for index, layers in enumerate(stage_ranges(partition))
    )
    if settings.max_model_len == -1:
        length = _longest_that_fits(length, built, groups, pages, settings)
    per_group = tuple(blocks_per_request(group, length, pages.mode, settings) for group in groups)
    blocks, limiting = _blocks(built, settings)
    refusal = _undivided(shape, settings) or _refusal(built, groups, sum(per_group), length, settings)
    return Plan(
        shape=shape,
        settings=settings,
        partition=partition,
        pages=pages,
        weights=weights,
        groups=groups,
        stages=built,
        max_model_len=length,
        block_size=pages.block_size,
        page_bytes=groups[0].first.page_bytes if groups else 0,
        bytes_per_block=max((stage.bytes_per_block for stage in built), default=0),
        per_group=per_group,
        num_blocks=blocks,
        capacity_tokens=capacity(blocks, sum(per_group), length),
        limiting_stage=limiting,
        refusal=refusal,
    )


def capacity(blocks: int | None, per_request: int, length: int) -> int | None:
    """Tokens that fit into the cache, as vLLM prints them: requests of the longest length, times that length."""
    if blocks is None or not per_request:
        return None
    return int(blocks / per_request * length)  # in the engine's order of operations, so that it rounds alike


def _check(settings: Settings) -> None:
    if not 1 <= settings.pipeline_parallel_size <= _MOST_STAGES:
        raise BadLayout(
            f"pipeline-parallel-size {settings.pipeline_parallel_size}: give 1 or more stages, at most {_MOST_STAGES}"
        )
    if not 1 <= settings.tensor_parallel_size <= _MOST_STAGES:
        raise BadLayout(
            f"tensor-parallel-size {settings.tensor_parallel_size}: give 1 or more ranks, at most {_MOST_STAGES}"
        )
    for name, given in (("gpu-memory", settings.gpu_memory), ("kv-memory", settings.kv_memory)):
        if given is not None and len(given) not in (1, settings.pipeline_parallel_size):
            raise BadLayout(
                f"{name} has {len(given)} values, and there are {settings.pipeline_parallel_size} stages: "
                "give one "
                "for all or one for each"
            )
    sources = [settings.blocks is not None, settings.kv_memory is not None]
    if all(sources):
        raise BadLayout("blocks and kv-memory contradict each other: give one of them")
    if settings.blocks is not None and settings.blocks < 1:
        raise BadLayout(f"blocks {settings.blocks}: give 1 or more")
    if settings.block_size is not None and settings.block_size < 1:
        raise BadLayout(f"block-size {settings.block_size}: give 1 or more tokens")
    if settings.speculative_tokens < 0:
        raise BadLayout(f"speculative tokens {settings.speculative_tokens}: give 0 or more")
    if not 0 < settings.share <= 1:
        raise BadLayout(f"gpu-memory-utilization {settings.share}: give a share above 0 and up to 1")


def _length(shape: ModelShape, settings: Settings) -> int:
    given = settings.max_model_len
    length = given if given not in (None, -1) else shape.context_tokens
    if length is None:
        raise BadLayout("config.json gives no max_position_embeddings: say --max-model-len")
    if not 0 < length < _LONGEST:
        raise BadLayout(f"max-model-len {length}: give 1 or more tokens (or -1 for the longest that fits)")
    return length


def _stage(
    index: int,
    layers: range,
    stages: int,
    shape: ModelShape,
    settings: Settings,
    groups: tuple[CacheGroup, ...],
    weights: Weights,
) -> Stage:
    kinds = [shape.layers[layer].kind for layer in layers if 0 <= layer < len(shape.layers)]
    here = [group.on(layers, index == stages - 1) for group in groups]
    sizes = [sum(entry.page_bytes for entry in entries) for entries in here]
    held = weights.stage(shape, layers, index, stages)
    bytes_per_block = max(sizes, default=0)
    available = _available(index, held, settings)
    blocks = available // bytes_per_block if available is not None and bytes_per_block else None
    return Stage(
        index=index,
        layers=layers,
        full_attention=sum(kind in ("full_attention", "hybrid") for kind in kinds),
        local_attention=sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds),
        recurrent=sum(kind in RECURRENT for kind in kinds),
        weights=held,
        group_widths=tuple(len(entries) for entries in here),
        bytes_per_block=bytes_per_block,
        used_bytes_per_block=sum(entry.raw_bytes for entries in here for entry in entries),
        available=available,
        num_blocks=max(0, blocks) if blocks is not None else None,
    )


def _available(index: int, held: StageWeights, settings: Settings) -> int | None:
    if settings.kv_memory is not None:
        return settings.kv_memory[index if len(settings.kv_memory) > 1 else 0]
    if settings.gpu_memory is None:
        return None
    memory = settings.gpu_memory[index if len(settings.gpu_memory) > 1 else 0]
    return int(memory * settings.share) - held.total - settings.overhead


def _blocks(stages: tuple[Stage, ...], settings: Settings) -> tuple[int | None, int | None]:
    """The blocks that every stage can have, and the stage that limits them (the first of equal ones)."""
    counted = [stage for stage in stages if stage.num_blocks is not None]
    limiting = min(counted, key=lambda stage: stage.num_blocks or 0).index if counted else None
    if settings.blocks is not None:
        if limiting is None and any(stage.bytes_per_block for stage in stages):
            # Equal memory on all stages: the one that needs most of it for so many blocks.
            fullest = max(
                stages, key=lambda stage: stage.weights.total + (settings.blocks or 0) * stage.bytes_per_block
            )
            limiting = fullest.index
        return settings.blocks, limiting
    if not counted:
        return None, None
    return min(stage.num_blocks or 0 for stage in counted), limiting


def _undivided(shape: ModelShape, settings: Settings) -> str | None:
    """What tensor parallelism does not divide, which ends vLLM when it makes the layers."""
    tp = settings.tensor_parallel_size
    found = list(undivided(shape.state, tp)) if shape.state is not None else []
    attention = shape.attention
    if attention is not None and attention.heads % tp:
        found.append(f"{attention.heads} attention heads")
    if attention is not None and not attention.latent:
        few, many = sorted((attention.kv_heads, tp))
        if many % few:
            found.append(f"{attention.kv_heads} key-value heads")
    return f"{' and '.join(found)} can't be divided by {tp} tensor-parallel ranks" if found else None


def _refusal(
    stages: tuple[Stage, ...],
    groups: tuple[CacheGroup, ...],
    per_request: int,
    length: int,
    settings: Settings,
) -> str | None:
    """Why vLLM ends at start-up when it plans its cache, or None (`_check_enough_kv_cache_memory`)."""
    if not groups:
        return "no layer of the model keeps a cache: vLLM divides by its zero blocks per request"
    for stage in stages:
        if not stage.bytes_per_block:
            return f"stage {stage.index} has no layer with a cache: vLLM divides by its zero bytes per block"
    for stage in stages:
        memory = stage.available
        if settings.blocks is not None:
            memory = settings.blocks * stage.bytes_per_block
        if memory is None:
            continue
        # Since 0.30 the null block is left out of the count.
        usable = memory - (stage.bytes_per_block if settings.newer_shape else 0)
        needed = per_request * stage.bytes_per_block
        if usable <= 0 or needed > usable:
            return (
                f"stage {stage.index} has {max(0, usable):,} bytes for its cache, and one request of "
                f"{length:,} tokens "
                f"takes {per_request:,} blocks of {stage.bytes_per_block:,} bytes = {needed:,}"
            )
    return None


def _longest_that_fits(
    longest: int,
    stages: tuple[Stage, ...],
    groups: tuple[CacheGroup, ...],
    pages: Pages,
    settings: Settings,
) -> int:
    """What vLLM makes of `--max-model-len -1`: the longest request that every stage can hold."""

    def fits(length: int) -> bool:
        per = sum(blocks_per_request(group, length, pages.mode, settings) for group in groups)
        return _refusal(stages, groups, per, length, settings) is None

    if not fits(1):
        return longest  # the refusal is reported with the model's own length
    low, high = 1, longest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
