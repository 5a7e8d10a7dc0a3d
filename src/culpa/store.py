"""One folder a run: an append-only journal that survives a kill at any moment, and every trial's evidence.

Layout of a run folder:
    journal.jsonl      one JSON object a line, fsynced; the first is the header of the run
    experiment.json    the machine-readable result (schema culpa.experiment/1), written at the end
    report.md          the report for people, written at the end, fit to be published
    report.html        the same as a page with pictures
    trials/0001/       launch.sh, engine.log, kernel.log, effective.json, answers.json, trial.json
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from culpa.model.summary import RunSummary

JOURNAL_SCHEMA = "culpa.journal/1"
JOURNAL = "journal.jsonl"
LOCK = ".lock"
EXPERIMENT = "experiment.json"
REPORT = "report.md"
PAGE = "report.html"


class BadRunFolder(ValueError):
    """The folder does not hold a run that can be resumed; the message is one line for the user."""


class Journal:
    """Append-only record of a run. Each entry is on disk before `append` returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / JOURNAL
        self._lock: int | None = None

    def lock(self) -> None:
        """Keep every other culpa out of this run until this process ends. Raises BadRunFolder if one is in it."""
        descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise BadRunFolder(
                f"{self.folder}: another culpa is at work in this run: wait for it, or end it"
            ) from None
        self._lock = descriptor  # the kernel gives it back when the process ends, however that comes

    def release(self) -> None:
        """Let another part of this process, or another culpa, at work in this run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, kind: str, **content: Any) -> None:
        """Write one entry. A torn last line, left by a kill in the middle of a write, is cut off first."""
        line = json.dumps({"kind": kind, **content}, ensure_ascii=False, separators=(",", ":"))
        # The launch may hold keys, and resuming needs them: for nobody else's eyes.
        with open(self._path, "ab+", opener=_private) as file:
            _cut_torn_line(file.fileno())
            file.write(line.encode("utf-8", "replace") + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> Iterator[dict[str, Any]]:
        """All complete entries, oldest first. Raises BadRunFolder if one in the middle can't be read."""
        raw = self._path.read_bytes() if self._path.exists() else b""
        complete, _, _ = raw.rpartition(b"\n")
        for number, line in enumerate(complete.split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                raise BadRunFolder(
                    f"{self._path}: line {number} is not JSON; the journal is damaged"
                ) from None
            if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
                raise BadRunFolder(f"{self._path}: line {number} is no journal entry")
            yield entry


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _cut_torn_line(descriptor: int) -> None:
    """Cut an unfinished last line, which only a kill in the middle of a write leaves behind."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    keep = end
    while keep > 0:
        start = max(0, keep - 4096)
        newline = os.pread(descriptor, keep - start, start).rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep < end:
        os.ftruncate(descriptor, keep)


def create_run(folder: Path, header: Mapping[str, Any]) -> Journal:
    """Make a run folder and write its header. Raises BadRunFolder if the folder already holds a run."""
    try:
        if folder.exists() and not folder.is_dir():
            raise BadRunFolder(f"{folder} is not a folder: choose another --out")
        if (folder / JOURNAL).exists():
            raise BadRunFolder(
                f"{folder} already holds a run: choose another --out, or go on with --resume {folder}"
            )
        (folder / "trials").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRunFolder(f"can't make the run folder {str(folder)[:200]}: {error.strerror}") from None
    journal = Journal(folder)
    journal.lock()
    try:
        journal.append("run", schema=JOURNAL_SCHEMA, **header)
    except OSError:  # such as a full disk: a journal without a header would be in the way of the next attempt
        (folder / JOURNAL).unlink(missing_ok=True)
        journal.release()
        raise
    return journal


def open_run(folder: Path) -> tuple[Journal, dict[str, Any], list[dict[str, Any]]]:
    """Open a run to go on with: the journal, its header, and the entries after it. Raises BadRunFolder."""
    journal = Journal(folder)
    entries = list(journal.entries())
    if not entries:
        raise BadRunFolder(f"{folder} holds no run: there is no {JOURNAL} in it")
    header, *rest = entries
    if header["kind"] != "run" or header.get("schema") != JOURNAL_SCHEMA:
        raise BadRunFolder(f"{folder}: the journal is not of the schema {JOURNAL_SCHEMA}")
    return journal, header, rest


def list_runs(root: Path) -> list[RunSummary]:
    """Every run below `root`, oldest first; folders that hold no readable run are passed over."""
    found = []
    for path in sorted(root.glob(f"*/{JOURNAL}")):
        try:
            found.append(summary_of(path.parent))
        except (BadRunFolder, AttributeError, KeyError, TypeError, ValueError):
            continue  # damaged, or not a run of ours; `--resume` on it says what is wrong
    return sorted(found, key=lambda run: (run.started, run.run_id))


def summary_of(folder: Path) -> RunSummary:
    """One line about a run: from its result if it has one, else from its journal. Raises BadRunFolder."""
    _, header, entries = open_run(folder)
    # A run that is no isolation has its result in its last entry.
    result = read_result(folder) or next((e["result"] for e in reversed(entries) if "result" in e), {})
    findings = result.get("findings") or []
    named = [" + ".join(f"{f['name']}={f['suspect']}" for f in finding["factors"]) for finding in findings]
    last = next((e["elapsed"] for e in reversed(entries) if "elapsed" in e), 0.0)
    unfinished = "interrupted" if any(entry["kind"] == "interrupted" for entry in entries) else "unfinished"
    outcome = "interrupted" if result.get("interrupted") else str(result.get("outcome", unfinished))
    return RunSummary(
        run_id=folder.name,
        started=str(header.get("started", "")),
        engine=str(header.get("engine", "")),
        outcome=outcome,
        finding="; ".join(named) or str(result.get("headline") or "") or _symptom(result),
        trials=int(result.get("trials_run", 0))
        or len({str(entry.get("trial", {}).get("id")) for entry in entries if entry["kind"] == "trial"}),
        elapsed_seconds=float(result.get("elapsed_seconds", last)),
    )


def _symptom(result: Mapping[str, Any]) -> str:
    signature = result.get("signature")
    return str(signature.get("symptom", "")) if isinstance(signature, dict) else ""


def read_result(folder: Path) -> dict[str, Any] | None:
    """The run's experiment.json, or None while there is none."""
    path = folder / EXPERIMENT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
