"""The logs that were read and what was made of them."""

from bisect import bisect_right
from dataclasses import dataclass

from culpa.model.diagnosis import XidSeen
from culpa.model.outcome import Incident


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log that was read: its name as the user gave it, and the number of its first line, which counts through all
    logs of one reading."""

    name: str
    first_line: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of one or more logs. `incident` is None if no failure is to be seen; `xids` are then the driver's
    messages that were read all the same. `next_steps` are what to do."""

    files: tuple[LogFile, ...]
    lines: int
    incident: Incident | None
    next_steps: tuple[str, ...] = ()
    xids: tuple[XidSeen, ...] = ()

    def locate(self, line: int) -> tuple[str, int]:
        """File and 1-based line in it of a line that counts through all logs."""
        if not self.files:
            return "-", line
        index = max(bisect_right([file.first_line for file in self.files], line) - 1, 0)
        file = self.files[index]
        return file.name, line - file.first_line + 1
