"""The guard's mirror follows vLLM's own scheduler, through prefix hits, preemptions and aborts."""

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("depth", [1, 3], ids=["one step at a time", "three steps ahead"])
def test_the_mirror_has_the_schedulers_rows_and_finds_nothing(
    vllm: str, checkpoint: Path, depth: int
) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    script = Path(__file__).with_name("drive_scheduler.py")
    done = subprocess.run(
        [vllm, str(script), str(checkpoint), "--depth", str(depth), "--seed", str(depth)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["violations"] == []
    assert (seen["row_differs"], seen["state_not_in_row"], seen["state_twice"]) == (0, 0, 0)
    # A load that never does these shows nothing.
    assert min(seen["preempted"], seen["prefix_hits"], seen["aborted"]) > 3
