"""Files that a reader sees whole or not at all."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """A file to write to that takes the place of `path` once all of it is written; nothing is left of it if that fails.

    A link stays a link: what it leads to is replaced. What is no regular file (a pipe, a device) is written to as it
    is, since putting a file in its place would destroy it. Raises OSError.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if path.name in ("", ".", "..") or (mode is not None and not stat.S_ISREG(mode)):
        with path.open("w", encoding="utf-8", errors="replace") as out:
            yield out
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:200]}.part")
    try:
        with beside.open("w", encoding="utf-8", errors="replace") as out:
            yield out
        if mode is not None:
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text through `written_whole`. Raises OSError."""
    with written_whole(path) as out:
        out.write(text)


def why_unwritable(path: Path) -> str:
    """Why a file can't be written at this path, asked before the work that it is for; empty if it can."""
    if not path.name or path.is_dir():
        return "it is a folder"
    if path.exists() and not path.is_file():
        return "" if os.access(path, os.W_OK) else "no permission to write to it"
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        return f"{path.parent} is no folder" if path.parent.exists() else f"{path.parent} does not exist"
    return "" if os.access(folder, os.W_OK) else f"no permission to write in {folder}"
