"""Findings on settings: what switches what off, what a kernel can't take, what changed between releases."""

from collections.abc import Callable, Iterator

from culpa.layout import words
from culpa.layout.engine import find_backend, version_note
from culpa.layout.finding import Finding
from culpa.layout.plan import Plan
from culpa.layout.settings import DEFAULT_BATCH_TOKENS
from culpa.layout.words import plural


def _block(plan: Plan) -> Iterator[Finding]:
    settings, pages = plan.settings, plan.pages
    backend = find_backend(settings.attention_backend)
    if settings.attention_backend is not None and backend is None:
        yield Finding(
            "not_modelled",
            "note",
            f"attention backend {settings.attention_backend[:60]}: the block sizes of its kernels are not "
            "known here, multiples "
            "of 16 are assumed",
            ("attention_backend",),
        )
    if settings.block_size is not None:
        sizes = backend.sizes if backend is not None and backend.sizes else []
        step = (backend.multiple if backend is not None else None) or 16
        takes = backend.takes(pages.block_size) if backend is not None else pages.block_size % step == 0
        if not takes:
            name = backend.name if backend is not None else "all usual backends"
            wanted = f"blocks of {words.listing(sizes)} tokens" if sizes else f"multiples of {step} tokens"
            yield Finding(
                "kernel_block_size",
                "error",
                f"blocks of {pages.block_size} tokens (--block-size {settings.block_size}): the kernels "
                f"of {name} take "
                f"{wanted}, and {pages.block_size} = {pages.block_size // step} x {step} + "
                f"{pages.block_size % step}",
                ("block_size",),
            )
    if pages.block_size > pages.asked_block:
        given = (
            f"--block-size {settings.block_size}"
            if settings.block_size
            else f"a block of {pages.asked_block}"
        )
        need = -(-pages.state_bytes // pages.token_bytes)
        yield Finding(
            "block_size_raised",
            "warning" if settings.block_size else "note",
            f"{given} becomes {pages.block_size} tokens: one recurrent state is {pages.state_bytes:,} "
            "bytes, one token of "
            f"attention {pages.token_bytes:,}, so a page must span {need:,} tokens, in steps of "
            f"{max(pages.kernel_block, pages.asked_block)}. Prefix-cache hits come in blocks of that size",
            ("block_size",),
        )


def _tensor_parallel(plan: Plan) -> Iterator[Finding]:
    attention, tp = plan.shape.attention, plan.settings.tensor_parallel_size
    if (
        attention is not None
        and not attention.latent
        and tp > attention.kv_heads
        and tp % attention.kv_heads == 0
    ):
        yield Finding(
            "kv_heads_repeated",
            "note",
            f"{plural(attention.kv_heads, 'key-value head')} on {tp} tensor-parallel ranks: each is kept "
            f"{tp // attention.kv_heads} times, so more ranks add no room for tokens",
            ("tensor_parallel_size",),
        )
    state = plan.shape.state
    if state is not None and state.kind == "mamba2" and state["groups"] % tp:
        yield Finding(
            "state_groups_repeated",
            "note",
            f"{plural(state['groups'], 'group')} of the recurrent state on {tp} tensor-parallel ranks: "
            "groups are repeated",
            ("tensor_parallel_size",),
        )


def _modes(plan: Plan) -> Iterator[Finding]:
    settings, shape = plan.settings, plan.shape
    asked, caching = settings.mamba_cache_mode, settings.prefix_caching
    if not shape.hybrid:
        if asked not in (None, "none"):
            yield _conflict(
                f"--mamba-cache-mode {asked} has no effect: the model has no recurrent layers",
                "prefix_caching",
            )
        return
    if caching is False and asked not in (None, "none"):
        yield _conflict(
            f"--mamba-cache-mode {asked} is set back to none, because prefix caching is off", "prefix_caching"
        )
    if caching and asked == "none":
        yield _conflict(
            "--mamba-cache-mode none becomes align, because prefix caching is on", "prefix_caching"
        )
    if caching is None and asked == "none":
        yield _conflict(
            "--mamba-cache-mode none is planned as it is, with prefix caching off; where prefix caching "
            "is left on, its default, "
            "vLLM makes it align",
            "prefix_caching",
        )
    if plan.pages.mode == "all" and settings.newer_shape:
        note = version_note("mode_all")
        yield Finding(
            "settings_conflict",
            "error",
            f"--mamba-cache-mode all: {note.newer}. The numbers are those of releases before "
            f"{note.before} ({note.source})",
            ("prefix_caching",),
        )
    ssm = settings.mamba_ssm_cache_dtype
    state = shape.state
    if state is not None and ssm != "auto" and state.dtype is not None and ssm != state.dtype:
        yield _conflict(
            f"--mamba-ssm-cache-dtype {ssm} goes against the model, which asks for {state.dtype}",
            "mamba_ssm_cache_dtype",
        )


def _others(plan: Plan) -> Iterator[Finding]:
    settings, shape = plan.settings, plan.shape
    stages = settings.pipeline_parallel_size
    if settings.async_scheduling and settings.v2_runner is False and stages > 1:
        yield _conflict(
            "--async-scheduling is set back: the V1 model runner does not schedule asynchronously with "
            "pipeline stages",
            "async_scheduling",
        )
    if settings.speculative_tokens and settings.speculative_method == "mtp" and not shape.mtp_layers:
        yield _conflict(
            "speculative decoding with method mtp, and config.json gives no MTP layers (mtp_num_hidden_layers)",
            "speculative_decoding",
        )
    if settings.kv_cache_dtype == "auto" and shape.fp8_cache:
        yield Finding(
            "fp8_cache_by_checkpoint",
            "note",
            "the checkpoint itself asks for an fp8 KV cache: leaving out --kv-cache-dtype does not turn it off",
            ("kv_cache_dtype",),
        )
    if stages > 1 and not shape.pipeline:
        yield Finding(
            "no_pipeline",
            "error",
            f"vLLM's class for {shape.family} can't be spread over pipeline stages, and the launch asks "
            f"for {stages}",
            ("pipeline_parallel_size",),
        )
    if shape.removed is not None and settings.engine_version > _numbers(shape.removed):
        yield Finding(
            "class_removed",
            "error",
            f"vLLM has no class for {shape.family} since {shape.removed}; this launch is planned for "
            f"{settings.version_text}",
            ("engine_version",),
        )
    if settings.max_num_batched_tokens is None and any(
        entry.kind in ("sliding", "chunked") for entry in plan.pages.entries
    ):
        yield Finding(
            "batch_tokens_assumed",
            "note",
            f"groups of local attention keep room for tokens in flight: {settings.concurrent_batches} "
            "batches of "
            f"{DEFAULT_BATCH_TOKENS:,} tokens, since --max-num-batched-tokens is not given and its "
            "default depends on the GPU",
            ("max_num_batched_tokens",),
        )
    for what in settings.not_modelled:
        yield Finding(
            "not_modelled", "warning", f"{what} changes the plan in ways that are not computed here"
        )


def _versions(plan: Plan) -> Iterator[Finding]:
    """What changed on the way from layers to cache, where it matters to this plan."""
    wanted = []
    if len(plan.groups) > 1:
        wanted.append("storage")
    if plan.shape.hybrid and plan.settings.pipeline_parallel_size > 1:
        wanted.append("runner")
    for name in wanted:
        note = version_note(name)
        yield Finding(
            f"version_{name}",
            "note",
            f"before {note.before}: {note.older}. Since then: {note.newer} ({note.source})",
            ("engine_version", "model_runner") if name == "runner" else ("engine_version",),
        )


def _conflict(text: str, factor: str) -> Finding:
    return Finding("settings_conflict", "warning", text, (factor,))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


SETTING_RULES: tuple[Callable[[Plan], Iterator[Finding]], ...] = (
    _block,
    _tensor_parallel,
    _modes,
    _others,
    _versions,
)
