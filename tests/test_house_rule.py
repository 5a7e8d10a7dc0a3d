"""A room imports only from rooms below it; pure rooms touch neither machine nor clock."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# From the top of the house to its bottom (docs/design.md). A room may import from those after it.
ROOMS = (
    "cli",
    "zoo",
    "truth",
    "bisect",
    "minimize",
    "mitigation",
    "replay",
    "isolate",
    "guarded",
    "checks",
    "verify",
    "report",
    "assemble",
    "experiment",
    "locate",
    "workload",
    "knowledge",
    "record",
    "hunt",
    "trial",
    "evidence",
    "target",
    "start",
    "session",
    "counters",
    "metrics",
    "budget",
    "interrupts",
    "placement",
    "selection",
    "environment",
    "store",
    "recorder",
    "guard",
    "executors",
    "versions",
    "engines",
    "host",
    "traffic",
    "probes",
    "logs",
    "sources",
    "written",
    "redaction",
    "triage",
    "layout",
    "search",
    "reduction",
    "model",
)
PURE = ("redaction", "triage", "layout", "search", "reduction", "model")
# `datetime` and `signal` are fine as arithmetic and as names; reading the clock and sending are not.
IMPURE_CALLS = {"now", "today", "utcnow", "kill", "raise_signal"}
IMPURE_MODULES = {
    "asyncio", "httpx2", "os", "psutil", "random", "secrets", "shutil", "socket",
    "subprocess", "tempfile", "threading", "time", "urllib",
}  # fmt: skip


def modules() -> list[Path]:
    return sorted((SOURCE / "culpa").rglob("*.py"))


def room_of(path: Path) -> str | None:
    parts = path.relative_to(SOURCE / "culpa").with_suffix("").parts
    return parts[0] if parts[0] in ROOMS else None


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downward(path: Path) -> None:
    room = room_of(path)
    if room is None:
        assert path.relative_to(SOURCE / "culpa").name in {"__init__.py", "__main__.py"}, (
            f"{path} is in no room: add its room to ROOMS where it belongs"
        )
        return
    above = {f"culpa.{name}" for name in ROOMS[: ROOMS.index(room)]}
    upward = {name for name in imported(path) if any(name == a or name.startswith(f"{a}.") for a in above)}
    assert not upward, f"{room} imports upward: {sorted(upward)}"


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if room_of(path) in PURE],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_pure_rooms_import_nothing_that_touches_the_machine(path: Path) -> None:
    touched = {name for name in imported(path) if name.split(".")[0] in IMPURE_MODULES}
    assert not touched


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if room_of(path) in PURE],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_pure_rooms_read_no_clock(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    called = {
        node.func.attr for node in tree if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not called & IMPURE_CALLS


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_grows_past_one_sitting(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
