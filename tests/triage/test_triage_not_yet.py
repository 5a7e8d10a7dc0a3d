"""What the reader does not understand yet, since it belongs to the stand-alone `culpa triage`.

An entry that starts to hold must move to the tests proper.
"""

import pytest

from culpa.triage import LogReader

#: Name, reason, lines, and the 1-based line that a reader who knows the shape would call the root.
NOT_YET: list[tuple[str, str, list[str], int]] = [
    (
        "CRI partial lines",
        "parts marked P must be joined before they are matched",
        [
            "2025-07-25T07:53:08.217487080Z stderr P torch.AcceleratorError: CUDA error: an illegal",
            "2025-07-25T07:53:08.217487090Z stderr F  memory access was encountered",
        ],
        1,
    ),
    (
        "hard-wrapped paste",
        "the width of the paste must be found and its lines joined",
        [
            "(Worker_TP1 pid=7) DEBUG 09-17 00:55:51 [multiproc_executor.py:560] torch.Out",
            "OfMemoryError: CUDA out of",
            " memory. Tried to allocate 2 GiB",
        ],
        1,
    ),
    (
        "traceback on one line",
        "a collector escaped the newlines of a whole traceback",
        [
            r"2024-04-18T18:44:03.144-04:00 Traceback (most recent call last):\n  File x, line 1\nValueError: bad"
        ],
        1,
    ),
    (
        "TGI, JSON",
        "records of the router are JSON objects",
        ['{"timestamp":"2024-06-03T07:12:23Z","level":"ERROR","message":"Shard 0 crashed"}'],
        1,
    ),
    (
        "ollama",
        "records are key=value pairs",
        ['time=2026-07-21T13:44:38.516+08:00 level=ERROR source=runner.go:405 msg="runner has terminated"'],
        1,
    ),
    (
        "job platform",
        "prefix and suffix of a job platform",
        ["  |   | 2025-11-04 10:08:01.175639 master-0 >> ERROR 11-04 10:08:01 [core.py:1] device lost |  "],
        1,
    ),
]


@pytest.mark.parametrize(("name", "reason", "lines", "root"), NOT_YET, ids=[entry[0] for entry in NOT_YET])
def test_a_shape_that_is_not_read_yet_is_still_not_read(
    name: str, reason: str, lines: list[str], root: int
) -> None:
    reader = LogReader("generic")
    reader.feed(lines)
    # Without an exit code the last line counts for nothing by itself: only a shape that is known does.
    incident = reader.incident(alive=False)
    found = incident.root.line if incident is not None and incident.root is not None else None
    cut = incident is not None and (incident.event or "").startswith("traceback without its end")
    assert found != root or cut, f"{name} is read now ({reason}): move it to the tests proper"
