"""The capacity that a living engine prints, against the one that was computed before it started."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from culpa.engines.command import parse_command
from culpa.engines.vllm_layout import launch_input
from culpa.layout import make_plan, read_shape

MAKE_CHECKPOINT = Path(__file__).parent.parent / "real" / "make_checkpoint.py"
PRINTED = re.compile(r"KV cache size: ([\d,]+) tokens")


@pytest.mark.engine
def test_the_capacity_is_the_one_that_the_engine_prints(vllm_python: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    subprocess.run(
        [vllm_python, str(MAKE_CHECKPOINT), str(folder)], check=True, capture_output=True, timeout=300
    )
    words = [
        "VLLM_CPU_KVCACHE_SPACE=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "OMP_NUM_THREADS=1",
        "VLLM_CPU_CI_ENV=1", vllm_python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder),
        "--enforce-eager",
        "--max-model-len", "16384", "--block-size", "32", "--host", "127.0.0.1", "--port", "0",
    ]  # fmt: skip
    launch = parse_command(words)
    found = launch_input(launch)
    plan = make_plan(read_shape(found.config), found.settings, found.tensors)
    log = tmp_path / "engine.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            launch.argv,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env=launch.environment(os.environ),
        )
    try:
        printed = _capacity(process, log)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert plan.capacity_tokens == printed


def _capacity(process: subprocess.Popen[bytes], log: Path) -> int:
    """What the log says once it says it; the engine is asked no more than that."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        found = PRINTED.search(log.read_text(errors="replace"))
        if found is not None:
            return int(found[1].replace(",", ""))
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)
    raise AssertionError("the engine printed no capacity")
