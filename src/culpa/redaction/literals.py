"""Texts that are known to be private, looked for wherever they stand: broken over lines, quoted, in pieces."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# A piece of a secret as long as this, from its start, is taken out too: logs cut long words.
_LEAST_PIECE = 12
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+", re.ASCII)
_GLUE = frozenset(" \t\n\r\\'\"+|>")


@dataclass(frozen=True, slots=True)
class _Squeezed:
    """A text without blanks, line ends and what shells and programs put between two pieces of a string."""

    text: str
    places: list[int]


def squeezed(text: str) -> _Squeezed:
    """The text without glue, with the place of each of its characters."""
    places = [index for index, one in enumerate(text) if one not in _GLUE]
    return _Squeezed("".join(text[index] for index in places), places)


def forms(secret: str) -> tuple[str, ...]:
    """The ways in which programs write the same secret: itself, in a URL, in JSON, in base64."""
    escaped = json.dumps(secret)[1:-1]
    encoded = base64.b64encode(secret.encode("utf-8", "replace")).decode().rstrip("=")
    return tuple(dict.fromkeys((secret, _quoted(secret, ""), _quoted(secret, "/"), escaped, encoded)))


def _quoted(text: str, safe: str) -> str:
    """The text as a part of a URL (RFC 3986): all but unreserved characters and `safe` ones percent-encoded."""
    kept = frozenset(safe) | _UNRESERVED
    return "".join(
        one if one in kept else "".join(f"%{byte:02X}" for byte in one.encode("utf-8", "replace"))
        for one in text
    )


def unquoted(text: str) -> str:
    """The text without percent-encoding."""
    return _ENCODED.sub(
        lambda run: bytes.fromhex(run.group().replace("%", "")).decode("utf-8", "replace"), text
    )


def occurrences(literals: Iterable[str], text: str, squeeze: _Squeezed) -> Iterator[tuple[int, int]]:
    """The places of the literals in the text, glue within them included: whole, or a piece of them that is long enough
    to tell something, from their start on or up to their end."""
    for literal in literals:
        wanted = "".join(one for one in literal if one not in _GLUE)
        if not wanted:
            continue
        yield from _heads(wanted, text, squeeze)
        if len(wanted) > _LEAST_PIECE:
            yield from _tails(wanted, squeeze)


def _heads(wanted: str, text: str, squeeze: _Squeezed) -> Iterator[tuple[int, int]]:
    head = wanted[:_LEAST_PIECE]
    at = squeeze.text.find(head)
    while at >= 0:
        length = len(head)
        while length < len(wanted) and squeeze.text.startswith(wanted[length], at + length):
            length += 1
        yield squeeze.places[at], squeeze.places[at + length - 1] + 1
        if length < len(wanted):
            yield from _rest(wanted[length:], text, squeeze.places[at + length - 1] + 1)
        at = squeeze.text.find(head, at + length)


def _tails(wanted: str, squeeze: _Squeezed) -> Iterator[tuple[int, int]]:
    tail = wanted[-_LEAST_PIECE:]
    at, behind = squeeze.text.find(tail), 0
    while at >= 0:
        end, start, left = at + len(tail), at, len(wanted) - len(tail)
        while left and start > behind and squeeze.text[start - 1] == wanted[left - 1]:
            start -= 1
            left -= 1
        yield squeeze.places[start], squeeze.places[end - 1] + 1
        behind = end
        at = squeeze.text.find(tail, end)


def _rest(rest: str, text: str, position: int) -> Iterator[tuple[int, int]]:
    """The other part of a literal that a line end cut in two, behind whatever a log puts in front of its lines."""
    line_end = text.find("\n", position)
    if line_end < 0 or text[position:line_end].strip(" \t\r\\'\"|"):
        return
    next_end = text.find("\n", line_end + 1)
    line_start, line_stop = line_end + 1, next_end if next_end >= 0 else len(text)
    while rest:
        at = text.find(rest, line_start, line_stop)
        if at >= 0:
            yield at, at + len(rest)
            return
        # Cut in three: what the end of this line holds of it.
        line = text[line_start:line_stop].rstrip(" \t\r\\'\"|")
        held = next(
            (size for size in range(min(len(rest), len(line)), 3, -1) if line.endswith(rest[:size])), 0
        )
        if not held:
            return
        yield line_start + len(line) - held, line_start + len(line)
        rest = rest[held:]
        line_start = line_stop + 1
        next_end = text.find("\n", line_start)
        line_stop = next_end if next_end >= 0 else len(text)
        if line_start >= len(text):
            return
