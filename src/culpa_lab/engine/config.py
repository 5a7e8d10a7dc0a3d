"""The engine's settings after all defaults are worked out."""

from dataclasses import dataclass
from pathlib import Path

VERSION = "0.{build}.0"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What the engine runs with. Flags of the same names set it (`culpa_lab.cli`).

    `partition` is layers per stage. `capture_sizes` are batch sizes of captured decode steps, ascending; empty
    where execution is eager. `faults` are (name, rate) as given, and `armed` those that
    are active in this launch. `seed` is None if the user gave none.
    """

    model: Path
    served_model_name: str
    partition: tuple[int, ...]
    dtype: str = "float32"
    max_model_len: int = 32768
    enforce_eager: bool = False
    cudagraph_mode: str = "FULL_AND_PIECEWISE"
    capture_sizes: tuple[int, ...] = (1, 2, 4, 8)
    enable_prefix_caching: bool = True
    mamba_cache_mode: str = "align"
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 8
    block_size: int = 256
    num_gpu_blocks_override: int | None = None
    gpu_memory_utilization: float = 0.92
    async_scheduling: bool = True
    enable_chunked_prefill: bool = True
    seed: int | None = None
    enable_prompt_tokens_details: bool = False
    faults: tuple[tuple[str, float], ...] = ()
    armed: tuple[str, ...] = ()
    build: int = 64
    kernel_log: Path | None = None
    launch_blocking: bool = False

    @property
    def stages(self) -> int:
        """Pipeline stages, one worker process each."""
        return len(self.partition)

    @property
    def depth(self) -> int:
        """Steps that may be in flight."""
        return self.stages + 1 if self.async_scheduling else self.stages

    @property
    def graphs(self) -> bool:
        """Whether anything is captured."""
        return not self.enforce_eager and self.cudagraph_mode != "NONE"

    @property
    def decode_graphs(self) -> bool:
        """Whether whole decode steps are captured."""
        return self.graphs and self.cudagraph_mode != "PIECEWISE" and bool(self.capture_sizes)

    @property
    def prefill_graphs(self) -> bool:
        """Whether pieces of prompts are captured."""
        return self.graphs and self.cudagraph_mode != "FULL_DECODE_ONLY"

    @property
    def version(self) -> str:
        """The engine's version as it is printed."""
        return VERSION.format(build=self.build)

    def layers(self, stage: int) -> tuple[int, int]:
        """The layers of a stage: first, and one past the last."""
        first = sum(self.partition[:stage])
        return first, first + self.partition[stage]
