"""Key-value pairs out of the dumps that engines print: Python dicts, dataclass reprs, and both of them cut off."""

from collections.abc import Iterator

_OPEN = {"(": ")", "[": "]", "{": "}"}
_MAX_PAIRS = 400


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """The pairs at the outer level of `a=1, b='x, y', c=[1, 2]` or `'a': 1, 'b': {...}`, values as printed without
    their quotes. Tolerates anything: what is no pair is passed over, a text that ends early gives what is whole.

    >>> list(pairs("model='a, b', tp=2, extra={'x': 1}"))
    [('model', 'a, b'), ('tp', '2'), ('extra', "{'x': 1}")]
    """
    count = 0
    for part in _parts(text):
        key, value = _split(part)
        if key is None:
            continue
        yield key, value
        count += 1
        if count >= _MAX_PAIRS:
            return


def _parts(text: str) -> Iterator[str]:
    """The text between commas that stand in no bracket and no quotes; ends where the outer bracket closes."""
    depth, start, quote, position = 0, 0, "", 0
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"" and _opens_quote(text, position):
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                yield text[start:position]
                return
        elif char == "," and depth == 0:
            yield text[start:position]
            start = position + 1
        position += 1
    if depth == 0 and not quote:
        yield text[start:]


def _opens_quote(text: str, position: int) -> bool:
    """An apostrophe inside a word opens nothing."""
    return position == 0 or not text[position - 1].isalnum()


def _split(part: str) -> tuple[str | None, str]:
    part = part.strip()
    if part[:1] in ("'", '"'):
        end = part.find(part[0], 1)
        rest = part[end + 1 :].lstrip() if end > 0 else ""
        if not rest.startswith(":"):
            return None, ""
        return part[1:end], _unquoted(rest[1:])
    for position, char in enumerate(part[:120]):
        if char in "=:":
            key = part[:position].strip()
            return (key, _unquoted(part[position + 1 :])) if key.isidentifier() else (None, "")
    return None, ""


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1]
    return value
