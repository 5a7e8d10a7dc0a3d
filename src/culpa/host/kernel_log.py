"""What the kernel said while a trial ran: GPU faults (Xid), the out-of-memory killer, dead hardware."""

import ctypes
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from culpa.host.log_tail import LogTail

_KMSG = Path("/dev/kmsg")
_KMSG_RECORD_BYTES = 8192  # the kernel's own limit for one record
_READ_ALL = 3  # syslog(2): SYSLOG_ACTION_READ_ALL
_SIZE_BUFFER = 10  # syslog(2): SYSLOG_ACTION_SIZE_BUFFER
_JOURNAL_SECONDS = 5.0
_STAMPED = re.compile(r"(?:<\d+>)?\[ *(\d+\.\d+)\] (.*)")
_SHORT_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?([+-]\d\d):?(\d\d) \S+ (.*)")


class KernelLog:
    """Lines of the kernel's log since this object was made.

    Sources, the first that may be read: /dev/kmsg, syslog(2), journalctl. None of them keeps a process
    running. Lines look like those of `journalctl -k -o short-iso`, without the name of the machine:
    `2026-10-09T10:15:22+0200 localhost kernel: NVRM: Xid ...`. Where nothing may be read, `unreadable` says
    why, and there are no lines: no line is then no evidence. With `file` the lines that are appended to
    that file are read instead, as they are: where a collector puts the host's messages, say.
    """

    def __init__(self, device: Path = _KMSG, file: Path | None = None) -> None:
        self.source = ""
        self.unreadable: str | None = None
        self._read: Callable[[], list[str]] = list
        self._descriptor: int | None = None
        if file is not None:
            self._follow(file)
            return
        reasons = []
        sources: tuple[tuple[str, Callable[[], Callable[[], list[str]]]], ...] = (
            (str(device), lambda: self._open_device(device)),
            ("syslog(2)", self._open_syslog),
            ("journalctl", self._open_journal),
        )
        for name, opening in sources:
            try:
                self._read = opening()
            except OSError as error:
                reasons.append(f"{name}: {error.strerror or error}")
            else:
                self.source = name
                return
        self.unreadable = "the kernel log may not be read (" + "; ".join(reasons) + ")"

    def read(self) -> list[str]:
        """New lines since the last call. Raises OSError if the source can no longer be read."""
        return self._read()

    def close(self) -> None:
        """Release the source; there are no more lines."""
        self._read = list
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "KernelLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self, file: Path) -> None:
        tail = LogTail(file)
        try:
            tail.read()  # what is older than this trial is no evidence of it
        except OSError as error:
            self.unreadable = f"{file} can't be read ({error.strerror or error})"
        else:
            self.source = str(file)
            self._read = tail.read

    def _open_device(self, device: Path) -> Callable[[], list[str]]:
        descriptor = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(descriptor, 0, os.SEEK_END)
        self._descriptor = descriptor
        return lambda: _read_device(descriptor)

    def _open_syslog(self) -> Callable[[], list[str]]:
        if sys.platform != "linux":
            raise OSError("only on Linux")
        seen = max((uptime for uptime, _ in _syslog_records()), default=0.0)

        def read() -> list[str]:
            nonlocal seen
            new = [(uptime, text) for uptime, text in _syslog_records() if uptime > seen]
            seen = max((uptime for uptime, _ in new), default=seen)
            return [_line(uptime, text) for uptime, text in new]

        return read

    def _open_journal(self) -> Callable[[], list[str]]:
        # Without the right to read the kernel's messages journalctl succeeds, and shows none.
        if not _journal("--lines=1"):
            raise OSError("shows no kernel messages to this user")
        cursor = _journal("--lines=1", "--show-cursor")[-1]

        def read() -> list[str]:
            nonlocal cursor
            *lines, last = _journal(
                f"--after-cursor={cursor.removeprefix('-- cursor: ')}", "--show-cursor"
            ) or [cursor]
            cursor = last if last.startswith("-- cursor: ") else cursor
            return [line for text in lines if (line := _without_machine(text)) is not None]

        return read


def _read_device(descriptor: int) -> list[str]:
    """All records that wait in /dev/kmsg: `priority,number,microseconds,flags;text`, one a read."""
    lines: list[str] = []
    while True:
        try:
            records = os.read(descriptor, _KMSG_RECORD_BYTES)
        except BlockingIOError:
            return lines
        except BrokenPipeError:
            lines.append(
                _line(time.monotonic(), "[culpa: the kernel overwrote messages before they were read]")
            )
            continue
        if not records:
            return lines
        for record in records.decode(errors="replace").splitlines():
            head, found, text = record.partition(";")
            fields = head.split(",")
            if found and not record.startswith(" ") and len(fields) >= 3 and fields[2].isdigit():
                lines.append(_line(int(fields[2]) / 1e6, text))


def _syslog_records() -> list[tuple[float, str]]:
    """Uptime and text of every message in the kernel's buffer, by syslog(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = libc.klogctl(_SIZE_BUFFER, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 1))
    length = libc.klogctl(_READ_ALL, buffer, max(size, 1))
    if size < 0 or length < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    matches = map(_STAMPED.match, buffer.raw[:length].decode(errors="replace").splitlines())
    return [(float(match[1]), match[2]) for match in matches if match]


def _journal(*options: str) -> list[str]:
    command = ["journalctl", "--dmesg", "--quiet", "--no-pager", "--output=short-iso", *options]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_JOURNAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"no answer in {_JOURNAL_SECONDS:.0f} s") from error
    if done.returncode != 0:
        raise OSError((done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[0])
    return done.stdout.splitlines()


def _without_machine(text: str) -> str | None:
    match = _SHORT_ISO.match(text)
    return f"{match[1]}{match[2]}{match[3]} localhost {match[4]}" if match else None


def _line(uptime: float, text: str) -> str:
    """A line with wall-clock time. The kernel stamps messages with the time since boot, sleep not counted."""
    wall = time.time() - time.monotonic() + uptime
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S%z', time.localtime(wall))} localhost kernel: {text}"


def why_unreadable(file: Path) -> str:
    """Why a file can't be followed as the kernel's log; empty if it can."""
    if not file.is_file():
        return "it is no file" if file.exists() else "no such file"
    with KernelLog(file=file) as log:
        return log.unreadable or ""
