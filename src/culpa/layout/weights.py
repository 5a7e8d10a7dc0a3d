"""Bytes of weights: of a layer, and of everything that a stage holds, on one tensor-parallel rank.

Estimated from the configuration, or measured where the sizes of the checkpoint's tensors are known.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from culpa.layout.dtypes import dtype_bytes
from culpa.layout.engine import find_quantization
from culpa.layout.pages import drafting_layers, model_dtype
from culpa.layout.settings import Settings
from culpa.layout.shape import ModelShape, Parameters

_SCALE_BITS = 20  # a 16-bit scale and a 4-bit zero point for each group
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d{1,5})\.")
_ASIDE = re.compile(
    r"(?:^|\.)(?:visual|vision|audio|vision_tower|vision_model|multi_modal_projector)(?:\.|_)"
)
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embeddings|tok_embeddings)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|output|embed_out)\.")
_DRAFTS = re.compile(r"(?:^|\.)mtp\.")


@dataclass(frozen=True, slots=True)
class TensorSize:
    """Bytes of a tensor on disk, and its dtype where that is one of floating-point numbers that are not quantised."""

    bytes: int
    dtype: str | None = None

    def loaded(self, plain: int) -> int:
        """Bytes once it is loaded in a dtype of `plain` bytes; what is quantised stays as it is."""
        return self.bytes if self.dtype is None else self.bytes * plain // dtype_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes on one rank: of each layer, of each drafting layer, and of what stands outside the layers."""

    layers: tuple[int, ...]
    drafting: tuple[int, ...]
    embedding: int
    head: int
    tower: int
    measured: bool = False

    def stage(self, shape: ModelShape, layers: range, index: int, stages: int) -> "StageWeights":
        """What a stage holds."""
        first, last = index == 0, index == stages - 1
        embeds = shape.embeds == "all" or first or (shape.embeds == "tied" and last and shape.tied_embeddings)
        heads = shape.head == "all" or last
        # A tied head is the embedding itself where that is there, else a copy of it.
        head = (
            0 if shape.tied_embeddings and embeds else self.embedding if shape.tied_embeddings else self.head
        )
        return StageWeights(
            layers=sum(self.layers[layer] for layer in layers if 0 <= layer < len(self.layers)),
            drafting=sum(self.drafting) if last else 0,
            embedding=self.embedding if embeds else 0,
            head=head if heads else 0,
            tower=self.tower if first else 0,
        )


@dataclass(frozen=True, slots=True)
class StageWeights:
    """Bytes of one stage on one rank, by what they belong to."""

    layers: int
    drafting: int
    embedding: int
    head: int
    tower: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.layers + self.drafting + self.embedding + self.head + self.tower


def weights_of(
    shape: ModelShape, settings: Settings, tensors: Mapping[str, TensorSize] | None = None
) -> Weights:
    """Bytes of all parts. `tensors` are the sizes of a checkpoint's tensors by name, if they are known."""
    tp = settings.tensor_parallel_size
    drafting = drafting_layers(shape, settings)
    plain = dtype_bytes(model_dtype(shape, settings))
    measured = _measured(shape, tensors, tp, plain) if tensors else None
    if measured is not None:
        return Weights(
            measured.layers,
            measured.drafting if drafting else (),
            measured.embedding,
            measured.head,
            measured.tower,
            True,
        )
    outside = -(-shape.embedding_parameters * plain // tp)
    return Weights(
        layers=tuple(layer_bytes(layer.parameters, shape, settings) for layer in shape.layers),
        drafting=tuple(layer_bytes(layer.parameters, shape, settings) for layer in drafting),
        embedding=outside,
        head=outside,
        tower=shape.other_parameters * plain,
    )


def layer_bytes(parameters: Parameters, shape: ModelShape, settings: Settings) -> int:
    """Bytes of a layer's parameters on one rank, with the quantisation of the launch or of the checkpoint."""
    plain = dtype_bytes(model_dtype(shape, settings))
    name = settings.quantization or shape.quantization
    method = find_quantization(name)
    bits = float(8 * plain)
    experts_only = False
    if name is not None and (method is not None or shape.quantization_bits):
        bits = shape.quantization_bits or (method.bits if method is not None else bits)
        group = method.group if method is not None else None
        bits += _SCALE_BITS / group if group is not None else 0.0
        experts_only = method is not None and method.experts_only
    linear_bits = 8.0 * plain if experts_only else bits
    total = parameters.linear * linear_bits / 8 + parameters.experts * bits / 8 + parameters.other * plain
    return -(-int(total) // settings.tensor_parallel_size)


def _measured(shape: ModelShape, tensors: Mapping[str, TensorSize], tp: int, plain: int) -> Weights | None:
    """The checkpoint's own sizes; None where its names do not tell layers, or where layers are missing."""
    layers = [0] * len(shape.layers)
    drafting = [0] * len(shape.mtp_layers)
    embedding = head = tower = 0
    for name, tensor in tensors.items():
        size = tensor.loaded(plain)
        found = _LAYER.search(name)
        if _ASIDE.search(name):
            tower += size
        elif _DRAFTS.search(name):
            if drafting:
                drafting[0] += size
        elif found is not None:
            index = int(found[1])
            if index < len(layers):
                layers[index] += size
            elif index - len(layers) < len(drafting):
                drafting[index - len(layers)] += size
        elif _EMBEDDING.search(name):
            embedding += size
        elif _HEAD.search(name):
            head += size
    if not all(layers) or not embedding:
        return None
    return Weights(
        tuple(-(-size // tp) for size in layers),
        tuple(-(-size // tp) for size in drafting),
        -(-embedding // tp),
        -(-(head or embedding) // tp),
        tower,
        True,
    )
