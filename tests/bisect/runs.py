"""Runs `culpa bisect` on a small engine whose versions are wheels, as a user would."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.versions.wheels import FACTORS

SHORT = ("--probe", "short", "--patience", "1s")


@dataclass(frozen=True)
class Bisected:
    """A run that has ended; `result` is None if it wrote none."""

    code: int
    out: str
    err: str
    result: dict[str, Any]


def launch(*flags: str) -> list[str]:
    return [sys.executable, "-m", "tinyengine", *flags]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_")}
    return {**kept, "CULPA_CACHE": str(folder / "cache"), "COLUMNS": "160"}


def factors(folder: Path) -> str:
    file = folder / "factors.toml"
    file.write_text(FACTORS)
    return str(file)


def run(
    folder: Path, verb: str, options: Sequence[str], words: Sequence[str], seconds: float = 110
) -> Bisected:
    out = folder / "run"
    given = ["--out", str(out), "--factors", factors(folder), *SHORT] if "--resume" not in options else []
    arguments = [sys.executable, "-m", "culpa", verb, *given, *options, *(["--", *words] if words else [])]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=seconds, check=False, env=environment(folder)
    )
    path = out / "experiment.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Bisected(done.returncode, done.stdout, done.stderr, result)


def bisect(folder: Path, *options: str, flags: Sequence[str] = (), seconds: float = 110) -> Bisected:
    given = ["--wheels", str(folder / "wheels"), "--overlay"] if "--resume" not in options else []
    words = launch(*flags) if "--resume" not in options else []
    return run(folder, "bisect", [*given, *options], words, seconds)
