"""Two capacities that an engine printed, explained: blocks, bytes, and what they are the size of.

People take such a difference for evidence. Mostly it is weights: the fullest stage holds a layer more or less.
"""

from dataclasses import dataclass, replace

from culpa.layout import words
from culpa.layout.errors import BadLayout
from culpa.layout.plan import Plan, capacity, make_plan
from culpa.layout.words import plural, size

_LENGTHS = (4096, 8192, 16384, 32768, 40960, 65536, 131072, 262144, 524288, 1048576)
_MOST_READINGS = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """`blocks` of each capacity (None where no number of blocks gives it), and the sentences for a person."""

    blocks: tuple[int | None, int | None]
    explained: bool
    sentences: tuple[str, ...]


def blocks_for(tokens: int, per_request: int, length: int) -> int | None:
    """The number of blocks from which vLLM computes exactly this capacity, or None."""
    guess = tokens * per_request // length
    return next(
        (n for n in (guess, guess + 1, guess - 1) if n > 0 and capacity(n, per_request, length) == tokens),
        None,
    )


def explain(first: Plan, second: Plan, tokens: tuple[int, int]) -> Explanation:
    """Why two launches of one model have these two capacities, as far as planning can tell.

    Raises BadLayout.
    """
    for count in tokens:
        if count < 1:
            raise BadLayout(f"capacity {count}: give the tokens that the engine printed")
    found = (
        blocks_for(tokens[0], first.blocks_per_request, first.max_model_len),
        blocks_for(tokens[1], second.blocks_per_request, second.max_model_len),
    )
    if found[0] is None or found[1] is None:
        return Explanation(found, False, tuple(_no_blocks(first, second, tokens, found)))
    sentences = [
        f"{tokens[i]:,} tokens are {found[i]} blocks: {found[i]} / {plan.blocks_per_request} x "
        f"{plan.max_model_len:,} "
        f"(a request of {plan.max_model_len:,} tokens takes {plan.blocks_per_request} blocks of "
        f"{plan.block_size})"
        for i, plan in enumerate((first, second))
    ]
    explained, reasons = _reasons(first, second, (found[0], found[1]))
    return Explanation(found, explained, (*sentences, *reasons))


