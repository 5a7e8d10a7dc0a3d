"""A wheel, unpacked into a folder as an installer would lay it out, without its scripts."""

import shutil
import zipfile
from pathlib import Path

from culpa.versions.errors import CannotPrepare

# Where the parts of `NAME-VERSION.data` belong (binary distribution format, "the .data directory").
_LIBRARIES = ("purelib", "platlib")


def unpack_wheel(wheel: Path, target: Path) -> None:
    """Unpack into `target`, which may hold other packages. Raises CannotPrepare for what is no wheel."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)  # names that lead out of the folder are made harmless
    except (OSError, zipfile.BadZipFile) as error:
        raise CannotPrepare(f"{wheel.name} can't be unpacked: {error}") from None
    for data in target.glob("*.data"):
        for part in _LIBRARIES:
            if (data / part).is_dir():
                shutil.copytree(data / part, target, dirs_exist_ok=True)
        shutil.rmtree(data)
