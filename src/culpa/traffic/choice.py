"""Which recorded requests are meant: `--only 17`, `10-20`, `last:50`, `unanswered`, `/v1/completions`."""

import re
from collections.abc import Callable, Sequence

from culpa.traffic.recorded import BadRecording, Recorded

_RANGE = re.compile(r"(\d{1,12})?-(\d{1,12})?", re.ASCII)
_LAST = re.compile(r"last:(\d{1,12})", re.ASCII)
_KINDS: dict[str, Callable[[Recorded], bool]] = {
    "answered": lambda one: one.outcome == "answered",
    "cancelled": lambda one: one.outcome == "cancelled",
    "unanswered": lambda one: one.open,
}


def chosen(requests: Sequence[Recorded], texts: Sequence[str]) -> tuple[Recorded, ...]:
    """The requests that any of the texts names, in their order; all where there is no text. Raises BadRecording.

    A text is a list with commas of places (counted from 0), ranges of places, `last:N`, `answered`, `cancelled`,
    `unanswered`, and paths.
    """
    if not texts:
        return tuple(requests)
    tests = [_test(requests, part.strip()) for text in texts for part in text.split(",")]
    found = tuple(one for one in requests if any(test(one) for test in tests))
    if not found:
        raise BadRecording(f"--only {','.join(texts)}: none of the {len(requests)} requests is meant by that")
    return found


def _test(requests: Sequence[Recorded], text: str) -> Callable[[Recorded], bool]:
    if text in _KINDS:
        return _KINDS[text]
    if text.startswith("/"):
        return lambda one: one.path.partition("?")[0] == text
    if text.isdecimal() and text.isascii() and len(text) <= 12:
        place = int(text)
        return lambda one: one.index == place
    last = _LAST.fullmatch(text)
    if last:
        first = len(requests) - int(last[1])
        return lambda one: one.index >= first
    between = _RANGE.fullmatch(text)
    if between and (between[1] or between[2]):
        low, high = int(between[1] or 0), int(between[2] or 10**12)
        return lambda one: low <= one.index <= high
    raise BadRecording(
        f"--only {text!r}: give places (17), ranges (10-20, 100-), last:50, answered, cancelled, unanswered, or a "
        "path (/v1/completions)"
    )
