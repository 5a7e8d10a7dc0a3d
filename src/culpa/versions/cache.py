"""The cache of what was made for versions: environments, unpacked wheels, checkouts. The longest unused goes first."""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from culpa.versions.errors import CannotPrepare

READY = "ready.json"
LIMIT = 40 * 10**9  # bytes


def default_folder() -> Path:
    """`CULPA_CACHE`, or `culpa` in the user's cache folder."""
    given = os.environ.get("CULPA_CACHE")
    if given:
        return Path(given) / "versions"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "culpa" / "versions"


@dataclass(slots=True)
class Cache:
    """Folders by key, at most `limit` bytes together; those used by this run are never taken away."""

    folder: Path = field(default_factory=default_folder)
    limit: int = LIMIT
    _in_use: set[str] = field(default_factory=set)

    def key(self, *parts: str) -> str:
        """A short name for what is told apart by these parts."""
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:20]

    def place(self, key: str) -> Path:
        """Where the folder of this key is or will be."""
        return self.folder / key

    def ready(self, key: str) -> bool:
        """Whether the folder was finished."""
        return (self.place(key) / READY).is_file()

    def log(self, key: str) -> Path:
        """Where the output of the commands that make it goes."""
        return self.folder / f"{key}.log"

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Keep other runs from making or removing the same folder. Raises CannotPrepare where it can't be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CannotPrepare(f"{self.folder} can't be written: {error.strerror}") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CannotPrepare(
                    f"another culpa is making {self.place(key)}: run it again later"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def begin(self, key: str) -> Path:
        """An empty folder to be filled; what an earlier attempt left is removed."""
        place = self.place(key)
        shutil.rmtree(place, ignore_errors=True)
        self.log(key).unlink(missing_ok=True)
        place.mkdir(parents=True)
        return place

    def finish(self, key: str, label: str) -> None:
        """Mark a folder as finished, and make room for it."""
        place = self.place(key)
        note = {"label": label, "bytes": _size(place)}
        (place / READY).write_text(json.dumps(note), encoding="utf-8")
        self.use(key)
        self.make_room()

    def use(self, key: str) -> None:
        """Note that this run uses a folder."""
        self._in_use.add(key)
        os.utime(self.place(key) / READY)

    def make_room(self) -> tuple[Path, ...]:
        """Remove what was not used for the longest time until the limit is kept; what was removed."""
        entries = [
            (marker.stat().st_mtime_ns, marker.parent, _noted(marker))
            for marker in self.folder.glob(f"*/{READY}")
        ]
        total = sum(size for _, _, size in entries)
        removed: list[Path] = []
        for _, place, size in sorted(entries):
            if total <= self.limit:
                break
            if place.name in self._in_use:
                continue
            (place / READY).unlink(missing_ok=True)  # first of all: half a folder must not look finished
            shutil.rmtree(place, ignore_errors=True)
            total -= size
            removed.append(place)
        return tuple(removed)


def _noted(marker: Path) -> int:
    try:
        return int(json.loads(marker.read_text(encoding="utf-8"))["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _size(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(place) / name).lstat().st_size
            except OSError:  # it went away meanwhile
                continue
    return total
