"""What a launch says that changes the plan of its caches. None means: not given, so the engine's own default."""

from dataclasses import dataclass
from typing import Literal

MambaCacheMode = Literal["none", "all", "align"]
NEWEST = (0, 32, 0)
# The first release whose planner has the newer shape (one allocation, null block left out, no mode `all`).
NEWER_SHAPE = (0, 30)
DEFAULT_UTILIZATION, OLD_UTILIZATION = 0.92, 0.9
NEW_UTILIZATION_SINCE = (0, 25)
DEFAULT_BATCH_TOKENS = 8192
DEFAULT_OVERHEAD = 2 << 30
DEFAULT_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Flags and variables of a launch, and what is known of the memory.

    `blocks` is a number of cache blocks that is known or forced (`--num-gpu-blocks-override`); `kv_memory` are
    bytes for the cache on one rank of each stage; `gpu_memory` are bytes of the GPUs, one for each stage or
    one for all, of which `utilization` is used, less the weights and `overhead` bytes (activations, graphs).
    """

    pipeline_parallel_size: int = 1
    partition: tuple[int, ...] | None = None
    tensor_parallel_size: int = 1
    max_model_len: int | None = None
    block_size: int | None = None
    default_block: int = DEFAULT_BLOCK
    attention_backend: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    prefix_caching: bool | None = None
    mamba_cache_mode: MambaCacheMode | None = None
    speculative_tokens: int = 0
    speculative_method: str | None = None
    hybrid_manager: bool = True
    async_scheduling: bool | None = None
    v2_runner: bool | None = None
    max_num_batched_tokens: int | None = None
    blocks: int | None = None
    kv_memory: tuple[int, ...] | None = None
    gpu_memory: tuple[int, ...] | None = None
    utilization: float | None = None
    overhead: int = DEFAULT_OVERHEAD
    prompt_tokens: int | None = None
    engine_version: tuple[int, ...] = NEWEST
    not_modelled: tuple[str, ...] = ()

    @property
    def newer_shape(self) -> bool:
        """Whether the planner is that of vLLM 0.30 and later."""
        return self.engine_version >= NEWER_SHAPE

    @property
    def version_text(self) -> str:
        """The release as people write it."""
        return ".".join(str(part) for part in self.engine_version)

    @property
    def share(self) -> float:
        """The share of a GPU's memory that vLLM uses."""
        if self.utilization is not None:
            return self.utilization
        return DEFAULT_UTILIZATION if self.engine_version >= NEW_UTILIZATION_SINCE else OLD_UTILIZATION

    @property
    def concurrent_batches(self) -> int:
        """Batches in flight at once (`VllmConfig.max_concurrent_batches`)."""
        stages = self.pipeline_parallel_size
        v2 = self.v2_runner if self.v2_runner is not None else self.newer_shape
        # Asynchronous scheduling is the default where the runner can do it.
        asynchronous = self.async_scheduling if self.async_scheduling is not None else (v2 or stages == 1)
        if asynchronous and v2:
            return stages + 1
        return 2 if asynchronous and stages <= 1 else stages

    @property
    def in_flight_tokens(self) -> int:
        """Tokens that are scheduled and not yet settled, at most."""
        return self.concurrent_batches * (self.max_num_batched_tokens or DEFAULT_BATCH_TOKENS)
