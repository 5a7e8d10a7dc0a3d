"""What each layer keeps in the cache: blocks of tokens or states, and the page of bytes that one block takes.

Follows `Platform._align_hybrid_block_size` (https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/platforms/interface.py):
the attention block grows until its page holds a whole recurrent state, and the state's page is padded to it.
"""

from dataclasses import dataclass
from math import lcm
from typing import Literal

from culpa.layout.dtypes import CACHE_DTYPES, dtype_bytes, is_dtype
from culpa.layout.engine import find_backend
from culpa.layout.errors import BadLayout
from culpa.layout.settings import DEFAULT_BLOCK, MambaCacheMode, Settings
from culpa.layout.shape import AttentionShape, LayerKind, LayerShape, ModelShape
from culpa.layout.states import StatePart, state_parts

EntryKind = Literal["full", "sliding", "chunked", "latent", "state"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One layer's share of the cache. A hybrid layer has two of them, attention first.

    `type` is the kind of layer that it would be the whole cache of.
    `raw_bytes` is what one block needs, `page_bytes` what it takes after padding. `window` holds tokens of a
    sliding window or of a chunk. `allocated_whole` marks a local layer that is kept like a full one.
    """

    layer: int
    kind: EntryKind
    type: LayerKind
    block_size: int
    raw_bytes: int
    page_bytes: int
    heads: int = 0
    head_dim: int = 0
    window: int | None = None
    parts: tuple[StatePart, ...] = ()
    drafting: bool = False


@dataclass(frozen=True, slots=True)
class Pages:
    """Block and pages of a model before layers are grouped.

    `token_bytes` is what one attention layer keeps of one token, `state_bytes` one recurrent state; either is 0
    where the model has no such layer. `mode` is the mamba cache mode in force.
    """

    entries: tuple[Entry, ...]
    block_size: int
    asked_block: int
    kernel_block: int
    token_bytes: int
    state_bytes: int
    page_bytes: int
    mode: MambaCacheMode

    @property
    def state_padding(self) -> float:
        """The part of a state's page that is padding, in [0, 1)."""
        return 1 - self.state_bytes / self.page_bytes if self.state_bytes and self.page_bytes else 0.0


def cache_dtype(shape: ModelShape, settings: Settings) -> str:
    """The dtype of keys and values. Raises BadLayout for one whose page is not known here."""
    wanted = settings.kv_cache_dtype
    if wanted not in CACHE_DTYPES:
        raise BadLayout(
            f"kv-cache-dtype {wanted}: how large its pages are is not known here (known: "
            f"{', '.join(CACHE_DTYPES)})"
        )
    if wanted != "auto":
        return wanted
    return "fp8" if shape.fp8_cache else model_dtype(shape, settings)


def model_dtype(shape: ModelShape, settings: Settings) -> str:
    """The dtype of activations and of weights that are not quantised. Raises BadLayout."""
    if settings.dtype in (None, "auto"):
        return shape.dtype
    assert settings.dtype is not None
    dtype_bytes(settings.dtype)
    return settings.dtype


def mamba_mode(settings: Settings) -> MambaCacheMode:
    """The mamba cache mode in force, as `MambaModelConfig` sets it: `align` with prefix caching, else `none`."""
    caching = settings.prefix_caching
    if caching is None:
        caching = settings.mamba_cache_mode != "none"
    if not caching:
        return "none"
    if settings.mamba_cache_mode in (None, "none"):
        return "align"
    assert settings.mamba_cache_mode is not None
    return settings.mamba_cache_mode


def plan_pages(shape: ModelShape, settings: Settings) -> Pages:
    """Block size, pages and every layer's entry.

    Raises BadLayout for a dtype or a block whose size is not known here.
    """
    tp = settings.tensor_parallel_size
    attention = shape.attention
    parts = _state_parts(shape, settings)
    state_bytes = sum(part.bytes for part in parts)
    element = dtype_bytes(cache_dtype(shape, settings))
    token = _token_bytes(attention, tp, element) if attention is not None else 0
    backend = find_backend(settings.attention_backend)
    smallest = backend.smallest if backend is not None else DEFAULT_BLOCK
    asked = settings.block_size or max(settings.default_block, smallest)
    mode = mamba_mode(settings) if shape.hybrid else "none"
    block = asked
    page = block * token
    if state_bytes and token:
        step = max(smallest, asked)
        if attention is not None and attention.latent:
            step = max(step, 128)
        block = max(asked, _aligned_block(state_bytes, token, step, smallest, mode, shape, settings))
        page = block * token
    elif state_bytes:
        page = state_bytes
    state_page = page if state_bytes and token else state_bytes
    entries: list[Entry] = []
    for index, layer in enumerate((*shape.layers, *drafting_layers(shape, settings))):
        drafting = index >= len(shape.layers)
        entries += _entries(layer, index, tp, element, block, parts, state_page, drafting)
    return Pages(tuple(entries), block, asked, smallest, token, state_bytes, page, mode)


def drafting_layers(shape: ModelShape, settings: Settings) -> tuple[LayerShape, ...]:
    """The model's own MTP layers, where the launch drafts with them; they stand on the last stage."""
    method = settings.speculative_method or ""
    own = method in ("mtp", "") or method.endswith("_mtp") or method == "deepseek_mtp"
    return shape.mtp_layers if settings.speculative_tokens and own else ()


def _aligned_block(
    state_bytes: int,
    token: int,
    step: int,
    smallest: int,
    mode: MambaCacheMode,
    shape: ModelShape,
    settings: Settings,
) -> int:
    """The smallest block, in whole steps, whose attention page holds a state."""
    if mode == "all":
        # Before 0.30: blocks of whole chunks of the scan.
        chunk = lcm(shape.mamba_chunk, step)
        return chunk * -(-_ceil(state_bytes, token) // chunk)
    block = step * _ceil(state_bytes, step * token)
    return smallest * _ceil(block, smallest) if settings.newer_shape else block


def _state_parts(shape: ModelShape, settings: Settings) -> tuple[StatePart, ...]:
    state = shape.state
    if state is None:
        return ()
    model = model_dtype(shape, settings)
    conv = settings.mamba_cache_dtype if settings.mamba_cache_dtype != "auto" else model
    recurrent = settings.mamba_ssm_cache_dtype
    if recurrent == "auto":
        recurrent = state.dtype or conv
    if state.kind == "kda":
        if not settings.newer_shape:
            recurrent = "float32"  # older releases keep nothing else
        elif recurrent not in ("float32", "bfloat16"):
            raise BadLayout(f"mamba-ssm-cache-dtype {recurrent}: KDA layers take float32 and bfloat16")
    for name in (conv, recurrent):
        if not is_dtype(name):
            raise BadLayout(f"dtype {name} of the recurrent state is not known here")
    return state_parts(state, settings.tensor_parallel_size, settings.speculative_tokens, conv, recurrent)


def _token_bytes(attention: AttentionShape, tp: int, element: int) -> int:
    if attention.latent:
        return attention.head_dim * element
    return 2 * _kv_heads(attention, tp) * attention.head_dim * element


def _kv_heads(attention: AttentionShape, tp: int) -> int:
    return 1 if attention.latent else max(1, attention.kv_heads // tp)


def _entries(
    layer: LayerShape,
    index: int,
    tp: int,
    element: int,
    block: int,
    parts: tuple[StatePart, ...],
    state_page: int,
    drafting: bool,
) -> list[Entry]:
    made: list[Entry] = []
    if layer.attention is not None:
        page = block * _token_bytes(layer.attention, tp, element)
        kind: EntryKind = "full"
        if layer.attention.latent:
            kind = "latent"
        elif layer.kind == "sliding_attention":
            kind = "sliding"
        elif layer.kind == "chunked_attention":
            kind = "chunked"
        made.append(
            Entry(
                index,
                kind,
                "full_attention" if layer.kind == "hybrid" else layer.kind,
                block,
                page,
                page,
                _kv_heads(layer.attention, tp),
                layer.attention.head_dim,
                layer.window or layer.chunk,
                drafting=drafting,
            )
        )
    if layer.state is not None:
        size = sum(part.bytes for part in parts)
        type_: LayerKind = "mamba" if layer.kind == "hybrid" else layer.kind
        made.append(Entry(index, "state", type_, block, size, max(size, state_page), parts=parts))
    return made


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
