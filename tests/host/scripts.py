"""Small Python scripts that play engines, and waiting for what they do."""

import os
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from culpa.host import EngineProcess


class Scripts:
    """Starts Python scripts as engines, all with one tag of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "engine.log"
        self.tag = f"test-{uuid.uuid4().hex}"

    def argv(self, script: str) -> list[str]:
        """The command line that runs a script."""
        return [sys.executable, "-I", "-S", "-u", "-c", textwrap.dedent(script)]

    async def start(
        self, script: str, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> EngineProcess:
        """Start a script as an engine."""
        env = dict(os.environ) if env is None else env
        return await EngineProcess.start(self.argv(script), env, cwd, self.log, self.tag)

    def lines(self) -> list[str]:
        """What the script has written so far, complete lines only."""
        text = self.log.read_text() if self.log.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def wait_for_lines(self, count: int = 1) -> list[str]:
        """Wait until the script has written so many lines."""
        wait_until(lambda: len(self.lines()) >= count)
        return self.lines()


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Poll until a condition holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"did not come true in {seconds} s")
        time.sleep(0.005)
