"""The engine as processes: started on a free port of this machine, its log gathered, ended with the test."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.lab.engine.engines import checkpoint

START_SECONDS = 60.0
SMALL = (
    "--max-model-len", "512", "--block-size", "16", "--max-num-batched-tokens", "64",
    "--num-gpu-blocks-override", "200",
    "--max-num-seqs", "4", "--enable-prompt-tokens-details", "--served-model-name", "small",
)  # fmt: skip


class Server:
    """A running `culpa-lab serve`."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "culpa_lab", "serve", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **env}
        )
        self.lines: list[str] = []
        self.url = ""
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._started.wait(START_SECONDS), self.text
        # The line that tells of the start is written a moment before the socket listens.
        transport = httpx2.HTTPTransport(retries=5, trust_env=False)
        self.client = httpx2.Client(base_url=self.url, timeout=60, trust_env=False, transport=transport)

    @property
    def text(self) -> str:
        """The log so far."""
        return "\n".join(self.lines)

    @property
    def workers(self) -> list[int]:
        """Process ids of the engine core and the workers, as the log has them."""
        found = re.findall(r"^\((?:EngineCore|Worker\w*) pid=(\d+)\)", self.text, re.MULTILINE)
        return [int(pid) for pid in dict.fromkeys(found)]

    def complete(self, prompt: str | Sequence[int], tokens: int = 8, **fields: Any) -> dict[str, Any]:
        """A completion at temperature 0, not ended by the end token."""
        body = {"prompt": prompt, "temperature": 0, "max_tokens": tokens, "ignore_eos": True, **fields}
        response = self.client.post("/v1/completions", json=body)
        found: dict[str, Any] = response.json()
        return {**found, "status": response.status_code}

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end. Returns the exit code."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end and for the rest of the log."""
        code = self.process.wait(20)
        self._reader.join(20)
        return code

    def close(self) -> None:
        """Leave nothing behind."""
        self.client.close()
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            found = re.search(r"Starting vLLM server on (http://\S+)", line)
            if found:
                self.url = found[1]
            if "Application startup complete" in line:
                self._started.set()
        self._started.set()


@contextmanager
def server(
    *arguments: str, env: Mapping[str, str] | None = None, model: Path | None = None
) -> Iterator[Server]:
    """A server with these arguments besides the small defaults."""
    running = Server((str(model or checkpoint()), "--port", "0", *SMALL, *arguments), env or {})
    try:
        yield running
    finally:
        running.close()


def gone(pid: int) -> bool:
    """Whether a process is no more, or only waits to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"
