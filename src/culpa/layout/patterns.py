"""The kind of every decoder layer, as the configuration lists it or as its family's rule implies it."""

from collections.abc import Mapping
from typing import Any

from culpa.layout.errors import BadLayout
from culpa.layout.families import FamilyTable, number, value
from culpa.layout.shape import LayerKind

# How configurations spell kinds; a family may add to them or change them.
_SPELLING: dict[str, LayerKind] = {
    "full_attention": "full_attention", "attention": "full_attention", "full": "full_attention",
    "global": "full_attention", "global_attention": "full_attention", "sparse_attention": "full_attention",
    "sliding_attention": "sliding_attention", "sliding_window": "sliding_attention",
    "sliding": "sliding_attention", "local": "sliding_attention", "local_attention": "sliding_attention",
    "chunked_attention": "chunked_attention",
    "linear_attention": "linear_attention", "linear": "linear_attention", "kda": "linear_attention",
    "gated_deltanet": "linear_attention", "recurrent": "linear_attention",
    "mamba": "mamba", "mamba2": "mamba", "ssm": "mamba",
    "conv": "conv", "short_conv": "conv",
    "hybrid": "hybrid", "mlp": "mlp", "moe": "moe",
}  # fmt: skip
_LISTS = "layer_types|layers_block_type"


def kinds_of(config: Mapping[str, Any], family: FamilyTable, known: bool = True) -> tuple[LayerKind, ...]:
    """The kinds in order; empty where the configuration gives no layers.

    A listed kind that is not known raises BadLayout; in a family that is not `known` it counts as full attention.
    """
    listed = value(config, _LISTS)
    count = number(config, "num_hidden_layers|n_layer|n_layers|num_layers=0")
    if isinstance(listed, list) and listed:
        if count and count != len(listed) and not family.letters:
            raise BadLayout(f"config.json: num_hidden_layers is {count}, and layer_types lists {len(listed)}")
        return tuple(_spelled(kind, family, known) for kind in listed)
    if family.pattern.rule == "letters":
        return _letters(config, family, count)
    if count > 1 << 16:
        raise BadLayout(f"config.json: {count} layers are more than any model has")
    return tuple(_by_rule(config, family, index, count) for index in range(count))


def _spelled(kind: Any, family: FamilyTable, known: bool) -> LayerKind:
    spelled = family.spelling.get(kind) if isinstance(kind, str) else None
    found = spelled or (_SPELLING.get(kind) if isinstance(kind, str) else None)
    if found is None and not known:
        return "full_attention"
    if found is None:
        raise BadLayout(f"config.json: layer_types has {kind!r}, which is no kind of layer known here"[:200])
    return found


def _letters(config: Mapping[str, Any], family: FamilyTable, count: int) -> tuple[LayerKind, ...]:
    text = value(config, family.pattern.key)
    if not isinstance(text, str) or not text:
        raise BadLayout(f"config.json: {family.pattern.key} is missing, which gives the kinds of the layers")
    if count and count != len(text):
        raise BadLayout(
            f"config.json: num_hidden_layers is {count}, and {family.pattern.key} has {len(text)}"
        )
    unknown = sorted(set(text) - family.letters.keys())
    if unknown:
        raise BadLayout(f"config.json: {family.pattern.key} has the unknown letter {unknown[0]!r}")
    return tuple(family.letters[letter] for letter in text)


def _by_rule(config: Mapping[str, Any], family: FamilyTable, index: int, count: int) -> LayerKind:
    rule = family.pattern
    if rule.rule == "all":
        windowed = bool(family.window) and number(config, family.window) > 0
        # Mistral's window, where it is not null, holds for every layer.
        return "sliding_attention" if windowed else rule.full
    if rule.rule == "from":
        switched = value(config, family.window_switch) is True and number(config, family.window) > 0
        return "sliding_attention" if switched and index >= number(config, rule.number) else rule.full
    if rule.rule == "every":
        flags = value(config, "no_rope_layers")
        if isinstance(flags, list) and len(flags) == count:
            return rule.other if flags[index] else rule.full
        interval = number(config, rule.number)
        return rule.full if interval and (index + 1) % interval == 0 else rule.other
    if rule.rule == "offset":
        period = number(config, rule.number)
        return rule.full if period and index % period == number(config, rule.offset) else rule.other
    listed = value(config, rule.key)
    if rule.rule == "flags":
        if isinstance(listed, list) and len(listed) == count:
            return rule.full if listed[index] else rule.other
        return rule.full if rule.every and index % rule.every == 0 else rule.other
    if listed is None and rule.key == "full_attn_idxs":
        return rule.full
    numbers = listed if isinstance(listed, list) else []
    return rule.full if index + (1 if rule.one_based else 0) in numbers else rule.other
