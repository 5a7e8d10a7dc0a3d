"""Names that tell of a secret behind them: `--api-key X`, `HF_TOKEN=X`, `"password": "X"`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from math import log2

from culpa.redaction.table import Table, compiled, load_table

_STEM = "auth|conn|cred|jwt|key|pass|pwd|salt|secret|sig|token|webhook"
_NAME = rf"[A-Za-z0-9_.-]{{0,60}}(?:{_STEM})[A-Za-z0-9_.-]{{0,40}}"
_QUOTE = r"""\\{0,3}['"]"""
# A value: in quotes (escaped ones too), a list, or up to what ends a bare one.
_VALUE = r"""(\\{0,3}"[^"\n]*"|\\{0,3}'[^'\n]*'|\[[^\[\]\n]*\]|[^\s,;&(){}\[\]'"\\][^\s,;&(){}\[\]'"]*)"""
_PATTERNS = (
    # NAME=VALUE, NAME: VALUE, "NAME": "VALUE", NAME => VALUE
    compiled(rf"({_NAME})(?:{_QUOTE})?[ \t]*(?:=>|:=|[:=])[ \t]*{_VALUE}", ignore_case=True),
    # --name VALUE, and as items of a list or a pair: '--name', 'VALUE'
    compiled(rf"(?:^|[\s'\"(\[,])(--?{_NAME})[ \t]+{_VALUE}", ignore_case=True),
    compiled(
        rf"""{_QUOTE}({_NAME}){_QUOTE}[ \t]*,\s*(\\{{0,3}}"[^"\n]*"|\\{{0,3}}'[^'\n]*')""", ignore_case=True
    ),
    # Manifests: name: NAME, value: VALUE, over lines too
    compiled(
        rf"""\bname\\?['"]?[ \t]*[:=][ \t]*(?:{_QUOTE})?({_NAME})(?:{_QUOTE})?,?(?:\s|\\n)+"""
        rf"""(?:{_QUOTE})?value\\?['"]?[ \t]*[:=][ \t]*{_VALUE}""",
        ignore_case=True,
    ),
)
# In prose only what looks like a secret counts: "the password is required".
_PROSE = compiled(rf"({_NAME})[ \t]+(?:is|was)[ \t]+{_VALUE}", ignore_case=True)
# vLLM takes several keys after one flag.
_FURTHER = compiled(r"""[ \t]+([A-Za-z0-9_.~+/=-]{8,})(?:[\s]|$)""")
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=:$!@#%^*-]+", re.ASCII)
_FLAG = re.compile(r"--?[A-Za-z][A-Za-z-]*", re.ASCII)
_PATHLIKE = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_LEAST_LOOKING_SECRET = 16
_LEAST_BITS = 3.0
_LEAST_WITHIN = 6  # PGPASSWORD ends in a word for a secret, MONKEY in none


def named_values(text: str, raw: bytes) -> Iterator[tuple[int, int]]:
    """The places of values behind names of secrets, without their quotes. `raw` is the text in Latin-1."""
    for number, pattern in enumerate(_PATTERNS):
        for match in pattern.finditer(raw):
            name = match.group(1).decode("latin-1")
            start, end = _without_quotes(text, *match.span(2))
            value = text[start:end]
            if not _is_secret(name, value):
                continue
            yield start, end
            if number == 1:
                yield from _further(text, raw, match.end(2))
    yield from _in_prose(text, raw)


def _in_prose(text: str, raw: bytes) -> Iterator[tuple[int, int]]:
    for match in _PROSE.finditer(raw):
        start, end = _without_quotes(text, *match.span(2))
        quoted = end > start and match.end(2) - match.start(2) > end - start
        named = strength_of(match.group(1).decode("latin-1")) is not None
        if named and (looks_secret(text[start:end]) or (quoted and is_specific(text[start:end]))):
            yield start, end


def _further(text: str, raw: bytes, position: int) -> Iterator[tuple[int, int]]:
    """More words after the value of a flag that look like keys."""
    while (match := _FURTHER.match(raw, position)) is not None:
        start, end = match.span(1)
        word = text[start:end]
        if word.startswith("-") or not any(one.isdigit() for one in word):
            return
        yield start, end
        position = end


def _without_quotes(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in "\\'\"":
        start += 1
    while start < end and text[end - 1] in "\\'\"":
        end -= 1
    return start, end


def _is_secret(name: str, value: str) -> bool:
    strength = strength_of(name)
    if strength is None or is_harmless(value) or _FLAG.fullmatch(value):
        return False
    if strength == "strong":
        return not (_PATHLIKE.match(value) and not looks_secret(value))
    bare = name.lstrip("-")
    is_variable = bare.isupper() and "_" in bare
    return (is_variable and not _PATHLIKE.match(value)) or looks_secret(value)


@lru_cache(maxsize=8192)
def strength_of(name: str) -> str | None:
    """ "strong" for a name that is one of a secret, "weak" for one that may be, else None."""
    table: Table = load_table()
    words = tuple(piece.lower() for piece in _PIECES.findall(name))
    joined = tuple("".join(words[-count:]) for count in (1, 2, 3))
    if any(words[-count:] in table.never for count in (1, 2, 3)):
        return None
    for endings, strength in ((table.endings, "strong"), (table.weak_endings, "weak")):
        if any(words[-count:] in endings for count in (1, 2, 3, 4)):
            return strength
        if any((one,) in endings for one in joined[:1]):
            return strength
    together = name.lower().replace("_", "").replace("-", "").replace(".", "")
    if any(
        (len(one) > 1 or len(one[0]) >= _LEAST_WITHIN) and together.endswith("".join(one))
        for one in table.endings
    ):
        return "strong"
    return None


def is_harmless(value: str) -> bool:
    """Whether the value is no secret whatever its name says: empty, a word of the language, a short number."""
    plain = value.strip("[]<>$%{}()*.…")
    if not plain or plain.lower() in load_table().harmless or value.startswith("[redacted"):
        return True
    return len(plain) <= 6 and (plain.isdigit() or len(plain) == 1)


def looks_secret(value: str) -> bool:
    """Whether the value is random enough to be a secret by itself: long, of token characters, letters and figures."""
    if len(value) < _LEAST_LOOKING_SECRET or _TOKEN.fullmatch(value) is None:
        return False
    if not (any(one.isdigit() for one in value) and any(one.isalpha() for one in value)):
        return False
    if value.count("-") >= 3 and value.replace("-", "").isalnum() and value.islower() and "_" not in value:
        return False  # a UUID, the name of a pod
    return bits(value) >= _LEAST_BITS and value.count("/") < 3


def bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    shares = [value.count(one) / len(value) for one in set(value)]
    return -sum(share * log2(share) for share in shares)


def is_specific(value: str) -> bool:
    """Whether a secret may be looked for everywhere: it is nobody's word, flag or path."""
    if len(value) < 6 or is_harmless(value):
        return False
    kinds = (
        any(one.isdigit() for one in value),
        any(one.islower() for one in value),
        any(one.isupper() for one in value),
        any(not one.isalnum() for one in value),
    )
    return (
        (sum(kinds) >= 3 or (sum(kinds) == 2 and len(value) >= 8)) and bits(value) >= 2.0 and kinds[0]
    ) or (len(value) >= 16 and bits(value) >= _LEAST_BITS and " " not in value)
