"""Xids while an engine is verified: those of its GPUs count, those of others are told apart."""

from pathlib import Path

import pytest

from culpa.host import Gpu, KernelLog
from culpa.verify.gpu_messages import GpuMessages, why_elsewhere

GPUS = (Gpu(0, "NVIDIA H200", 1, "00000000:43:00.0", "9.0"),)
OWN = "[1.0] NVRM: Xid (PCI:0000:43:00): 31, pid=7, name=python, MMU Fault"
OTHER = "[1.0] NVRM: Xid (PCI:0000:9e:00): 48, pid=7, name=python, DBE"
LOST = "[2.0] NVRM: GPU 0000:43:00.0: GPU has fallen off the bus."
LOST_OTHER = "[2.0] NVRM: GPU 0000:9e:00.0: GPU has fallen off the bus."


def said(tmp_path: Path, *lines: str, gpus: tuple[Gpu, ...] = GPUS) -> GpuMessages:
    path = tmp_path / "kernel.log"
    path.write_text("[0.5] NVRM: Xid (PCI:0000:43:00): 79, before it all\n")
    with KernelLog(file=path) as kernel:
        messages = GpuMessages(kernel, gpus)
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        messages.look()
        return messages


@pytest.mark.parametrize("line", [OWN, LOST])
def test_a_message_of_its_own_gpu_counts(tmp_path: Path, line: str) -> None:
    assert said(tmp_path, line).own == [line]


@pytest.mark.parametrize("line", [OTHER, LOST_OTHER])
def test_a_message_of_another_gpu_is_told_apart(tmp_path: Path, line: str) -> None:
    messages = said(tmp_path, line)
    assert (messages.own, messages.others) == ([], [line])


def test_a_message_that_names_no_gpu_counts(tmp_path: Path) -> None:
    line = "[2.0] NVRM: fallen off the bus and is not responding to commands."
    assert said(tmp_path, line).own == [line]


def test_where_no_gpu_is_known_every_message_counts(tmp_path: Path) -> None:
    assert said(tmp_path, OWN, OTHER, gpus=()).own == [OWN, OTHER]


def test_other_lines_of_the_kernel_say_nothing(tmp_path: Path) -> None:
    messages = said(tmp_path, "[3.0] usb 1-1: new device")
    assert (messages.own, messages.others) == ([], [])


def test_the_source_names_the_gpus(tmp_path: Path) -> None:
    assert said(tmp_path).source.endswith("all the time, for 0000:43:00.0")


def test_a_log_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    with KernelLog(file=tmp_path / "kernel.log") as kernel:
        kernel.unreadable = "no permission"
        assert GpuMessages(kernel, GPUS).source == "no permission"


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:8000", "http://127.0.0.1:8000/v1", "http://[::1]:8000"]
)
def test_an_endpoint_of_this_machine_has_this_machines_kernel(endpoint: str) -> None:
    assert why_elsewhere(endpoint) == ""


@pytest.mark.parametrize("endpoint", ["http://192.0.2.7:8000", "http://[2001:db8::7]:8000"])
def test_an_endpoint_of_another_machine_has_not(endpoint: str) -> None:
    assert "another machine" in why_elsewhere(endpoint)
