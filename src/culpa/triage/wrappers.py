"""Records of collectors that hold a line of the log in something else: JSON objects, tracebacks on one line."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

#: Where records keep the line itself, the most specific first, and where they keep time, level and speaker.
_TEXT = ("log", "MESSAGE", "textPayload", "message", "msg", "line", "text", "body", "@message")
_TIME = (
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "receiveTimestamp",
    "__REALTIME_TIMESTAMP",
    "eventTime",
    "date",
)
_LEVEL = ("level", "severity", "levelname", "log.level", "lvl")
_INSIDE = ("jsonPayload", "fields", "record", "data", "_source")
#: Docker cuts a line into records of this many bytes; only the last one ends with a newline.
_DOCKER_PART = 16_000
_PRIORITIES = {"0": "CRITICAL", "1": "CRITICAL", "2": "CRITICAL", "3": "ERROR"}
#: Severities that a collector gives by stream and not by content; nothing may be concluded from them.
_BY_STREAM = frozenset({"textPayload", "log", "MESSAGE"})


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """What a JSON record holds: the text, and what it says about it. `partial` means that the line goes on."""

    text: str
    time: str | None = None
    level: str | None = None
    unit: str | None = None
    pid: int | None = None
    place: str | None = None
    rank: int | None = None
    partial: bool = False
    stream: str = ""


def json_record(text: str) -> JsonRecord | None:
    """The record in a text that is a JSON object with a line of a log in it; None for anything else."""
    if not text.startswith("{") or '"' not in text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _record(found, 0) if isinstance(found, dict) else None


def _record(found: Mapping[str, object], depth: int) -> JsonRecord | None:
    key, inner = _line_of(found)
    if inner is None and depth < 2:
        for name in _INSIDE:
            below = found.get(name)
            if isinstance(below, dict) and (record := _record(below, depth + 1)) is not None:
                return JsonRecord(
                    record.text,
                    _time_of(found) or record.time,
                    _level_of(found) or record.level,
                    rank=_rank_of(found),
                )
    if inner is None:
        return None
    unit = found.get("SYSLOG_IDENTIFIER") or found.get("_COMM")
    if found.get("_TRANSPORT") == "kernel":
        unit = "kernel"
    source = found.get("filename") or found.get("function")
    number = found.get("line_number", found.get("line"))
    return JsonRecord(
        text=inner,
        time=_time_of(found),
        level=None if key in _BY_STREAM else _level_of(found),
        unit=str(unit) if unit else None,
        pid=_number(found.get("_PID") or found.get("pid") or found.get("process")),
        place=f"{source}:{number}" if isinstance(source, str) and number is not None else None,
        rank=_rank_of(found),
        partial=key == "log" and len(inner) >= _DOCKER_PART and not inner.endswith("\n"),
        stream=str(found.get("stream") or ""),
    )


def _line_of(found: Mapping[str, object]) -> tuple[str, str | None]:
    for key in _TEXT:
        value = found.get(key)
        if isinstance(value, str):
            return key, value
        # journald gives what is no UTF-8 as a list of bytes
        if (
            key == "MESSAGE"
            and isinstance(value, list)
            and all(isinstance(one, int) and 0 <= one < 256 for one in value)
        ):
            return key, bytes(value).decode("utf-8", "replace")
    return "", None


def _time_of(found: Mapping[str, object]) -> str | None:
    for key in _TIME:
        value = found.get(key)
        if isinstance(value, str) and value:
            return value[:64]
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e20:
            return repr(value)
    return None


def _level_of(found: Mapping[str, object]) -> str | None:
    for key in _LEVEL:
        value = found.get(key)
        if isinstance(value, str) and value:
            return value.upper()[:16]
    priority = found.get("PRIORITY")
    return _PRIORITIES.get(priority) if isinstance(priority, str) else None


def _rank_of(found: Mapping[str, object]) -> int | None:
    span = found.get("span")
    rank = span.get("rank") if isinstance(span, dict) else found.get("rank")
    return _number(rank)


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 10**10 else None
    return (
        int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 11
        else None
    )


TRACEBACK = "Traceback (most recent call last):"
_ESCAPED = re.compile(r"(?:\\r)?\\n|#012|\\u000a|\u2424")
_FRAME = re.compile(r'\s{1,20}(?=File "[^"]{1,400}", line \d{1,9})')
_IN_FRAME = re.compile(r'^File "[^"]{1,400}", line \d{1,9}(?:, in (?:<\w{1,40}>|[\w.<>]{1,200}))?')
_FINAL = re.compile(
    r"\s((?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{0,80}(?:Error|Exception|Interrupt|Exit|OutOfResources|Timeout)(?::\s.*|:?$))"
)
_CHAINED = re.compile(
    r"\s{0,20}((?:The above exception was the direct cause|During handling of the above exception)[^:]{1,60}:)\s{0,20}"
)


def unfold_traceback(text: str) -> list[str]:
    """The lines of a traceback that a collector has put on one line, with its newlines escaped or as blanks. Any
    other text is given back alone."""
    start = text.find(TRACEBACK)
    if start < 0 or len(text) < start + len(TRACEBACK) + 4:
        return [text]
    if _ESCAPED.search(text, start):
        return [part for part in _ESCAPED.split(text) if part.strip()]
    if 'File "' not in text[start:]:
        return [text]
    lines: list[str] = []
    for block in _CHAINED.split(text):
        lines.extend(_unfold_blanks(block))
    return lines


def _unfold_blanks(block: str) -> list[str]:
    parts = [part for part in _FRAME.split(block) if part.strip()]
    lines: list[str] = []
    for part in parts:
        frame = _IN_FRAME.match(part)
        if frame is None:
            lines.append(part.strip())
            continue
        lines.append(f"  {frame[0]}")
        rest = part[frame.end() :]
        final = _FINAL.search(rest)
        code = (rest[: final.start()] if final else rest).strip()
        if code:
            lines.append(f"    {code}")
        if final:
            lines.append(final[1].strip())
    return lines
