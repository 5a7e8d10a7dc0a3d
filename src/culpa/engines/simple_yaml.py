"""The part of YAML that configuration files of engines use: nested mappings, lists, scalars, JSON values.

A full YAML reader would be a dependency for a handful of lines. What this one does not know (anchors, tags,
block text, documents) it refuses, with the line, instead of guessing.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_KEY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*|'[^']*'|\"[^\"]*\")\s*:(?:\s+(?P<value>.*))?")
_NUMBER = re.compile(r"[+-]?(\d+|\d+\.\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "on", "On"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "off", "Off"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class NotSimple(ValueError):
    """The text uses more of YAML than is read here; the message names the line."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def parse_simple_yaml(text: str) -> dict[str, Any]:
    """The mapping that the text holds. Raises NotSimple."""
    lines = [
        line for line in map(_line, range(1, text.count("\n") + 2), text.split("\n")) if line is not None
    ]
    if not lines:
        return {}
    value, rest = _block(lines, 0)
    if rest != len(lines):
        raise NotSimple(f"line {lines[rest].number}: indentation that does not fit")
    if not isinstance(value, dict):
        raise NotSimple(f"line {lines[0].number}: a mapping is expected")
    return value


def _line(number: int, raw: str) -> _Line | None:
    text = _without_comment(raw.rstrip("\r"))
    if not text.strip() or (text.strip() == "---" and number == 1):
        return None
    indent = len(text) - len(text.lstrip(" "))
    if text[indent] == "\t":
        raise NotSimple(f"line {number}: a tab as indentation")
    if text.strip() in ("---", "...") or text.lstrip()[0] in "&*!|>%@`":
        raise NotSimple(f"line {number}: {text.strip()!r}")
    return _Line(number, indent, text.strip())


def _without_comment(text: str) -> str:
    quote = None
    for index, character in enumerate(text):
        if quote is not None:
            quote = None if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (index == 0 or text[index - 1].isspace()):
            return text[:index]
    return text


def _block(lines: list[_Line], index: int) -> tuple[Any, int]:
    """The mapping or list that begins at a line, and the index behind it."""
    indent = lines[index].indent
    if lines[index].text.startswith("-") and not _NUMBER.fullmatch(lines[index].text):
        items: list[Any] = []
        while index < len(lines) and lines[index].indent == indent and lines[index].text.startswith("-"):
            item = lines[index].text[1:].strip()
            if not item or _KEY.fullmatch(item):
                raise NotSimple(f"line {lines[index].number}: a list of lists or mappings")
            items.append(_scalar(item, lines[index].number))
            index += 1
        return items, index
    mapping: dict[str, Any] = {}
    while index < len(lines) and lines[index].indent == indent:
        line = lines[index]
        match = _KEY.fullmatch(line.text)
        if match is None:
            raise NotSimple(f"line {line.number}: {line.text!r}")
        key, index = match["key"].strip("'\""), index + 1
        if key in mapping:
            raise NotSimple(f"line {line.number}: key {key!r} is given twice")
        if match["value"]:
            mapping[key] = _scalar(match["value"], line.number)
        elif index < len(lines) and (
            lines[index].indent > indent
            or (lines[index].indent == indent and lines[index].text.startswith("- "))
        ):
            mapping[key], index = _block(lines, index)
        else:
            mapping[key] = None
    return mapping, index


def _scalar(text: str, number: int) -> Any:
    text = text.strip()
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
        if text[0] == "[" and text[-1] == "]" and not re.search(r"[\[\]{}'\"]", text[1:-1]):
            return [_scalar(part, number) for part in text[1:-1].split(",") if part.strip()]
        raise NotSimple(f"line {number}: {text!r}")
    if text[:1] in ("&", "*", "!", "|", ">", "%", "@", "`"):
        raise NotSimple(f"line {number}: {text!r}")
    if text[:1] == '"':
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise NotSimple(f"line {number}: {text!r}") from None
        return value
    if text[:1] == "'":
        if len(text) < 2 or text[-1] != "'":
            raise NotSimple(f"line {number}: {text!r}")
        return text[1:-1].replace("''", "'")
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    return text
