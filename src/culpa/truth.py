"""Where a known fault of the reference engine begins, worked out from the schedule that the engine core wrote down.

The guard's stages never read that file: what they report is compared with it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from culpa.model.guard import Violation
from culpa.model.zoo import KnownPlace

NAME = "schedule.jsonl"
_Step = Mapping[str, Any]
_Rule = Callable[[_Step, Sequence[_Step], Mapping[str, Any]], bool]
OF_SUCH = " of such a block"
_ORDINALS = {"first": 0, "second": 1}


class BadSchedule(ValueError):
    """The schedule is not there or can't be read."""


def _pieces(step: _Step) -> list[Mapping[str, Any]]:
    return [one for one in step["segments"] if not one["decode"]]


def _decodes(step: _Step) -> int:
    return sum(one["decode"] for one in step["segments"])


def _reused(step: _Step, before: Sequence[_Step], head: Mapping[str, Any]) -> bool:
    """A request begins in a block that warm-up, which has one for each group, or an earlier request has had."""
    used = _used(before, head)
    return any(one["start"] == 0 and used.intersection(one["states"]) for one in step["segments"])


def _used(before: Sequence[_Step], head: Mapping[str, Any]) -> set[int]:
    used = set(range(1, len(head["groups"]) + 1))
    for earlier in before:
        for one in earlier["segments"]:
            used.update(one["states"])
            used.add(one["last"])
    return used


RULES: Mapping[str, _Rule] = {
    "first step": lambda step, _b, _h: True,
    "first piece that continues a prompt": lambda step, _b, _h: any(
        one["start"] > 0 and one["source"] == "own" for one in _pieces(step)
    ),
    "first piece that begins at a block boundary": lambda step, _b, head: any(
        one["start"] > 0 and one["start"] % head["block_size"] == 0 and one["source"] == "none"
        for one in _pieces(step)
    ),
    "first batch of several": lambda step, _b, _h: _decodes(step) > 1,
    "first batch of four": lambda step, _b, _h: _decodes(step) == 4,
    "first batch beyond what is captured": lambda step, _b, head: _decodes(step) > max(head["capture_sizes"]),
    "first prefix hit": lambda step, _b, _h: any(one["source"] == "cache" for one in _pieces(step)),
    "first request in a block that was used before": _reused,
    "first step whose request loses its last block": lambda step, _b, _h: any(
        one["last"] in step["unmap"] for one in step["segments"]
    ),
    "first step of more than 512 tokens": lambda step, _b, _h: (
        sum(one["count"] for one in step["segments"]) > 512
    ),
    "first return of a preempted request": lambda step, _b, _h: any(
        one["generation"] > 0 and one["start"] == 0 for one in _pieces(step)
    ),
}
"""When a fault begins: a step, those before it, and the first line of the schedule."""


def begins(place: KnownPlace, folder: Path) -> tuple[str, int]:
    """Layer and step at which a fault begins in the run that left this folder of the guard. Raises BadSchedule."""
    try:
        lines = (folder / NAME).read_text(encoding="ascii").splitlines()
        head, *steps = (json.loads(line) for line in lines)
        number = _number(place, head, steps)
        return _layer(place, head, steps[: number + 1]), int(steps[number]["step"])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise BadSchedule(f"{folder / NAME}: {error}") from None


def right(place: KnownPlace, violation: Violation, folder: Path) -> bool:
    """Whether a violation is the beginning of a fault: kind, stage, layer and step. Raises BadSchedule."""
    layer, step = begins(place, folder)
    seen = (violation.kind, violation.stage, violation.layer, violation.step)
    return seen == (place.kind, place.stage, layer, step)


def _number(place: KnownPlace, head: Mapping[str, Any], steps: Sequence[_Step]) -> int:
    rule = RULES[place.step]
    for number, step in enumerate(steps):
        if rule(step, steps[:number], head):
            return number
    raise ValueError(f"no {place.step}")


def _layer(place: KnownPlace, head: Mapping[str, Any], steps: Sequence[_Step]) -> str:
    stage = int(place.stage.removeprefix("PP"))
    partition = head["partition"]
    first = sum(partition[:stage])
    kinds = {layer: group["kind"] for group in head["groups"] for layer in group["layers"]}
    ordinal, _, kind = place.layer.removesuffix(OF_SUCH).partition(" ")
    layers: Sequence[int] = range(first, first + partition[stage])
    if place.layer.endswith(OF_SUCH):
        layers = _of_such_a_block(layers, head, steps)
    here = [layer for layer in layers if kind in ("", kinds[layer])]
    number = here[_ORDINALS[ordinal]]
    return f"model.layers.{number}.{'self_attn' if kinds[number] == 'full_attention' else 'linear_attn'}"


def _of_such_a_block(layers: Sequence[int], head: Mapping[str, Any], steps: Sequence[_Step]) -> list[int]:
    """The layers of groups whose state block, given to a request that begins in the last step, was used before."""
    *before, last = steps
    used = _used(before, head)
    recurrent = [group["layers"] for group in head["groups"] if group["kind"] != "full_attention"]
    found = {
        layer
        for one in last["segments"]
        if one["start"] == 0
        for own, block in zip(recurrent, one["states"], strict=True)
        if block in used
        for layer in own
    }
    return [layer for layer in layers if layer in found]
