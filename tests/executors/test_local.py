"""The local executor: a launch becomes a running engine."""

import asyncio
import json
import sys
from pathlib import Path

from culpa.executors import Executor, LocalExecutor, RunningEngine
from culpa.host import end_leftovers
from culpa.model import Launch

SCRIPT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_the_assignments_of_the_launch_are_made_in_the_surrounding_environment(tmp_path: Path) -> None:
    launch = Launch((sys.executable, "-c", SCRIPT), env=(("SET", "new"), ("ABSENT", None)))
    executor: Executor = LocalExecutor({"KEPT": "kept", "SET": "old", "ABSENT": "there"})
    log = tmp_path / "engine.log"

    async def run() -> None:
        engine: RunningEngine = await executor.start(launch, log, "test-local-executor")
        try:
            assert await engine.exited() == 0
        finally:
            await engine.stop()
        seen = json.loads(log.read_text())
        assert (seen["SET"], seen["KEPT"], "ABSENT" in seen) == ("new", "kept", False)

    try:
        asyncio.run(run())
    finally:
        end_leftovers("test-local-executor", tmp_path)
