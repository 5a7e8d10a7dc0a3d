"""Durations as people write them."""

import pytest
import typer

from culpa.cli.seconds import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5m", 90), (" 5 S ", 5)],
)
def test_duration_is_read(text: str, expected: float) -> None:
    assert seconds("--max-time", text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0", "-5", "5x", "1h 30", "٣m", "m", "9000h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        seconds("--max-time", text)
