"""KernelLog: only what was said since, with a time, and honest about what may not be read."""

import os
import re
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from culpa.host import KernelLog, kernel_log

STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}) localhost kernel: (.*)")


def append(device: Path, *records: str) -> None:
    with device.open("a") as file:
        file.writelines(f"{record}\n" for record in records)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A file in the place of /dev/kmsg, with a message of earlier times."""
    path = tmp_path / "kmsg"
    append(path, "4,1,5000000,-;an old message")
    return path


@pytest.fixture
def no_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which neither syslog(2) nor journalctl shows anything."""

    def refuse(*_: object) -> list[str]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel_log, "_syslog_records", refuse)
    monkeypatch.setattr(kernel_log, "_journal", lambda *_: [])


def test_only_messages_since_the_start_are_read_and_each_once(device: Path) -> None:
    with KernelLog(device) as log:
        assert log.read() == []
        append(device, "4,2,6000000,-;first", "3,3,6000001,-;second; with a semicolon")
        assert [line.partition("kernel: ")[2] for line in log.read()] == ["first", "second; with a semicolon"]
        assert log.read() == []


def test_a_message_carries_the_wall_clock_time(device: Path) -> None:
    with KernelLog(device) as log:
        append(device, f"4,2,{int(time.monotonic() * 1e6)},-;NVRM: Xid (PCI:0000:43:00): 79")
        (line,) = log.read()
    match = STAMP.fullmatch(line)
    assert match
    assert abs(datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S%z").timestamp() - time.time()) < 5
    assert match[2] == "NVRM: Xid (PCI:0000:43:00): 79"


def test_continuation_lines_of_a_record_are_no_messages(device: Path) -> None:
    with KernelLog(device) as log:
        append(device, "4,2,6000000,-;message", " SUBSYSTEM=pci", " DEVICE=+pci:0000:43:00.0")
        assert len(log.read()) == 1


def test_syslog_is_read_where_there_is_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [(5.0, "old")]
    monkeypatch.setattr(kernel_log, "_syslog_records", lambda: list(records))
    with KernelLog(tmp_path / "none") as log:
        assert log.source == "syslog(2)"
        records.append((6.0, "new"))
        assert [line.partition("kernel: ")[2] for line in log.read()] == ["new"]
        assert log.read() == []


def test_the_journal_is_read_where_the_kernel_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = ["2026-10-09T10:15:21+02:00 gpu-box kernel: old"]

    def refuse() -> list[tuple[float, str]]:
        raise PermissionError(1, "Operation not permitted")

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        after = [int(word.removeprefix("--after-cursor=s=")) for word in command if "after-cursor" in word]
        lines = messages[after[0] :] if after else messages[-1:]
        lines = [*lines, f"-- cursor: s={len(messages)}"] if "--show-cursor" in command else lines
        return subprocess.CompletedProcess(command, 0, "\n".join(lines), "")

    monkeypatch.setattr(kernel_log, "_syslog_records", refuse)
    monkeypatch.setattr(subprocess, "run", run)
    with KernelLog(tmp_path / "none") as log:
        assert log.source == "journalctl"
        assert log.read() == []
        messages.append("2026-10-09T10:15:22+02:00 gpu-box kernel: NVRM: Xid (PCI:0000:c1:00): 31")
        assert log.read() == ["2026-10-09T10:15:22+0200 localhost kernel: NVRM: Xid (PCI:0000:c1:00): 31"]
        assert log.read() == []


def test_where_nothing_may_be_read_the_reasons_are_told(tmp_path: Path, no_sources: None) -> None:
    with KernelLog(tmp_path / "none") as log:
        assert log.unreadable == (
            f"the kernel log may not be read ({tmp_path / 'none'}: No such file or directory; "
            "syslog(2): Operation not permitted; journalctl: shows no kernel messages to this user)"
        )
        assert log.read() == []


def test_a_missing_journalctl_is_a_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> list[tuple[float, str]]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel_log, "_syslog_records", refuse)
    monkeypatch.setenv("PATH", str(tmp_path))
    log = KernelLog(tmp_path / "none")
    assert log.unreadable is not None
    assert "journalctl: No such file or directory" in log.unreadable


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg may not be read here")
def test_the_real_device_gives_lines_with_a_time() -> None:
    with KernelLog() as log:
        assert log.source == "/dev/kmsg"
        assert all(STAMP.fullmatch(line) for line in log.read())


def test_a_closed_log_holds_no_descriptor(device: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    log = KernelLog(device)
    log.close()
    log.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert log.read() == []


def test_a_file_in_place_of_the_kernel_log_gives_what_is_appended_to_it(tmp_path: Path) -> None:
    file = tmp_path / "kern.log"
    file.write_text("2026-12-01T00:00:00+0000 host kernel: old\n")
    with KernelLog(file=file) as log:
        assert log.source == str(file)
        with file.open("a") as stream:
            stream.write("2026-12-01T00:00:01+0000 host kernel: new\n")
        assert [line.partition("kernel: ")[2] for line in log.read()] == ["new"]


def test_a_file_that_is_not_there_yet_may_come(tmp_path: Path) -> None:
    file = tmp_path / "kern.log"
    with KernelLog(file=file) as log:
        assert log.read() == []
        file.write_text("first\n")
        assert log.read() == ["first"]
