"""Whether a line says of itself that it is no error."""

import re

from culpa.triage.lines import LogLine

_BELOW_ERROR = frozenset({"WARNING", "WARN", "INFO", "NOTICE", "DEBUG", "TRACE", "VERBOSE"})
_SPOKEN = re.compile(
    r"^(?:[\[(]?\d[\d:.,TZ/+ -]{3,40}[\])]?[ \t]{1,8})?"  # a time that no prefix rule knows
    r"(?:[\[<(]?(?:WARNING|WARN|INFO|NOTICE|DEBUG|TRACE|VERBOSE)(?:[\])>:|,-]|[ \t]|$)"
    r"|(?:[Ww]arning|[Ww]arn|[Ii]nfo|[Nn]otice|[Nn]ote|[Dd]ebug|[Tt]race):"
    r"|\[(?:warning|warn|info|notice|debug|trace)\]"
    r"|[WID]\d{4} \d\d:"  # glog
    r"|(?:\S{1,300}:\d{1,7}: )?[A-Z][A-Za-z]{1,60}Warning: "  # Python's warnings
    r"|(?:\S{1,80} )?level=\"?(?:warning|warn|info|debug|trace)\b)"
)


def below_error(line: LogLine) -> bool:
    """Whether the line's level, in its prefix or at the beginning of its text, is lower than an error's."""
    if line.level is not None:
        return line.level in _BELOW_ERROR
    return _SPOKEN.match(line.text) is not None
