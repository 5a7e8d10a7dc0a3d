"""The Python that has vLLM, for tests that ask the engine's own code."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def vllm_python() -> str:
    """That of CULPA_VLLM_PYTHON, or the one that `make vllm-env` makes."""
    own = os.environ.get("CULPA_VLLM_PYTHON")
    python = Path(own) if own else Path(__file__).parent.parent.parent / ".venvs" / "vllm" / "bin" / "python"
    if not python.exists():
        missing = "no vLLM: run `make vllm-env`, or set CULPA_VLLM_PYTHON"
        if os.environ.get("CULPA_REQUIRE_ENGINES"):
            pytest.fail(missing)
        pytest.skip(missing)
    return str(python)
