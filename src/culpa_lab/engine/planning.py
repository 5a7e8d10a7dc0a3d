"""How many cache blocks fit on the pseudo GPUs, by vLLM's arithmetic."""

from collections.abc import Sequence

from culpa_lab.engine.cache_groups import (
    FULL,
    GDN,
    CacheGroup,
    blocks_per_request,
    capacity_tokens,
    stage_width,
)
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.logs import log
from culpa_lab.model import ModelConfig

DEVICE_BYTES = 384 << 20
"""Memory of a pseudo GPU."""


def attention_page_floats(model: ModelConfig, block_size: int) -> int:
    """Floats of one full-attention layer's page: keys and values of a block's tokens."""
    heads, width = model.kv_shape_per_token
    return 2 * block_size * heads * width


def state_page_floats(model: ModelConfig) -> int:
    """Floats of one GDN layer's page: the convolution's inputs and the recurrent state of a request."""
    channels, kernel = model.conv_state_shape
    heads, key, value = model.recurrent_state_shape
    return channels * kernel + heads * key * value


def page_floats(model: ModelConfig, block_size: int) -> int:
    """Floats of a page, whatever it holds; see `unified_block_size`."""
    attention = attention_page_floats(model, block_size) if FULL in model.layer_types else 0
    return max(attention, state_page_floats(model) if GDN in model.layer_types else 0)


def unified_block_size(model: ModelConfig, block_size: int) -> int:
    """The block size at which an attention page is no smaller than a state page: a multiple of 16."""
    if FULL not in model.layer_types or GDN not in model.layer_types:
        return block_size
    per_token = attention_page_floats(model, 1)
    needed = -(-state_page_floats(model) // per_token)
    return max(block_size, -(-needed // 16) * 16)


def plan_blocks(
    config: EngineConfig, model: ModelConfig, groups: Sequence[CacheGroup], weight_bytes: Sequence[int]
) -> int:
    """Blocks that every stage has room for. Raises BadLaunch if they don't hold one request of full length."""
    page = 4 * page_floats(model, config.block_size)
    blocks = 0
    for rank in range(config.stages):
        activations = 16 * config.max_num_batched_tokens * model.hidden_size
        free = int(config.gpu_memory_utilization * DEVICE_BYTES) - weight_bytes[rank] - activations
        width = stage_width(groups, *config.layers(rank))
        log.info(
            f"Available KV cache memory of rank {rank}: {free / (1 << 30):.2f} GiB, {width} pages a block"
        )
        fits = max(0, free // (width * page))
        blocks = fits if rank == 0 else min(blocks, fits)
    if config.num_gpu_blocks_override is not None:
        log.info(
            f"Overriding num_gpu_blocks={blocks} with num_gpu_blocks_override={config.num_gpu_blocks_override}"
        )
        blocks = config.num_gpu_blocks_override
    needed = blocks_per_request(groups, config.max_model_len, config.block_size, config.mamba_cache_mode)
    if blocks - 1 < needed:
        raise BadLaunch(
            f"To serve at least one request with the model's max seq len ({config.max_model_len}), {needed} cache "
            f"blocks are needed, which is larger than the available KV cache memory ({blocks - 1} blocks). Try "
            "increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
        )
    tokens = capacity_tokens(groups, blocks, config.max_model_len, config.block_size, config.mamba_cache_mode)
    log.info(f"GPU KV cache size: {tokens:,} tokens")
    log.info(
        f"Maximum concurrency for {config.max_model_len:,} tokens per request: {tokens / config.max_model_len:.2f}x"
    )
    return blocks
