"""Sizes on the command line: `24GB`, `80GiB`, `1.5GiB`, plain bytes."""

import re

import typer

_UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 1 << 10, "MIB": 1 << 20,
    "GIB": 1 << 30, "TIB": 1 << 40, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s{0,3}([A-Za-z]{0,3})")


def sizes(option: str, text: str) -> tuple[int, ...]:
    """Bytes of each size in a list with commas. Raises BadParameter."""
    return tuple(_size(option, part.strip()) for part in text.split(","))


def _size(option: str, text: str) -> int:
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise typer.BadParameter(f"{option} {text}: write a size as 24GB, 80GiB or a number of bytes")
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
