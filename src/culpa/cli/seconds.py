"""Durations as people write them."""

import re

import typer

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
#: Clocks and timers take no more than some hundred years; nobody waits for one.
_MOST_SECONDS = 366 * 86_400.0
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)", re.ASCII)


def seconds(option: str, text: str) -> float:
    """Seconds of `90`, `90s`, `30m`, `2h` or `1h30m`. Raises typer.BadParameter."""
    stripped = text.strip().lower()
    total, place = 0.0, 0
    while place < len(stripped):
        match = _PART.match(stripped, place)
        if match is None:
            break
        total += float(match[1]) * _UNITS[match[2]]
        place = match.end()
    if not stripped or place != len(stripped) or total <= 0:
        raise typer.BadParameter(f"{option} {text!r} is no duration; write it like 90s, 30m or 2h")
    if total > _MOST_SECONDS:
        raise typer.BadParameter(f"{option} {text[:40]!r} is longer than a year")
    return total
