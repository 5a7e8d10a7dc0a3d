"""What an engine says of itself after start-up, and whether that is what an arm asked for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from culpa.engines.spelling import compact, normalised
from culpa.engines.tables import FactorTable, FactTable, Source

ANY = "*"  # what the engine says when it only tells that a factor is not at its unmentioned level
MAX_LINE = 200_000  # characters of a log line that are looked at: a configuration dump may take 100,000


def read_effective(
    factors: Sequence[FactorTable],
    facts: Sequence[FactTable],
    lines: Iterable[str],
    api: Mapping[str, object],
) -> dict[str, str]:
    """Factor and fact name to the level that the engine names; the last matching log line wins.

    `api` maps a path to its decoded JSON, or to its text. Endpoints are read after the log and win over it,
    in the order in which a catalogue lists its sources. What the engine does not mention is left out.
    """
    named: list[FactorTable | FactTable] = [*factors, *facts]
    entries = [(entry, source) for entry in named for source in entry.effective]
    patterns = [
        (entry, source, re.compile(source.pattern)) for entry, source in entries if source.pattern is not None
    ]
    said: dict[str, str] = {}
    for line in lines:
        for entry, source, pattern in patterns:
            match = pattern.search(line[:MAX_LINE])
            if match is not None and not (source.first and entry.name in said):
                said[entry.name] = _translated(entry, source, _value(source, match))
    for entry, source in entries:
        if source.api is not None and source.key is not None and source.api in api:
            value = _look_up(api[source.api], source.key)
            if value is not None:
                said[entry.name] = _translated(entry, source, value)
    return said


def differences(
    factors: Sequence[FactorTable], levels: Mapping[str, str], effective: Mapping[str, str]
) -> tuple[str, ...]:
    """A sentence for each factor whose effective level is not the one asked for."""
    sentences: list[str] = []
    for factor in factors:
        asked, real = levels.get(factor.name), effective.get(factor.name)
        if asked is None or real is None or _agrees(factor, asked, real):
            continue
        cap = factor.capped_by
        if cap is not None and real in (effective.get(cap), levels.get(cap)) and _less(real, asked):
            continue
        sentences.append(f"{factor.name} was to be {asked}, but the engine says that it is {real}")
    return tuple(sentences)


def _agrees(factor: FactorTable, asked: str, real: str) -> bool:
    if asked == real or asked in factor.resolves or asked == "default":
        return True
    if real == ANY:
        return asked != factor.unmentioned
    if factor.decimals and re.fullmatch(r"-?\d+(\.\d+)?", asked) and re.fullmatch(r"-?\d+(\.\d+)?", real):
        return float(asked) == float(real)
    if factor.numeric and factor.multiple > 1 and re.fullmatch(r"\d+", asked):
        rounded = -(-int(asked) // factor.multiple) * factor.multiple
        return str(rounded) == real
    return False


def _less(real: str, asked: str) -> bool:
    return real.isdigit() and asked.isdigit() and int(real) < int(asked)


def _value(source: Source, match: re.Match[str]) -> str:
    if source.level is not None:
        return source.level
    named = match.groupdict().get("level")
    return named if named is not None else str(match.group(1))


def _translated(entry: FactorTable | FactTable, source: Source, value: str) -> str:
    if value in source.map:
        return source.map[value]
    return normalised(entry, value) if isinstance(entry, FactorTable) else value


def _look_up(answer: object, key: str) -> str | None:
    if isinstance(answer, str):
        return _metric(answer, key)
    value = _walk(answer, key.split("."))
    if value is None or isinstance(value, str):
        return value
    return compact(value)


def _walk(value: Any, path: Sequence[str]) -> Any:
    """Follows keys and list indices; a key may itself have dots, as in "speculative.types"."""
    if not path:
        return value
    if isinstance(value, list):
        inside = path[0].isdigit() and int(path[0]) < len(value)
        return _walk(value[int(path[0])], path[1:]) if inside else None
    if isinstance(value, dict):
        for end in range(len(path), 0, -1):
            key = ".".join(path[:end])
            if key in value:
                return _walk(value[key], path[end:])
    return None


def _metric(text: str, name: str) -> str | None:
    """The value of a Prometheus sample, or of a label (`name{label}`); of several samples the first."""
    metric, _, label = name.rstrip("}").partition("{")
    match = re.search(rf"^{re.escape(metric)}(\{{[^\n]*\}})? (\S+)", text, re.MULTILINE)
    if match is None or not label:
        return match[2] if match else None
    value = re.search(rf'[{{,]{re.escape(label)}="((?:[^"\\]|\\.)*)"', match[1] or "")
    return value[1] if value else None
