"""Commands that make a version ready: installers, builds, git. They may take minutes, and end when culpa is told to."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from culpa.model.redact import printable, redact
from culpa.versions.errors import CannotPrepare

_TAIL = 4000


async def carry_out(
    what: str,
    argv: Sequence[str],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command to its end, its output appended to `log`. Raises CannotPrepare with the last thing it said.

    Cancellation ends the command with all that it started.
    """
    with log.open("ab") as out:
        out.write(f"$ {' '.join(argv)}\n".encode(errors="replace"))
        out.flush()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise CannotPrepare(f"{what}: {argv[0]} can't be run: {error.strerror or error}") from None
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code != 0:
        raise CannotPrepare(f"{what}: {_last_line(log) or f'{argv[0]} ended with {code}'} (log: {log})")


def answer(argv: Sequence[str], *, cwd: Path | None = None, seconds: float = 60.0) -> str | None:
    """What a short command prints, None where it fails, is not there or takes too long."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _last_line(log: Path) -> str:
    """The last line that names an error, or else the last line at all."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("$ ", "[notice]"))]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return redact(printable((errors or lines or [""])[-1]))[:300]
