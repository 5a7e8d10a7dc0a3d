"""Reads the user's own failing requests: a JSON body, a JSON array, or JSON lines."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

from culpa.probes.request import CHAT, COMPLETIONS, EMBEDDINGS, Expectation, Probe, Request, Round, Span

_ENDPOINT_OF = {"messages": CHAT, "prompt": COMPLETIONS, "input": EMBEDDINGS}
_WRAPPER = frozenset({"endpoint", "body", "expect", "at_once", "repeat", "span"})
_MOST = 4096


class BadRequestFile(ValueError):
    """A request file that can't be used. The message is one clear line with file, place and reason."""


def user_probe(path: Path) -> Probe:
    """The workload that a request file describes. Raises BadRequestFile.

    Each entry is a bare body, whose endpoint follows from its keys (`messages`, `prompt`, `input`), or
    `{"endpoint": ..., "body": {...}, "expect": ..., "at_once": n, "repeat": n}`. Entries are asked one after
    the other, `at_once` copies of an entry together, the whole of that `repeat` times. Neighbours with a `span`
    (when they were under way, in seconds) are one round that keeps their order, overlap and cancellations.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequestFile(f"{path}: can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadRequestFile(f"{path}: is not UTF-8 text (byte {error.start})") from None
    entries = _entries(path, text)
    if not entries:
        raise BadRequestFile(f"{path}: holds no request")
    rounds: list[Round] = []
    for place, entry in entries:
        rounds += _rounds(place, entry)
    rounds = [
        one
        for recorded, run in groupby(rounds, key=lambda one: one[0].span is not None)
        for one in ([tuple(request for one in run for request in one)] if recorded else run)
    ]
    return Probe("request", tuple(rounds), source="user", description=f"the requests of {path.name}")


def _entries(path: Path, text: str) -> list[tuple[str, Any]]:
    """Each request of the text with the place it stands at, for messages."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) > 1 and _is_json(lines[0][1]):
            return [(f"{path}, line {number}", _line(path, number, line)) for number, line in lines]
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadRequestFile(f"{path}{place}: is no JSON: {_reason(error)}") from None
    if isinstance(whole, list):
        return [(f"{path}, request {number}", entry) for number, entry in enumerate(whole, 1)]
    return [(str(path), whole)]


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequestFile(f"{path}, line {number}: is no JSON: {_reason(error)}") from None


def _rounds(place: str, entry: Any) -> list[Round]:
    if not isinstance(entry, Mapping):
        raise BadRequestFile(f"{place}: a request must be a JSON object, not {type(entry).__name__}")
    if "body" not in entry:
        return [(Request(_guess(place, entry), entry),)]
    unknown = sorted(entry.keys() - _WRAPPER)
    if unknown:
        raise BadRequestFile(f"{place}: unknown field {unknown[0]!r} beside 'body' (known: {_known()})")
    body = entry["body"]
    if not isinstance(body, Mapping):
        raise BadRequestFile(f"{place}: 'body' must be a JSON object")
    endpoint = entry.get("endpoint")
    if endpoint is None:
        endpoint = _guess(place, body)
    if not isinstance(endpoint, str) or not endpoint.startswith("/"):
        raise BadRequestFile(f"{place}: 'endpoint' must be a path such as {CHAT!r}")
    request = Request(
        endpoint, body, expect=_expectation(place, entry.get("expect")), span=_span(place, entry.get("span"))
    )
    return [(request,) * _count(place, entry, "at_once")] * _count(place, entry, "repeat")


def _guess(place: str, body: Mapping[str, Any]) -> str:
    for key, endpoint in _ENDPOINT_OF.items():
        if key in body:
            return endpoint
    raise BadRequestFile(
        f"{place}: has none of {', '.join(_ENDPOINT_OF)}, so its endpoint is unknown; name one"
    )


def _count(place: str, entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key, 1)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
        raise BadRequestFile(f"{place}: {key!r} must be a whole number from 1 to {_MOST}")
    return value


def _expectation(place: str, value: Any) -> Expectation | None:
    """What the user expects; they vouch for it, so a text without it is a failure."""
    if value is None:
        return None
    if isinstance(value, str) and value:
        return Expectation(contains=value, certain=True)
    if not isinstance(value, Mapping) or not value or value.keys() - {"contains", "regex"}:
        raise BadRequestFile(f"{place}: 'expect' must be a text, or an object with 'contains' or 'regex'")
    contains, regex = value.get("contains"), value.get("regex")
    if any(one is not None and (not isinstance(one, str) or not one) for one in (contains, regex)):
        raise BadRequestFile(f"{place}: 'contains' and 'regex' must be texts that are not empty")
    try:
        re.compile(regex or "")
    except re.error as error:
        raise BadRequestFile(f"{place}: 'regex' is no regular expression: {error}") from None
    return Expectation(contains=contains, regex=regex, certain=True)


def _span(place: str, value: Any) -> Span | None:
    """When a recorded request was under way."""
    if value is None:
        return None
    problem = BadRequestFile(f"{place}: 'span' must be an object with 'start', and perhaps 'end', in seconds")
    if not isinstance(value, Mapping) or value.keys() - {field.name for field in fields(Span)}:
        raise problem
    start, end = value.get("start"), value.get("end")
    numbers = [one for one in (start, end) if one is not None]
    if start is None or any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
        raise problem
    if any(not 0 <= one < 1e9 for one in numbers):
        raise problem
    pieces, status = value.get("pieces", 0), value.get("status")
    if not isinstance(pieces, int) or not (status is None or isinstance(status, int)):
        raise problem
    return Span(float(start), end, value.get("given_up") is True, pieces, status)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _reason(error: Exception) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__


def _known() -> str:
    return ", ".join(sorted(_WRAPPER))
