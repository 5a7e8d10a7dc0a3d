"""Golden transcripts of whole searches. `CULPA_UPDATE_GOLDEN=1 pytest tests/search/test_golden.py` rewrites them."""

import os
from pathlib import Path

import pytest
from tests.search.transcripts import SEPARATOR, read_header, transcript

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_whole_search_is_as_recorded(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    header, _, recorded = text.partition(f"{SEPARATOR}\n")
    seen = transcript(read_header(header))
    if os.environ.get("CULPA_UPDATE_GOLDEN"):
        path.write_text(f"{header}{SEPARATOR}\n{seen}", encoding="utf-8")
        return
    assert seen == recorded


def test_there_are_golden_transcripts() -> None:
    assert len(FILES) >= 15
