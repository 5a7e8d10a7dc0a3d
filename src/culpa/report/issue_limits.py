"""How much of each part of an issue is shown, and in which order parts give way where a form takes no more."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

#: What GitHub takes as the body of an issue, in characters; a little is kept for what a person adds.
GITHUB_LIMIT = 65_536
ROOM = GITHUB_LIMIT - 1_536


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each part: lines of logs, characters of one line, rows of the table of arms, settings listed,
    characters of a command, items of each list, characters of a sentence, and of the files of a reproduction."""

    log_lines: int = 120
    line_width: int = 400
    arms: int = 120
    settings: int = 200
    command: int = 12_000
    items: int = 80
    sentence: int = 1_200
    files: int = 30_000


_STEPS = (
    {"log_lines": 60},
    {"log_lines": 30, "line_width": 300, "files": 15_000},
    {"log_lines": 15, "line_width": 200},
    {"log_lines": 6, "files": 0},
    {"settings": 60},
    {"arms": 40},
    {"settings": 20},
    {"items": 30, "sentence": 500},
    {"arms": 15, "command": 6_000},
    {"items": 12, "settings": 8, "sentence": 250},
    {"arms": 6, "command": 2_500, "log_lines": 3, "line_width": 120, "items": 6, "sentence": 160},
)


def ever_less() -> Iterator[Limits]:
    """Limits from what is best to read to what always fits: logs give way first, then settings, then arms."""
    limits = Limits()
    yield limits
    for step in _STEPS:
        limits = replace(limits, **step)
        yield limits
