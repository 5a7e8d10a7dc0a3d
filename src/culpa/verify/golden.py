"""Trusted answers in a file: recorded from a configuration that is known to be right, compared with later ones."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import culpa
from culpa.hunt import Sizes
from culpa.probes import Limits, Reference
from culpa.written import write_whole

GOLDEN = "culpa.golden/1"


class BadGolden(ValueError):
    """A file of trusted answers can't be read, written or used here; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What a user chose to ask: the length of long prompts, questions, records, and a digest of the request file."""

    probe_tokens: int | None = None
    questions: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    requests: str = ""


def digest(request_file: str | None) -> str:
    """A request file by its content, wherever it lies; empty without one. Raises BadGolden if it can't be read."""
    if request_file is None:
        return ""
    try:
        return hashlib.sha256(Path(request_file).read_bytes()).hexdigest()
    except OSError as error:
        raise BadGolden(f"--request {request_file}: can't be read: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True)
class Golden:
    """Trusted answers, and the form in which they were asked for: the same must be asked again to compare.

    `seed`, `limits`, `sizes` and `asking` decide on the text of every prompt. `suite` is the one that was asked.
    """

    reference: Reference
    seed: int
    limits: Limits
    sizes: Sizes
    suite: str
    asking: Asking = field(default_factory=Asking)


def write_golden(golden: Golden, path: Path) -> None:
    """Write trusted answers as JSON, whole or not at all. Raises BadGolden."""
    from pydantic import TypeAdapter

    content = {
        "schema": GOLDEN,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "culpa": culpa.__version__,
        "golden": TypeAdapter(Golden).dump_python(golden, mode="json"),
    }
    try:
        write_whole(path, json.dumps(content, ensure_ascii=True) + "\n")
    except OSError as error:
        raise BadGolden(f"--record-golden {path}: can't be written: {error.strerror or error}") from None


def read_golden(path: Path) -> Golden:
    """Trusted answers from a file. Raises BadGolden."""
    from pydantic import TypeAdapter, ValidationError

    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadGolden(f"--golden {path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadGolden(f"--golden {path}: can't be read: {error}") from None
    if not isinstance(content, dict) or content.get("schema") != GOLDEN:
        raise BadGolden(f"--golden {path}: no file of --record-golden (schema {GOLDEN})")
    try:
        return TypeAdapter(Golden).validate_python(content["golden"])
    except (KeyError, ValidationError) as error:
        raise BadGolden(f"--golden {path}: damaged: {str(error).splitlines()[0]}") from None
