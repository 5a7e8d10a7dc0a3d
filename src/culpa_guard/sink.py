"""Where events go: one JSON object a line, a file for each process, every line written at once."""

import json
import os
import sys
import time
from pathlib import Path


class Sink:
    """Appends events to `guard-<pid>.jsonl` in a folder, or to standard error without one.

    Opened at the first event, and again after a fork, so that no two processes share a file. What can't be
    written is lost: the engine goes on.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._descriptor = -1
        self._pid = 0

    def write(self, event: str, **fields: object) -> None:
        """One line. Values that JSON has no word for are written as text; everything is ASCII."""
        line = json.dumps({"event": event, **fields, "time": round(time.time(), 3)}, default=str)
        try:
            if self._folder is None:
                sys.stderr.write(f"culpa-guard: {line}\n")
            else:
                os.write(self._open(self._folder), line.encode("ascii") + b"\n")
        except (OSError, ValueError):
            # A full disk or a closed stream must not end the engine under observation.
            self._pid = 0

    def close(self) -> None:
        """Give the file back; a later event opens it again."""
        if self._pid == os.getpid() and self._descriptor >= 0:
            os.close(self._descriptor)
        self._pid = 0

    def _open(self, folder: Path) -> int:
        pid = os.getpid()
        if self._pid != pid:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"guard-{pid}.jsonl"
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._pid = pid
        return self._descriptor
