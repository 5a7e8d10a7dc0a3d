"""Two environments side by side: what differs, what matters first, and what one of them can't tell."""

import re
from collections.abc import Mapping

from culpa.environment.tables import weight_of
from culpa.model.environment import Comparison, Difference, Environment

_CUDA_WHEEL = re.compile(r"^(package\.nvidia-[a-z-]+?)-cu\d{1,3}$")
NOT_INSTALLED = "not installed"
NOT_SET = "not set"
NO_SUCH_GPU = "no such GPU"


def compare(left: Environment, right: Environment, names: tuple[str, str]) -> Comparison:
    """Every item that differs, by weight; items that only one side can tell apart from those."""
    first, second = _values(left, right), _values(right, left)
    differences: list[Difference] = []
    unreadable: list[Difference] = []
    same = 0
    for key in dict.fromkeys((*first, *second)):
        one = first.get(key, _absent(left, key))
        other = second.get(key, _absent(right, key))
        if one == other:
            same += 1
            continue
        weight = weight_of(key)
        found = Difference(key, one, other, weight.weight, weight.why, weight.source)
        (unreadable if one is None or other is None else differences).append(found)
    return Comparison(names[0], names[1], _ordered(differences), _ordered(unreadable), same)


def _ordered(found: list[Difference]) -> tuple[Difference, ...]:
    return tuple(sorted(found, key=lambda one: (-one.weight, one.key)))


def _values(environment: Environment, other: Environment) -> Mapping[str, str]:
    """What could be read. A log names libraries without the CUDA of their wheel: then the other side does as well."""
    theirs = {fact.key for fact in other.facts}
    values: dict[str, str] = {}
    for fact in environment.facts:
        match = _CUDA_WHEEL.match(fact.key)
        key = match[1] if match and match[1] in theirs else fact.key
        if fact.value is not None:
            values[key] = fact.value
    return values


def _absent(environment: Environment, key: str) -> str | None:
    """What it means that a key is not there: nothing, unless the environment looked for all of its kind."""
    fact = environment.fact(key)
    looked = bool(environment.taken)  # a machine was looked at; a log tells what it happens to tell
    if fact is not None or not looked:
        return NOT_INSTALLED if fact is not None and fact.reason.startswith(NOT_INSTALLED) else None
    if key.startswith("package."):
        return NOT_INSTALLED if environment.get("python.version") is not None else None
    if key.startswith("variable."):
        return NOT_SET
    parts = key.split(".")
    if parts[0] in ("gpu", "link") and len(parts) > 1 and parts[1][:1].isdigit():
        return NO_SUCH_GPU if environment.get("gpu.count") is not None else None
    return None
