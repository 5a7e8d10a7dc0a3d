"""Bodies without what people wrote: the same lengths, fields and shared beginnings, other words.

Text is replaced in stretches by common words. What a stretch becomes depends on all text before it in its request
and on a key that is thrown away with the process: prompts that begin alike still begin alike, up to a stretch, and
nothing else can be read from them. Token ids are replaced the same way.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

# Four characters are about a token of English, and each of these words with its space is one in common vocabularies.
_CHARACTERS: Final = 64
_PER_WORD: Final = 4
_IDS: Final = 16
_LOWEST_ID, _IDS_USED = 100, 900  # ids that every vocabulary has, and that are no control tokens
WORDS: Final = tuple((files("culpa.recorder") / "words.txt").read_text(encoding="ascii").split())
_LETTERS: Final = (WORDS * 2)[:256]

#: Strings under these names say how something is asked, not what.
_PLAIN = frozenset(
    {
        "role", "type", "model", "tool_choice", "encoding_format", "service_tier", "detail", "object", "effort",
        "reasoning_effort", "guided_decoding_backend", "format", "function_call", "truncation", "priority",
    }
)  # fmt: skip
_WORD = re.compile(r"[\w./:+-]{1,160}", re.ASCII)
_FIELD = re.compile(r"[A-Za-z$_][A-Za-z0-9_$-]{0,40}", re.ASCII)
#: Their keys are names that people chose.
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "metadata", "labels"})
_NAMES = frozenset({"name", "required", "user", "$ref", "tool_call_id", "id", "prompt_cache_key"})
_TOKENS = frozenset({"prompt", "prompt_token_ids", "input_ids", "input", "token_ids"})
_STOPS = frozenset({"stop"})
_LONGEST_STOP: Final = 16
_GRAMMARS = frozenset({"grammar", "guided_grammar", "chat_template", "lark", "ebnf", "structural_tag"})
_PATTERNS = frozenset({"pattern", "guided_regex", "regex"})
#: One white pixel in place of any picture.
_PIXEL: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8"
    "/x8AAwMCAO+ip1sAAAAASUVORK5CYII="
)
_DEEPEST: Final = 60


class Shaper:
    """Replaces what people wrote in bodies. Each one has a key of its own, kept nowhere."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def shape(self, path: str, content_type: str, body: bytes) -> bytes:
        """The body to write down. One that is no JSON is as long as it was and holds nothing of it."""
        try:
            found = json.loads(body)
            return json.dumps(_Walk(self._key).value("", found, 0), ensure_ascii=True).encode("ascii")
        except (ValueError, RecursionError):
            return b"x" * len(body)


class _Walk:
    """One body: what comes later depends on what came before."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._state = b""

    def value(self, name: str, value: Any, depth: int) -> Any:
        """What stands in place of a value under a name."""
        if depth > _DEEPEST:
            return None
        if isinstance(value, str):
            return self._string(name, value)
        if isinstance(value, Mapping):
            return self._mapping(name, value, depth)
        if isinstance(value, list):
            if name in _TOKENS and value and all(type(one) is int for one in value):
                return self._ids(value)
            return [self.value(name, one, depth + 1) for one in value]
        return value

    def _mapping(self, name: str, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        shaped = {}
        for key, one in value.items():
            if key in _GRAMMARS:
                continue
            named = name in _NAMED or not _FIELD.fullmatch(key)
            free = key.isdecimal() or not named
            shaped[key if free else self._name(key)] = self.value("" if named else key, one, depth + 1)
        return shaped

    def _string(self, name: str, text: str) -> str:
        if name in _PLAIN and _WORD.fullmatch(text):
            return text
        if name in _STOPS and len(text) <= _LONGEST_STOP:
            return text
        if name in _PATTERNS:
            return "[a-z ]{1,64}"
        if name in _NAMES:
            return self._name(text)
        if name == "url":
            return _PIXEL
        if name == "arguments":  # of a tool call in a conversation: engines read it as JSON
            return json.dumps({"value": self._text(text)})
        return self._text(text)

    def _name(self, text: str) -> str:
        """The same name everywhere in a recording."""
        head, slash, last = text.rpartition("/")
        if slash and head.startswith("#"):
            return f"{head}/{self._name(last)}"
        return "name_" + hashlib.blake2b(_bytes(text), digest_size=6, key=self._key).hexdigest()

    def _text(self, text: str) -> str:
        words: list[str] = []
        for place in range(0, len(text), _CHARACTERS):
            piece = text[place : place + _CHARACTERS]
            digest = self._next(_bytes(piece), -(-len(piece) // _PER_WORD))
            words += map(_LETTERS.__getitem__, digest)
        return " ".join(words)

    def _ids(self, ids: list[int]) -> list[int]:
        shaped: list[int] = []
        for place in range(0, len(ids), _IDS):
            piece = ids[place : place + _IDS]
            digest = self._next(repr(piece).encode(), 2 * len(piece))
            shaped += (
                _LOWEST_ID + int.from_bytes(digest[at : at + 2], "big") % _IDS_USED
                for at in range(0, len(digest), 2)
            )
        return shaped

    def _next(self, piece: bytes, length: int) -> bytes:
        """Bytes that stand for a stretch after all before it, at most 64."""
        self._state = hashlib.blake2b(self._state + piece, key=self._key).digest()
        return self._state[:length]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
