"""Wheels as folders of packages."""

import zipfile
from pathlib import Path

import pytest

from culpa.versions import CannotPrepare
from culpa.versions.unpack import unpack_wheel


def wheel(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return path


def test_libraries_of_the_data_folder_go_beside_the_packages(tmp_path: Path) -> None:
    names = ["a/__init__.py", "a-1.data/platlib/a/fast.so", "a-1.data/scripts/a", "a-1.dist-info/METADATA"]
    unpack_wheel(wheel(tmp_path / "a-1-py3-none-any.whl", names), tmp_path / "out")
    files = {str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*") if one.is_file()}
    assert files == {"a/__init__.py", "a/fast.so", "a-1.dist-info/METADATA"}


def test_nothing_is_written_outside_of_the_folder(tmp_path: Path) -> None:
    unpack_wheel(wheel(tmp_path / "evil.whl", ["../../evil.py", "/evil.py"]), tmp_path / "in" / "out")
    outside = [one for one in tmp_path.rglob("evil.py") if not one.is_relative_to(tmp_path / "in" / "out")]
    assert outside == []


def test_damaged_wheel_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"no zip")
    with pytest.raises(CannotPrepare, match=r"a.whl can't be unpacked"):
        unpack_wheel(tmp_path / "a.whl", tmp_path / "out")
