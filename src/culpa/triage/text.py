"""Cleaning of raw log text: terminal escapes, carriage returns, control characters, length."""

import re

#: Longer lines are cut before any expression sees them, so that matching stays cheap. Configuration dumps of
#: 100 kB are on one line; what they say of a failure stands in front.
MAX_LINE = 8192

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b]{0,512}(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC up to their terminator
    r"|[ -/]{0,4}[0-~])"  # two-character escapes
    r"|\x9b[0-?]{0,32}[ -/]{0,4}[@-~]"  # CSI as one C1 byte
)
# Collectors write the escape byte as text, or lose it and keep the rest of a colour.
_SPELT_ESCAPES = re.compile(r"(?:\^\[|#033|\\x1b|\\u001b|\\033|ESC)\[[0-9;]{0,20}m")
_BARE_COLOUR = re.compile(r"(?:(?<=^)|(?<=\)))\[(?:[0-9]{1,3};?){1,4}m")
# Control characters, and those that turn or hide text in a terminal or a page.
_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def clean(raw: str, *, keep_end: bool = False) -> str:
    """The text of one line as a person may see it: no escapes, no control characters, tabs kept, cut to
    MAX_LINE, without blanks at the end unless they are kept.

    >>> clean("\\x1b[36m(Worker pid=1)\\x1b[0m ready")
    '(Worker pid=1) ready'
    """
    text = raw if len(raw) <= 2 * MAX_LINE else raw[: 2 * MAX_LINE]
    if not text.isascii() or not text.isprintable():
        text = _ESCAPES.sub("", text)
        text = _CONTROL.sub("", text)
    if "[" in text:
        text = _BARE_COLOUR.sub("", _SPELT_ESCAPES.sub("", text))
    return text[:MAX_LINE] if keep_end else text[:MAX_LINE].rstrip()


def segments(raw: str, *, keep_end: bool = False) -> list[str]:
    """The parts of a raw line between carriage returns, cleaned, without empty ones: progress bars redraw a
    line and an error may stand on any of the redrawn ones."""
    if "\r" not in raw:
        return [clean(raw, keep_end=keep_end)]
    if len(raw) > 64 * MAX_LINE:
        raw = raw[: 64 * MAX_LINE]
    parts = [text for part in raw.split("\r") if (text := clean(part, keep_end=keep_end)).strip()]
    return parts or [""]