def _reasons(first: Plan, second: Plan, blocks: tuple[int, int]) -> tuple[bool, list[str]]:
    sentences = [_split_of_types(first, second)]
    if blocks[0] == blocks[1]:
        return True, [*sentences, "Both are the same number of blocks, so there is nothing to explain."]
    more, less = (first, second) if blocks[0] > blocks[1] else (second, first)
    many, few = max(blocks), min(blocks)
    tight_more, tight_less = fullest(more, many), fullest(less, few)
    block = less.stages[tight_less].bytes_per_block
    if more.stages[tight_more].bytes_per_block != block:
        widths = f"{more.stages[tight_more].bytes_per_block:,} and {block:,} bytes"
        sentences.append(
            f"A block takes {widths} on the stages that limit them: that part is the split of the layers."
        )
    gap = (many - few) * block
    weights = less.stages[tight_less].weights.total - more.stages[tight_more].weights.total
    layers = len(less.stages[tight_less].layers) - len(more.stages[tight_more].layers)
    sentences.append(
        f"{many} - {few} = {plural(many - few, 'block')} of {block:,} bytes = {size(gap)} less for the cache "
        f"(give or take a block, {size(block)})."
    )
    sizes = sorted(less.weights.layers)
    one = f"{size(sizes[0])} to {size(sizes[-1])}" if sizes[0] != sizes[-1] else size(sizes[0])
    # Nobody prints what activations and graphs took on each stage: a layer's share of error is allowed for that.
    slack = max(block, sizes[-1] // 10)
    explained = abs(gap - weights) <= slack and weights > 0
    if explained and layers:
        words_for = "one decoder layer" if layers == 1 else plural(layers, "decoder layer")
        sentences.append(
            f"A decoder layer's weights are {one}. The stage that limits {_named(more)} (stage {tight_more}, "
            f"{plural(len(more.stages[tight_more].layers), 'layer')}, "
            f"{size(more.stages[tight_more].weights.total)}) holds "
            f"{words_for} less of weights than the one that limits {_named(less)} (stage {tight_less}, "
            f"{plural(len(less.stages[tight_less].layers), 'layer')}, "
            f"{size(less.stages[tight_less].weights.total)}): "
            f"{size(weights)}. That accounts for the difference{_rest(gap, weights, block)}."
        )
    elif explained:
        sentences.append(
            f"The limiting stages differ by {size(weights)} of weights. That is the whole difference."
        )
    else:
        sentences.append(
            f"The limiting stages differ by {size(weights)} of weights (a decoder layer has {one}), which "
            "does not account for "
            f"{size(gap)}: activations, graphs or other programs on a GPU took a different share."
        )
    sentences.append(
        "So the two capacities follow from planning. They are no evidence of a fault, and a search over "
        "them would be wasted."
        if explained
        else "Compare what the engine printed for each stage's memory before this is taken for evidence."
    )
    return explained, sentences


def _rest(gap: int, weights: int, block: int) -> str:
    rest = abs(gap - weights)
    if rest <= block:
        return ""
    return f" but for {size(rest)}, {rest / block:.1f} blocks, which activations and graphs may take"


def fullest(plan: Plan, blocks: int) -> int:
    """The stage that needs most memory for so many blocks; with equal GPUs it is the one that limits them."""
    return max(plan.stages, key=lambda stage: stage.weights.total + blocks * stage.bytes_per_block).index


def _split_of_types(first: Plan, second: Plan) -> str:
    """What the layer types alone would do, with the same memory on every stage."""
    wide = tuple(
        max((max(stage.group_widths, default=0) for stage in plan.stages), default=0)
        for plan in (first, second)
    )
    if wide[0] == wide[1] and first.page_bytes == second.page_bytes:
        return (
            f"The split of layer types explains nothing: the widest group on a stage has {wide[0]} layers with "
            f"{_named(first)} and with {_named(second)}, so the same free memory gives the same blocks."
        )
    return (
        f"The widest group on a stage has {wide[0]} layers with {_named(first)} and {wide[1]} with "
        f"{_named(second)}: the same "
        f"free memory gives {wide[1] / wide[0] if wide[0] else 0:.2f} times the blocks with the first."
    )


def _named(plan: Plan) -> str:
    return words.partition(plan.partition)


def _no_blocks(
    first: Plan, second: Plan, tokens: tuple[int, int], found: tuple[int | None, int | None]
) -> list[str]:
    sentences = [
        f"No number of blocks gives {tokens[i]:,} tokens with {plan.blocks_per_request} blocks a request of "
        f"{plan.max_model_len:,} tokens, so max_model_len, block size or cache mode differ from what was given."
        for i, plan in enumerate((first, second))
        if found[i] is None
    ]
    readings = _readings(first, second, tokens)
    if readings:
        sentences.append(f"Both numbers come out with {'; or with '.join(readings[:_MOST_READINGS])}.")
        if len(readings) > _MOST_READINGS:
            sentences.append(
                f"{len(readings) - _MOST_READINGS} other readings fit too, so the numbers alone do not tell."
            )
    return sentences


def _readings(first: Plan, second: Plan, tokens: tuple[int, int]) -> list[str]:
    """Lengths and cache modes that give both capacities with whole blocks."""
    found = []
    for length in _LENGTHS:
        for caching in (True, False):
            try:
                plans = [
                    make_plan(
                        plan.shape,
                        replace(
                            plan.settings, max_model_len=length, prefix_caching=caching, mamba_cache_mode=None
                        ),
                    )
                    for plan in (first, second)
                ]
            except BadLayout:
                continue
            blocks = [
                blocks_for(count, plan.blocks_per_request, length)
                for plan, count in zip(plans, tokens, strict=True)
            ]
            if None not in blocks:
                mode = f", prefix caching {'on' if caching else 'off'}" if first.shape.hybrid else ""
                found.append(f"--max-model-len {length}{mode} ({blocks[0]} and {blocks[1]} blocks)")
                if not first.shape.hybrid:
                    break
    return found
