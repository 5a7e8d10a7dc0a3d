"""`culpa verify` on llama.cpp's server: a healthy one passes, faulty ones don't."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def verify(llamacpp: str, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "culpa", "verify", "--suite", "quick", "--json", "--quiet", *words]
    index = command.index("--")
    done = subprocess.run(
        [*command[: index + 1], llamacpp, *command[index + 1 :]],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_healthy_server_passes_long_prompts_included(llamacpp: str) -> None:
    code, found = verify(llamacpp, "--", "--ctx-size", "2048", "--parallel", "2")
    assert code == 0
    assert {one["name"]: one["status"] for one in found["probes"]}["cold"] == "right"
    assert found["exposure"]["excluded_rate_95"] < 0.3
    assert found["kernel_log"]


def test_a_server_that_can_not_start_fails_with_its_own_words(llamacpp: str) -> None:
    launch = ("--ctx-size", "1024", "--parallel", "2", "--cache-type-v", "q4_0", "--flash-attn", "off")
    code, found = verify(llamacpp, "--", *launch)
    assert code == 1
    assert "quantized V cache" in found["incident"]["root"]["text"]


def test_its_own_answers_are_compared_with_those_of_another_cache_type(llamacpp: str, tmp_path: Path) -> None:
    golden = str(tmp_path / "golden.json")
    code, _ = verify(llamacpp, "--record-golden", golden, "--", "--ctx-size", "2048")
    assert code == 0
    code, found = verify(llamacpp, "--golden", golden, "--", "--ctx-size", "2048")
    assert code == 0, found["probes"]
    assert found["golden"] == golden
