"""How the comparison is printed and kept."""

import re
from io import StringIO
from pathlib import Path

from rich.console import Console

from culpa.model.mitigation import Exposure, Measured, Mitigation, NotOffered, Option, Workaround
from culpa.report.mitigation import FILE, print_mitigation, read_mitigation, write_mitigation

FOUND = Mitigation(
    culpa_version="0.1.0",
    started="2026-12-01T10:00:00+00:00",
    seconds=60.0,
    command="vllm serve m -pp 3",
    workload="3 prompts of about 256 tokens one after the other",
    repeats=3,
    failing=(
        Measured("throughput", 100.0, 90.0, 110.0, 3),
        Measured("capacity", 340485.0, 340485.0, 340485.0, 3),
    ),
    options=(
        Option(
            "execution=eager",
            (("execution", "graphs", "eager"),),
            "vllm serve m -pp 3 --enforce-eager",
            Exposure(3, 27, 0.6316, 0.105),
            (
                Measured("throughput", 40.0, 38.0, 41.0, 3, 0.4, 0.35, 0.46),
                Measured("capacity", 340485.0, 340485.0, 340485.0, 3, 1.0, 1.0, 1.0),
            ),
            1.58,
            (Workaround("vllm-63505", "https://github.com/vllm-project/vllm/issues/63505", "closed"),),
            "passed",
        ),
    ),
    not_offered=(
        NotOffered((("prefix_caching", "on", "off"),), "symptom_shift", "gibberish in its place (trial 3)"),
    ),
    caveats=("it is slow\x1b[31m today",),
)


def printed(found: Mitigation, width: int = 80) -> str:
    out = StringIO()
    print_mitigation(found, Console(file=out, width=width, markup=False, highlight=False))
    return out.getvalue()


def test_value_spread_ratio_and_interval_stand_in_the_table() -> None:
    text = printed(FOUND)
    for part in ("100", "90.0-110", "40.0", "38.0-41.0", "x0.40", "(0.35-0.46)", "340,485", "x1.00", "1.58"):
        assert part in text, part


def test_the_command_stands_whole_with_a_comment_on_when_to_remove_it() -> None:
    lines = [line.strip() for line in printed(FOUND).splitlines()]
    place = lines.index("vllm serve m -pp 3 --enforce-eager")
    assert lines[place - 3] == "# stands in for the time being: execution=eager in place of graphs"
    assert (
        lines[place - 2]
        == "# remove it when this passes on a newer release: culpa verify -- vllm serve m -pp 3"
    )
    assert lines[place - 1] == "# and watch https://github.com/vllm-project/vllm/issues/63505"


def test_what_it_is_and_how_far_it_is_known_is_said_and_nothing_stronger() -> None:
    text = " ".join(printed(FOUND).split())
    assert "A contrast that passes with this exposure: 3 launches, 27 requests" in text
    assert "A known upstream workaround" in text
    assert "The cause is still there." in text
    assert not re.search(r"\bfix", text, re.IGNORECASE)


def test_a_symptom_shift_stands_under_what_is_not_offered() -> None:
    text = printed(FOUND)
    assert text.index("not offered") < text.index("prefix_caching=off: gibberish in its place")


def test_no_escape_reaches_the_terminal() -> None:
    assert "\x1b" not in printed(FOUND)


def test_the_table_fits_into_80_columns() -> None:
    table = printed(FOUND).split("note:")[0]
    assert max(map(len, table.splitlines())) <= 80


def test_it_is_read_from_the_folder_as_it_was_written(tmp_path: Path) -> None:
    assert read_mitigation(tmp_path) is None
    assert write_mitigation(FOUND, tmp_path) == tmp_path / FILE
    assert read_mitigation(tmp_path) == FOUND


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"schema": "culpa.mitigation/1"}')
    assert read_mitigation(tmp_path) is None
