"""What a process said last: the only explanation of a bad exit where no event gives one."""

import re

from culpa.triage.levels import below_error
from culpa.triage.lines import LogLine

# The shapes in which programs of any language report the error that ends them.
_ERROR_SHAPE = re.compile(
    r"^\[?(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE)(?:[\]:,|-]|[ \t]|$)"
    r"|^(?:[A-Za-z_]\w{0,80}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Failure)(?::|$)"
    r"|\b[A-Z][a-z]\w{0,80}(?:Error|Exception): "
    r"|^panic: |^fatal error: |^thread '.{0,80}' (?:\(\d{1,10}\) )?panicked at "
    r"|^(?:\S{1,200}: )?(?:[Ee]rror|[Ff]atal|FATAL|ERROR): "
)
_ERROR_WORD = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure)|panic|exception|abort(?:ed|ing)|cannot|can't|could not|unable to|"
    r"no such|not found|invalid|unknown|unsupported|refused|denied)\b",
    re.IGNORECASE,
)
#: How far above the last line a line may stand that only has an error's word in it.
_NEAR = 40


class LastWords:
    """Remembers the last line, and the last that looks like an error, while the log is read."""

    def __init__(self) -> None:
        self._shaped: LogLine | None = None
        self._worded: LogLine | None = None
        self._plain: LogLine | None = None
        self._closed = False

    @property
    def line(self) -> LogLine | None:
        """The last line that looks like an error, or else the last one at all; None if every line says that
        it is harmless."""
        if self._shaped is not None:
            return self._shaped
        worded, plain = self._worded, self._plain
        if worded is not None and plain is not None and plain.number - worded.number > _NEAR:
            return plain
        return worded or plain

    @property
    def error(self) -> LogLine | None:
        """The line, if it looks like an error."""
        line = self.line
        return line if line is not None and line in (self._shaped, self._worded) else None

    def note(self, line: LogLine) -> None:
        """Take a line that is no part of a traceback and that no signature calls harmless."""
        if self._closed or below_error(line):
            return
        text = line.text.strip()
        if not text:
            return
        self._plain = line
        if _ERROR_SHAPE.search(text):
            self._shaped = line
        elif _ERROR_WORD.search(text):
            self._worded = line

    def forget(self) -> None:
        """What was said so far, the process has survived."""
        self._shaped = self._worded = self._plain = None

    def close(self) -> None:
        """An end that was asked for begins: nothing explains it but that."""
        self.forget()
        self._closed = True
