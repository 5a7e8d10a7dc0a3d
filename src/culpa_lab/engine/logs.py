"""Log lines in the shapes of vLLM 0.32: who speaks, level, time, place, message."""

import os
import sys
import time
import traceback
from pathlib import Path
from typing import IO


class Log:
    """Writes lines such as `(EngineCore pid=7) INFO 12-01 12:00:00 [core.py:91] message`.

    Silent until `open` names the process, so that the engine can also run inside another program. A line is
    written in one piece: lines of several processes never mix.
    """

    def __init__(self) -> None:
        self._prefix = ""
        self._out: IO[str] | None = None

    def open(self, process: str, out: IO[str] | None = None) -> None:
        """Speak as `process` from now on; after a fork the new process opens the log again."""
        self._prefix = f"({process} pid={os.getpid()})"
        self._out = out or sys.stdout

    @property
    def prefix(self) -> str:
        """Who speaks, such as `(APIServer pid=7)`."""
        return self._prefix

    def info(self, message: str) -> None:
        """Something that is as it should be."""
        self._write("INFO", message, _place())

    def warning(self, message: str) -> None:
        """Something that the user may not expect."""
        self._write("WARNING", message, _place())

    def error(self, message: str) -> None:
        """Something that went wrong."""
        self._write("ERROR", message, _place())

    def exception(self, message: str, error: BaseException) -> None:
        """A message and the traceback of `error`, each line with the prefix, as vLLM's formatter does it."""
        text = "".join(traceback.format_exception(error))
        self._write("ERROR", f"{message}\n{text}".rstrip("\n"), _place())

    def raw(self, text: str) -> None:
        """A line that no logger formats, such as those of the HTTP server; the prefix stays."""
        self._emit("".join(f"{self._prefix} {line}\n" for line in text.split("\n")))

    def _write(self, level: str, message: str, place: str) -> None:
        head = f"{self._prefix} {level} {time.strftime('%m-%d %H:%M:%S')} [{place}] "
        self._emit("".join(f"{head}{line}\n" for line in message.split("\n")))

    def _emit(self, text: str) -> None:
        if self._out is None:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except (BrokenPipeError, ValueError):
            self._out = None  # nobody reads any more; there is no place left to say so


def _place() -> str:
    frame = sys._getframe(2)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


log = Log()
