"""The ring on disk: what it keeps, what it lets go, and that a torn end loses nothing before it."""

import errno
import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.recorder import Keep, Ring
from culpa.traffic import BadRecording, read_folder

FIELDS = {"method": "POST", "path": "/v1/completions", "type": "application/json"}


def body(number: int, size: int = 0) -> bytes:
    return json.dumps({"prompt": f"number {number} " + "x" * size}).encode()


def numbers(folder: Path) -> list[int]:
    found = [json.loads(one.content.read())["prompt"].split()[1] for one in read_folder(folder).requests]
    return [int(one) for one in found]


def filled(ring: Ring, count: int, *, size: int = 0, step: float = 1.0, answered: bool = True) -> None:
    for number in range(count):
        name = ring.request(number * step, FIELDS, body(number, size))
        if answered:
            ring.end(name, number * step + step / 2, {"outcome": "answered", "status": 200}, b"{}")


def test_the_last_requests_are_kept_and_exactly_those_are_read(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(requests=100, seconds=None), {})
    filled(ring, 1000)
    assert 100 <= ring.kept <= 120
    ring.seal(1000.0, "stopped")
    assert numbers(tmp_path) == list(range(900, 1000))


def test_the_last_minutes_are_kept(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(seconds=60.0), {})
    filled(ring, 1000)
    ring.seal(1000.0, "stopped")
    assert numbers(tmp_path) == list(range(940, 1000))
    assert ring.kept <= 75


def test_the_disk_is_never_filled_beyond_its_bound(tmp_path: Path) -> None:
    most = 1 << 20
    ring = Ring(tmp_path, Keep(requests=10**6, seconds=None, most_bytes=most), {})
    for number in range(300):
        name = ring.request(float(number), FIELDS, body(number, 10_000))
        ring.end(name, number + 0.5, {"outcome": "answered"}, b"")
        assert sum(path.stat().st_size for path in tmp_path.glob("*.seg")) <= most * 1.2
    ring.seal(300.0, "stopped")
    assert numbers(tmp_path)[-1] == 299


def test_a_request_that_is_still_open_stays_however_old_it_is(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(requests=50, seconds=None), {})
    open_one = ring.request(0.0, FIELDS, body(10_000, 5000))
    filled(ring, 500)
    ring.seal(500.0, "upstream died")
    found = read_folder(tmp_path)
    assert numbers(tmp_path) == [10_000, *range(450, 500)]
    assert found.requests[0].open
    assert open_one == 0
    assert found.died


def test_a_request_that_ends_after_it_was_carried_on_has_its_end(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(requests=50, seconds=None), {})
    name = ring.request(0.0, FIELDS, body(10_000))
    filled(ring, 20)
    for number in range(20, 65):
        ring.end(ring.request(float(number), FIELDS, body(number)), number + 0.5, {"outcome": "answered"})
    ring.end(name, 65.0, {"outcome": "cancelled"})
    ring.seal(66.0, "stopped")
    assert not [one for one in read_folder(tmp_path).requests if one.open]


def test_memory_does_not_grow_with_the_ring(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(requests=10_000, seconds=None), {})
    filled(ring, 1000, size=1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    filled(ring, 10_000, size=1000)
    ring.seal(1.0, "stopped")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 << 10  # 10 MB are on disk


def test_a_recording_without_a_seal_is_read_all_the_same(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(), {})
    filled(ring, 5, answered=False)
    found = read_folder(tmp_path)
    assert [one.outcome for one in found.requests] == ["unanswered"] * 5
    assert found.sealed == ""


@given(cut=st.integers(1, 3000), count=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_whatever_a_kill_tears_off_nothing_before_it_is_lost(
    tmp_path_factory: pytest.TempPathFactory, cut: int, count: int
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    ring = Ring(folder, Keep(), {})
    ends = []
    for number in range(count):
        ring.request(float(number), FIELDS, body(number, 50))
        ends.append(ring.size)
    (path,) = folder.glob("*.seg")
    size = path.stat().st_size
    os.truncate(path, max(0, size - cut))
    whole = sum(end <= size - cut for end in ends)
    if whole:
        assert numbers(folder) == list(range(whole))
    else:
        with pytest.raises(BadRecording, match="holds no request"):
            read_folder(folder)


@given(place=st.integers(0, 2000), value=st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_a_damaged_byte_never_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    ring = Ring(folder, Keep(), {})
    filled(ring, 6)
    ring.seal(6.0, "stopped")
    (path,) = folder.glob("*.seg")
    data = bytearray(path.read_bytes())
    place %= len(data)
    data[place] ^= value
    path.write_bytes(data)
    try:
        found = read_folder(folder)
    except BadRecording:
        return
    assert {one.content.read() for one in found.requests} <= {body(number) for number in range(6)}
    assert found.notes


def test_a_folder_that_holds_a_recording_is_not_written_into(tmp_path: Path) -> None:
    Ring(tmp_path, Keep(), {}).seal(0.0, "stopped")
    with pytest.raises(BadRecording, match="holds a recording already"):
        Ring(tmp_path, Keep(), {})


def test_nobody_else_may_read_what_people_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    ring = Ring(folder, Keep(), {})
    filled(ring, 1)
    ring.seal(1.0, "stopped")
    assert not [path for path in (folder, *folder.iterdir()) if path.stat().st_mode & 0o077]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": "other/1"}', b"\xff\xfe"])
def test_what_is_no_recording_is_told_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "recording.json").write_bytes(content)
    with pytest.raises(BadRecording, match="holds no recording"):
        read_folder(tmp_path)


def test_fields_of_the_wrong_kind_do_no_harm(tmp_path: Path) -> None:
    ring = Ring(tmp_path, Keep(), {})
    odd: dict[str, Any] = {"method": 7, "path": None, "type": ["x"]}
    name = ring.request(0.0, odd, b"{}")
    ring.end(name, 1.0, {"outcome": "no such", "status": "200", "pieces": None, "said": {}}, b"")
    (one,) = read_folder(tmp_path).requests
    assert one.path == "/"
    assert one.outcome == "unanswered"
    assert one.status is None


def test_a_full_disk_at_the_beginning_leaves_nothing_in_the_way_of_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            Ring(tmp_path, Keep(), {})
    assert not list(tmp_path.iterdir())
    Ring(tmp_path, Keep(), {}).seal(0.0, "stopped")
