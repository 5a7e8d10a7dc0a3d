"""Runs `culpa isolate` on the fake engine, as a user would: a process of its own, results read from its files."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FAKE_ENGINE = HERE.parent / "fake_engine.py"
FACTORS = HERE / "factors.toml"
LAUNCH = "--eager --pp 3 --kv fp8 --seqs 64"
DEFAULTS = "pp=1 eager=off prefix=on kv=auto seqs=256"


@dataclass(frozen=True)
class Finished:
    """A run that has ended: exit code, what it printed, and its result (None if it wrote none)."""

    code: int
    out: str
    err: str
    result: dict[str, Any] | None

    @property
    def found(self) -> list[list[str]]:
        assert self.result is not None, self.err
        return [[factor["name"] for factor in one["factors"]] for one in self.result["findings"]]


def command(folder: Path, options: Sequence[str] = (), launch: str = LAUNCH) -> list[str]:
    return [
        sys.executable, "-m", "culpa", "isolate", "--factors", str(FACTORS), "--out", str(folder), *options,
        "--", sys.executable, str(FAKE_ENGINE), *launch.split(),
    ]  # fmt: skip


def environment(**fake: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("FAKE_")}
    return {**own, "FAKE_DEFAULTS": DEFAULTS, "COLUMNS": "200", **fake}


def finish(arguments: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float = 110) -> Finished:
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    path = folder / "experiment.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return Finished(done.returncode, done.stdout, done.stderr, result)


def isolate(folder: Path, *options: str, launch: str = LAUNCH, **fake: str) -> Finished:
    return finish(command(folder, options, launch), environment(**fake), folder)
