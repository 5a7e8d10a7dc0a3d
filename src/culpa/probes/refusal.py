"""Whether an engine declined a kind of request, as against failing at it."""

import re

from culpa.probes.answer import Answer
from culpa.probes.request import Request

_CANNOT = re.compile(r"not supported|unsupported|not implemented|requires|must be enabled|not available")
_COMMON_FIELDS = frozenset({"model", "messages", "prompt", "temperature", "max_tokens"})


def declined(request: Request, answer: Answer) -> bool:
    """True for a 4xx or 501, and for another 5xx that says of a field of the request that it can't be served.

    llama.cpp without Jinja templates, for one, answers tools with HTTP 500 "tools param requires --jinja flag".
    """
    if answer.refused:
        return True
    said = (answer.error or "").lower()
    fields = [re.escape(field.lower()) for field in request.body if field not in _COMMON_FIELDS]
    named = bool(fields) and re.search(rf"\b(?:{'|'.join(fields)})\b", said) is not None
    return answer.failure == "http_error" and named and _CANNOT.search(said) is not None
