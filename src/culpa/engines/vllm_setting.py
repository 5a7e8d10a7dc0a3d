"""What a vLLM launch meets: the release, the model, the GPUs that it may see; and what makes sense there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from culpa.engines.vllm_install import Installation
from culpa.engines.vllm_model import ModelFacts
from culpa.layout.stages import default_partition

if TYPE_CHECKING:
    from culpa.host import Gpu

_GB = 1e9
_GIB = 1 << 30
DEFAULT_UTILIZATION = 0.92  # of a GPU's memory; 0.9 before 0.25


@dataclass(frozen=True)
class Setting:
    """Facts about one launch on one machine.

    `given` holds the levels as the launch writes them, `levels` the same with the engine's defaults filled in.
    """

    levels: Mapping[str, str]
    installation: Installation
    model: ModelFacts
    gpus: tuple["Gpu", ...]
    without_gpu: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    cpu_flags: frozenset[str] = frozenset()
    memory_share: float | None = (
        None  # of a memory node, for each rank of the CPU build that measures its cache
    )

    @property
    def has_graphs(self) -> bool:
        """Whether CUDA graphs exist here."""
        return bool(self.gpus) and not self.installation.cpu_build

    def level(self, name: str, default: str = "") -> str:
        """The launch's level of a factor."""
        return self.levels.get(name, default)

    def size(self, name: str, levels: Mapping[str, str] | None = None) -> int:
        """A parallel size as an integer: of the given levels, else of the launch, else 1."""
        text = (levels or {}).get(name) or self.levels.get(name, "1")
        return int(text) if text.isdigit() else 1

    def ranks(self, levels: Mapping[str, str] | None = None) -> int:
        """How many ranks one replica takes."""
        return self.size("pipeline_parallel_size", levels) * self.size("tensor_parallel_size", levels)

    def default_batch_tokens(self, levels: Mapping[str, str] | None = None) -> int:
        """vLLM's own `max_num_batched_tokens` for a server here (its `get_batch_defaults`)."""
        if not self.has_graphs:
            return 2048 * self.ranks(levels)
        memory = min(gpu.memory_bytes for gpu in self.gpus)
        if memory >= 160 * _GIB:
            return 16384
        return 8192 if memory >= 70 * _GIB and "A100" not in self.gpus[0].name.upper() else 2048

    def default_seqs(self, levels: Mapping[str, str] | None = None) -> int:
        """vLLM's own `max_num_seqs` for a server here (its `get_batch_defaults`)."""
        if not self.has_graphs:
            return 128 * self.ranks(levels)
        memory = min(gpu.memory_bytes for gpu in self.gpus)
        return 1024 if memory >= 70 * _GIB and "A100" not in self.gpus[0].name.upper() else 256

    def missing(self, need: str) -> str | None:
        """The reason why a fact that a factor needs does not hold here, or None."""
        model = self.model
        unknown = "the model's config.json is not on this machine, so it is not known whether this applies"
        if need == "gpu" and self.installation.cpu_build:
            return f"{self.installation.distribution} is built for machines without a GPU"
        if need == "gpu" and not self.gpus:
            return (
                f"there is no GPU here ({self.without_gpu})" if self.without_gpu else "there is no GPU here"
            )
        if need == "cpu_build" and self.has_graphs:
            return "only vLLM's CPU build reads it"
        if need == "several_ranks" and self.ranks() * self.size("data_parallel_size") < 2:
            return "there is only one rank"
        if need in ("hybrid", "gdn", "experts") and not model.known:
            return unknown
        if need == "hybrid" and not model.hybrid:
            return "the model has no layers with a recurrent state"
        if need == "gdn" and model.linear_family != "gdn":
            return "the model has no Gated DeltaNet layers"
        if need == "experts" and not model.experts:
            return "the model has no experts"
        return None

    def cannot_run(self, levels: Mapping[str, str]) -> str | None:
        """The reason why vLLM refuses these levels, or why they have no room here; None if they can run."""
        pipelined = self.size("pipeline_parallel_size", levels) > 1
        if pipelined and levels.get("model_runner") == "V1" and levels.get("async_scheduling") == "on":
            return "the V1 model runner does not schedule asynchronously with pipeline parallelism"
        share = self.size("tensor_parallel_size", levels)
        if self.model.heads is not None and self.model.heads % share:
            return f"{self.model.heads} attention heads can't be spread over {share} tensor-parallel ranks"
        return self.does_not_fit(levels)

    def does_not_fit(self, levels: Mapping[str, str]) -> str | None:
        """Why the ranks of these levels can't be placed on the GPUs, with the arithmetic, or None."""
        if not self.has_graphs:
            return None
        stages, share = self.size("pipeline_parallel_size", levels), self.size("tensor_parallel_size", levels)
        needed = stages * share * self.size("data_parallel_size", levels)
        if needed > len(self.gpus):
            return f"{needed} ranks need as many GPUs, and there are {len(self.gpus)}"
        offload = levels.get("cpu_offload", self.level("cpu_offload", "off"))
        if self.model.weight_bytes is None or offload != "off":
            return None
        memory = min(gpu.memory_bytes for gpu in self.gpus)
        usable = memory * self.utilization()
        weights = self.model.weight_bytes * self._fullest_stage(stages, levels) / share
        if weights <= usable:
            return None
        ranks = f"{stages * share} GPUs" if stages * share > 1 else "1 GPU"
        return (
            f"{self.model.weight_bytes / _GB:.1f} GB of weights over {ranks} put {weights / _GB:.1f} GB on one, "
            f"and vLLM may use {usable / _GB:.1f} GB of its {memory / _GB:.1f} GB"
        )

    def utilization(self) -> float:
        """The share of a GPU's memory that this launch lets vLLM use."""
        try:
            return float(self.level("gpu_memory_utilization", "default"))
        except ValueError:
            return DEFAULT_UTILIZATION

    def _fullest_stage(self, stages: int, levels: Mapping[str, str]) -> float:
        """The share of all weights on the fullest stage, taking every layer to be of one size."""
        layers = self.model.layers
        if stages == 1 or layers is None:
            return 1.0 / stages
        text = levels.get("pipeline_partition", self.level("pipeline_partition"))
        split = [int(part) for part in text.split(",")] if text.replace(",", "").isdigit() else []
        if len(split) != stages:
            split = list(default_partition(layers, stages))
        return max(split) / layers
