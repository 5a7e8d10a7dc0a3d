"""The adapter against a real vLLM on the CPU.

Run with: make vllm-env, then pytest -m engine tests/real/test_vllm_adapter.py
"""

import asyncio
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from culpa.engines import find_adapter, parse_command
from culpa.host import EngineProcess, LogTail, free_port, read_machine
from culpa.model import Configuration

START_SECONDS = 240

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(START_SECONDS + 60),
]


def get(url: str) -> object:
    """The decoded JSON, or the text, of an answer; None while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


async def ready(engine: EngineProcess, url: str) -> None:
    """Wait until the health check answers; fails if the engine ends first."""
    for _ in range(START_SECONDS):
        assert engine.exit_code() is None, engine.log.read_text(errors="replace")[-4000:]
        if get(url) is not None:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"not ready after {START_SECONDS} s")


def test_a_real_server_says_what_it_is(vllm: str, checkpoint: Path, tmp_path: Path) -> None:
    launch = parse_command(
        [
            "VLLM_CPU_KVCACHE_SPACE=1", "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", vllm, "-m",
            "vllm.entrypoints.openai.api_server", "--model", str(checkpoint), "--enforce-eager",
            "--max-num-batched-tokens", "1024",
        ]
    )  # fmt: skip
    adapter = find_adapter(launch, None)
    reading = adapter.read(launch, read_machine())
    suspect = {factor.name: factor.suspect for factor in reading.factors}
    assert suspect["execution"] == "eager"
    assert suspect["max_num_batched_tokens"] == "1024"

    arm = Configuration.of({**suspect, "prefix_caching": "off"})
    prepared = adapter.prepare(adapter.apply(launch, arm), free_port(), tmp_path)

    async def look() -> tuple[dict[str, str], dict[str, object]]:
        env = prepared.launch.environment(os.environ)
        engine = await EngineProcess.start(prepared.launch.argv, env, None, tmp_path / "engine.log", "test")
        try:
            await ready(engine, prepared.base_url + prepared.health_path)
            api = {path: get(prepared.base_url + path) for path in adapter.api_paths()}
            return adapter.effective(LogTail(engine.log).read(), api), api
        finally:
            assert (await engine.stop()).survivors == ()

    effective, api = asyncio.run(look())
    assert adapter.mismatches(arm, effective) == ()
    assert effective["execution"] == "eager"
    assert effective["prefix_caching"] == "off"
    assert effective["mamba_cache_mode"] == "none"
    assert effective["cpu_kv_cache_space"] == "1"
    (complaint,) = adapter.mismatches(Configuration.of({"execution": "compiled"}), effective)
    assert "eager" in complaint
    limits = adapter.limits(api, effective)
    assert limits.model == str(checkpoint)
    assert (limits.context_tokens, limits.batch_tokens, limits.parallel) == (32768, 1024, 128)
