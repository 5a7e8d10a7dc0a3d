"""Sizes and lists as people write them."""

from collections.abc import Iterable, Sequence

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size(count: float) -> str:
    """Bytes in decimal units with three digits: 3,211,264 is 3.21 MB."""
    for unit, name in _UNITS:
        if abs(count) >= unit:
            shown = count / unit
            digits = 2 if abs(shown) < 9.995 else 1 if abs(shown) < 99.95 else 0
            return f"{shown:.{digits}f} {name}"
    return f"{count:.0f} B"


def plural(count: int, noun: str) -> str:
    """`1 layer`, `23 layers`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listing(parts: Iterable[object]) -> str:
    """`a, b and c`."""
    words = [str(part) for part in parts]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def partition(parts: Sequence[int]) -> str:
    """`23,23,18`."""
    return ",".join(str(part) for part in parts)


def percent(share: float) -> str:
    """A share as a whole percentage, one digit more below ten."""
    return f"{100 * share:.0f}%" if share >= 0.0995 or share == 0 else f"{100 * share:.1f}%"


def first_last(layers: range) -> str:
    """`layers 23 to 45`, `layer 7`, or `no layer`."""
    if not layers:
        return "no layer"
    if len(layers) == 1:
        return f"layer {layers.start}"
    return f"layers {layers.start} to {layers.stop - 1}"
