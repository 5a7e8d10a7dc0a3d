"""Runs `culpa isolate` on a real engine, as a user would."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Isolated:
    """A run that has ended."""

    code: int
    err: str
    result: dict[str, Any]
    folder: Path

    @property
    def found(self) -> list[set[str]]:
        return [{member["name"] for member in one["factors"]} for one in self.result["findings"]]

    @property
    def accused(self) -> set[str]:
        return {factor["name"] for factor in self.result["factors"] if factor["status"] == "in"}

    @property
    def varied(self) -> set[str]:
        return {name for trial in self.result["trials"] for name in trial["levels"]}


def isolate(folder: Path, words: list[str], *options: str, seconds: float = 300) -> Isolated:
    """`words` is the launch, environment assignments in front."""
    arguments = [
        sys.executable,
        "-m",
        "culpa",
        "isolate",
        "--quiet",
        "--out",
        str(folder),
        *options,
        "--",
        *words,
    ]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=seconds, check=False, env=dict(os.environ)
    )
    path = folder / "experiment.json"
    assert path.exists(), done.stderr
    return Isolated(done.returncode, done.stderr, json.loads(path.read_text(encoding="utf-8")), folder)
