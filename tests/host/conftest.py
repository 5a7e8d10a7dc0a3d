"""Real small processes in tests, none of which outlives its test, even one that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.scripts import Scripts

from culpa.host import end_leftovers


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    """Scripts whose processes are all ended after the test; one that still lived then fails the test."""
    scripts = Scripts(tmp_path)
    try:
        yield scripts
    finally:
        survivors = end_leftovers(scripts.tag, tmp_path)
    assert not survivors
