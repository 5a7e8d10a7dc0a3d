"""The shape of a model as far as layers, caches and weights need it.

Sizes are of the whole model, before TP.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

LayerKind = Literal[
    "full_attention",
    "sliding_attention",
    "chunked_attention",
    "linear_attention",
    "mamba",
    "conv",
    "hybrid",
    "mlp",
    "moe",
]
# Kinds that keep a recurrent state of fixed size, and kinds that keep keys and values.
RECURRENT: frozenset[LayerKind] = frozenset({"linear_attention", "mamba", "conv", "hybrid"})
ATTENTION: frozenset[LayerKind] = frozenset(
    {"full_attention", "sliding_attention", "chunked_attention", "hybrid"}
)

StateKind = Literal["gdn", "mamba1", "mamba2", "kda", "lightning", "short_conv"]


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads of one attention layer. With `latent` (MLA) one vector of `head_dim` is kept, and no values."""

    heads: int
    kv_heads: int
    head_dim: int
    latent: bool = False


@dataclass(frozen=True, slots=True)
class StateShape:
    """The recurrent state of one layer: the formula's name, its numbers, and the dtype that the model asks for."""

    kind: StateKind
    numbers: tuple[tuple[str, int], ...]
    dtype: str | None = None  # of the recurrent part; None where the engine takes that of the convolution

    def __getitem__(self, name: str) -> int:
        return dict(self.numbers)[name]


@dataclass(frozen=True, slots=True)
class Parameters:
    """Counts of parameters: `linear` ones may be quantised, `experts` (a part of them) by methods for experts only."""

    linear: int = 0
    experts: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.linear + self.experts + self.other

    def __add__(self, more: "Parameters") -> "Parameters":
        return Parameters(self.linear + more.linear, self.experts + more.experts, self.other + more.other)


@dataclass(frozen=True, slots=True)
class LayerShape:
    """One decoder layer."""

    kind: LayerKind
    parameters: Parameters
    attention: AttentionShape | None = None
    window: int | None = None  # of sliding attention, tokens
    chunk: int | None = None  # of chunked attention, tokens
    state: StateShape | None = None


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model, from its config.json."""

    family: str
    model_type: str
    architecture: str | None
    layers: tuple[LayerShape, ...]
    mtp_layers: tuple[LayerShape, ...] = ()
    hidden_size: int = 0
    vocab_size: int = 0
    embedding_parameters: int = 0
    tied_embeddings: bool = False
    embeds: Literal["all", "first", "tied"] = "first"
    head: Literal["all", "last"] = "last"
    other_parameters: int = 0  # a vision or audio tower, on the first stage
    context_tokens: int | None = None
    dtype: str = "bfloat16"
    quantization: str | None = None
    quantization_bits: float | None = None  # where the configuration itself says it
    fp8_cache: bool = False
    mamba_chunk: int = 2048
    known_family: bool = True
    pipeline: bool = True
    removed: str | None = None
    source: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def layer_types(self) -> tuple[LayerKind, ...]:
        """The kind of every decoder layer, in order; MTP layers are not among them."""
        return tuple(layer.kind for layer in self.layers)

    @property
    def period(self) -> int | None:
        """The smallest n after which the kinds repeat to the end, or None where they do not."""
        kinds = self.layer_types
        for size in range(1, len(kinds) // 2 + 1):
            if all(kind == kinds[index % size] for index, kind in enumerate(kinds)):
                return size
        return None

    @property
    def counts(self) -> dict[LayerKind, int]:
        """How many layers there are of each kind."""
        return dict(Counter(self.layer_types))

    @property
    def attention(self) -> AttentionShape | None:
        """The heads of the attention layers, drafting ones included; None where there are none."""
        layers = (*self.layers, *self.mtp_layers)
        return next((layer.attention for layer in layers if layer.attention is not None), None)

    @property
    def state(self) -> StateShape | None:
        """The state of the recurrent layers; None where there are none."""
        return next((layer.state for layer in self.layers if layer.state is not None), None)

    @property
    def hybrid(self) -> bool:
        """Whether some layer keeps a recurrent state."""
        return self.state is not None
