"""Release numbers of engines, compared: 0.8.5.post1, 0.23.1rc1.dev1133+g6472, v0.5.9, or llama.cpp's build 10525."""

import re

_RELEASE = re.compile(r"^v?(\d{1,9}(?:\.\d{1,9}){0,4})(.{0,60})$")
_BEFORE = re.compile(r"^[.-]?(?:rc|a|b|alpha|beta|dev)", re.IGNORECASE)
_TERM = re.compile(r"^\s*(>=|<=|==|>|<)\s*(\d[\w.+-]{0,40})\s*$")

Key = tuple[tuple[int, ...], int]


def release_key(text: str) -> Key | None:
    """A value that sorts as the releases do, None for a text that is no number. Pre-releases come before the release
    that they lead to; what stands after a plus sign only names a commit."""
    match = _RELEASE.match(text.strip().partition("+")[0])
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), -1 if _BEFORE.match(match[2]) else 0


def parse_range(text: str) -> tuple[tuple[str, Key], ...]:
    """The terms of ">=0.10,<0.12". Raises ValueError for anything else."""
    terms = []
    for part in text.split(","):
        match = _TERM.match(part)
        key = release_key(match[2]) if match else None
        if match is None or key is None:
            raise ValueError(f"{text!r} is no range of releases, such as '>=0.10,<0.12'")
        terms.append((match[1], key))
    return tuple(terms)


def within(version: str, terms: tuple[tuple[str, Key], ...]) -> bool | None:
    """Whether a release lies in a range; None if the text is no release number."""
    key = release_key(version)
    if key is None:
        return None
    return all(
        {">=": key >= bound, "<=": key <= bound, "==": key == bound, ">": key > bound, "<": key < bound}[sign]
        for sign, bound in terms
    )
