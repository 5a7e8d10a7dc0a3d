"""Times in the notations of logs, and their order."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.triage.clock import stamp_nanoseconds, uptime_seconds, wall_second


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
    st.integers(-23 * 60, 23 * 60),
)
def test_container_stamps_are_nanoseconds_since_the_epoch(time: datetime, minutes: int) -> None:
    aware = time.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    assert stamp_nanoseconds(aware.isoformat(timespec="microseconds")) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2025-08-29T09:49:52.016527039Z", "2025-08-29T09:49:52.016527040Z"),
        ("2025-07-25T07:53:08.21748708+08:00", "2025-07-25T00:00:00Z"),
        ("2025-09-02T08:04:02.878085941-07:00", "2025-09-02T15:04:02.9Z"),
    ],
)
def test_stamps_compare_over_zones_and_fractions(first: str, second: str) -> None:
    a, b = stamp_nanoseconds(first), stamp_nanoseconds(second)
    assert a is not None
    assert b is not None
    assert a < b


@pytest.mark.parametrize(
    "text",
    [
        "07-15 21:01:02",
        "2026-07-15 21:01:02",
        "07/15/2026-21:01:02",
        "715 21:01:02.915052888",
        "Jul 15 21:01:02",
        "Wed Jul 15 21:01:02 2026",
    ],
)
def test_the_same_second_is_the_same_in_every_notation(text: str) -> None:
    assert wall_second(text) == wall_second("07-15 21:01:02")


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-45T99:99:99Z", "1.2.3"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert (stamp_nanoseconds(text), wall_second(text), uptime_seconds(text)) == (None, None, None)


def test_uptime_counts_minutes_seconds_milliseconds_and_microseconds() -> None:
    assert uptime_seconds("2.54.236.075") == pytest.approx(174.236075)
