"""Golden files of the reports: compared, or rewritten with CULPA_UPDATE_GOLDEN=1."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """The text is what the golden file holds."""
    path = FOLDER / name
    if os.environ.get("CULPA_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
