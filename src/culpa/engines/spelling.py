"""Levels as canonical text: `-b 2` and `--batch-size=2` are "2", `True` and `1` of a switch are "on"."""

import re
from typing import Any

from culpa.engines.tables import FactorTable

TRUE = frozenset({"1", "true", "on", "yes", "enabled", "enable"})
FALSE = frozenset({"0", "false", "off", "no", "disabled", "disable"})
# Human-readable integers: decimal suffixes in lower case, binary ones in upper case, as vLLM reads them.
_SCALE = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "K": 2**10,
    "M": 2**20,
    "G": 2**30,
}
_INTEGER = re.compile(r"([+-]?\d+(?:\.\d+)?)([kmgKMG]?)")


def normalised(factor: FactorTable, text: str) -> str:
    """The level that a written value stands for. Unknown words stay as they are."""
    for level, written in factor.values.items():
        if text == written:
            return level
    if factor.is_switch:
        lowered = text.strip().lower()
        if lowered in TRUE:
            return "on"
        return "off" if lowered in FALSE else lowered
    if factor.numeric:
        match = _INTEGER.fullmatch(text.strip())
        if match is not None:
            value = (
                float(match[1]) * _SCALE[match[2]] if "." in match[1] else int(match[1]) * _SCALE[match[2]]
            )
            if value == int(value):
                return str(int(value))
    return text


def written(factor: FactorTable, level: str, *, variable: bool = False) -> str:
    """The text that stands for a level on a command line, or in an environment variable."""
    if level in factor.values:
        return factor.values[level]
    if factor.is_switch and level in ("on", "off"):
        if variable:
            return "1" if level == "on" else "0"
        return "true" if level == "on" else "false"
    return level


def as_json(factor: FactorTable, level: str) -> Any:
    """The JSON value that stands for a level."""
    if factor.is_switch and level in ("on", "off") and level not in factor.values:
        return level == "on"
    text = factor.values.get(level, level)
    if factor.numeric and re.fullmatch(r"-?\d+", text):
        return int(text)
    if factor.decimals and re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    return text


def from_json(factor: FactorTable, value: Any) -> str:
    """The level that a JSON value stands for."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return normalised(factor, value if isinstance(value, str) else compact(value))


def compact(value: Any) -> str:
    """A JSON value as one line without blanks."""
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
