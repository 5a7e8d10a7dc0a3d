"""What a reduction remembers of earlier sittings, so that a run that was cut off goes on where it was."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culpa.model import Outcome, Signature
from culpa.store import BadRunFolder, Journal, open_run
from culpa.traffic import Recorded


@dataclass(frozen=True, slots=True)
class Remembered:
    """A trial of an earlier sitting. `kept` are the requests as ranges of places; `signature` and `watch` are those
    that the first failure fixed, at that trial only."""

    trial: int
    kept: str
    failed: bool | None
    reached: int | None
    reason: str
    signature: Signature | None
    watch: float


def digest_of(requests: Sequence[Recorded]) -> str:
    """Identifies requests with their times. Raises BadRecording."""
    digest = hashlib.sha256()
    for one in requests:
        digest.update(f"{one.at:.6f} {one.ended} {one.outcome} {one.path}\n".encode())
        digest.update(one.content.read())
    return digest.hexdigest()


def reopened(folder: Path, command: str, digest: str) -> tuple[Journal, str, list[Remembered]]:
    """The journal of a reduction with its tag and trials. Raises BadRunFolder where it is of something else."""
    journal, header, entries = open_run(folder)
    if not isinstance(header.get("digest"), str) or not isinstance(header.get("tag"), str):
        raise BadRunFolder(f"{folder}: is no run of culpa replay --reduce")
    if header["digest"] != digest:
        raise BadRunFolder(
            f"{folder}: the run is about other requests: give the same source and the same --only"
        )
    if header.get("command") != command:
        raise BadRunFolder(f"{folder}: the run is of another command: {header.get('command')}")
    journal.lock()
    try:
        tried = [_remembered(entry) for entry in entries if entry["kind"] == "tried"]
    except (KeyError, TypeError, ValueError):
        raise BadRunFolder(f"{folder}: the journal is damaged: start a new run") from None
    return journal, header["tag"], tried


def _remembered(entry: Mapping[str, Any]) -> Remembered:
    outcome = Outcome(entry["outcome"])
    signature = entry.get("signature")
    return Remembered(
        trial=int(entry["trial"]),
        kept=str(entry["kept"]),
        failed={Outcome.FAIL: True, Outcome.PASS: False}.get(outcome),
        reached=None if entry["reached"] is None else int(entry["reached"]),
        reason=str(entry["reason"]),
        signature=Signature(**signature) if signature is not None else None,
        watch=float(entry.get("watch", 0.0)),
    )
