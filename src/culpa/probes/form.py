"""The form of an answer, where the request fixes one: JSON, tool calls, some text at all."""

import json
from collections.abc import Mapping
from typing import Any

from culpa.probes.answer import Answer

# Raw tool calls of common chat templates: in the text they mean that the engine's parser missed them.
_RAW_TOOL_CALLS = ("<tool_call>", "<function=", "[TOOL_CALLS]")


def form_fault(body: Mapping[str, Any], answer: Answer) -> str | None:
    """What was expected of an answer's form and isn't there, in a few words, or None."""
    if answer.embedding or "input" in body:
        return None
    if not answer.text and not answer.tool_calls and body.get("max_tokens") != 0:
        return "a text was expected"
    cut = answer.finish_reason == "length"
    form = body.get("response_format")
    structured = isinstance(form, Mapping) and form.get("type") in ("json_schema", "json_object")
    if structured and not cut and not answer.tool_calls and not _is_json(answer.text):
        return "a JSON text was expected"
    for call in answer.tool_calls:
        if not cut and not _is_json(call.partition("(")[2][:-1] or "{}"):
            return "the arguments of a tool call were expected as JSON"
    raw = next((mark for mark in _RAW_TOOL_CALLS if mark in answer.text), None)
    if body.get("tools") and raw and not answer.tool_calls:
        return f"a tool call was expected, not its raw text {raw!r}"
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
