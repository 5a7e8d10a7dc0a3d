"""Log files as bytes: formats, damage, and bombs."""

import gzip
import io
import sys
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.sources import SourceError, read_log

TEXT = b"".join(b"(Worker_TP0 pid=7) INFO line %d\n" % number for number in range(5000))


def written(folder: Path, data: bytes, name: str = "engine.log") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def content(path: Path) -> bytes:
    return b"".join(read_log(path))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("two gzip members", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
        ("zstd", zstandard.compress(TEXT)),
        ("two zstd frames", zstandard.compress(TEXT[:1000]) + zstandard.compress(TEXT[1000:])),
    ],
)
def test_the_text_is_the_same_in_every_format(tmp_path: Path, name: str, data: bytes) -> None:
    assert content(written(tmp_path, data)) == TEXT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_becomes_utf8(tmp_path: Path, encoding: str) -> None:
    text = "\ufeffERROR: größer\r\n"
    assert content(written(tmp_path, text.encode(encoding))).decode() == "ERROR: größer\r\n"


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    assert content(written(tmp_path, b"")) == b""


def test_a_gzip_file_that_breaks_off_gives_what_is_there(tmp_path: Path) -> None:
    read = content(written(tmp_path, gzip.compress(TEXT)[:-2000]))
    assert read
    assert TEXT.startswith(read)


@pytest.mark.parametrize("level", [1, 9])
def test_a_gzip_bomb_is_refused_in_one_line(tmp_path: Path, level: int) -> None:
    packer = zlib.compressobj(level, wbits=31)
    bomb = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(128)) + packer.flush()
    path = written(tmp_path, bomb) if level == 9 else written(tmp_path, gzip.compress(bytes(128 << 20)))
    with pytest.raises(SourceError, match="decompression bomb") as told:
        for _ in read_log(path):
            pass
    assert "\n" not in str(told.value)


def test_a_zstd_bomb_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, zstandard.compress(bytes(128 << 20)))
    with pytest.raises(SourceError, match="decompression bomb"):
        for _ in read_log(path):
            pass


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04rest", "zip archive"),
        (b"\xfd7zXZ\x00rest", "xz"),
        (b"\x1f\x8b\x08garbage that is no deflate stream", "damaged gzip"),
        (b"\x28\xb5\x2f\xfdgarbage that is no frame", "damaged zstd"),
    ],
)
def test_what_is_no_log_is_refused_with_the_reason(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        content(written(tmp_path, data))


def test_a_missing_file_and_a_folder_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        content(tmp_path / "none.log")
    with pytest.raises(SourceError, match="is a folder"):
        content(tmp_path)


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert b"".join(read_log(None)) == TEXT


@given(st.binary(max_size=400), st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\xff\xfe"]))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, head: bytes
) -> None:
    path = written(tmp_path_factory.getbasetemp(), head + data)
    told = ""
    try:
        content(path)
    except SourceError as error:
        told = str(error)
    assert "\n" not in told
