"""The device: faults are noticed late, stay, and are written to the kernel's log."""

from pathlib import Path

import numpy as np
import pytest

from culpa.triage import LogReader
from culpa_lab.engine.device import Device
from culpa_lab.engine.errors import AcceleratorError, KernelFault
from culpa_lab.engine.kernel_log import KernelLog


def device(log: Path | None = None, *, blocking: bool = False) -> Device:
    made = Device(1, KernelLog(log), "VLLM::Worker_PP1", blocking=blocking)
    made.reserve(10, 4096)
    made.map([0, 1, 2])
    return made


def test_mapped_pages_may_be_touched() -> None:
    made = device()
    made.touch(2, "WRITE")
    made.touch_all(np.array([0, 1, 2]))
    made.synchronize()


@pytest.mark.parametrize("page", [3, 10, -1])
def test_a_bad_access_is_told_at_the_next_use_of_the_context_and_ever_after(page: int) -> None:
    made = device()
    with pytest.raises(KernelFault):
        made.touch(page)
    for _ in range(2):
        with pytest.raises(AcceleratorError, match="an illegal memory access was encountered"):
            made.synchronize()
        with pytest.raises(RuntimeError, match="Triton Error"):
            made.launch()
        with pytest.raises(KernelFault):
            made.touch(1)


def test_with_blocking_launches_it_is_told_at_once() -> None:
    with pytest.raises(AcceleratorError):
        device(blocking=True).touch(7)


def test_memory_that_was_taken_away_is_gone() -> None:
    made = device()
    made.unmap([2])
    with pytest.raises(KernelFault):
        made.touch_all(np.array([0, 2]))


def test_a_page_fault_is_xid_31_at_the_address_of_the_page(tmp_path: Path) -> None:
    made = device(tmp_path / "kernel.log")
    with pytest.raises(KernelFault):
        made.touch(3, "WRITE")
    with pytest.raises(KernelFault):
        made.touch(4)
    [line] = (tmp_path / "kernel.log").read_text(encoding="utf-8").splitlines()
    assert "NVRM: Xid (PCI:0000:41:00): 31," in line
    assert "faulted @ 0x7f3a_04003000" in line
    assert line.endswith("FAULT_PDE ACCESS_TYPE_VIRT_WRITE")


def test_an_access_outside_of_everything_is_xid_13(tmp_path: Path) -> None:
    made = device(tmp_path / "kernel.log")
    with pytest.raises(KernelFault):
        made.touch(99)
    assert ": 13, pid=" in (tmp_path / "kernel.log").read_text(encoding="utf-8")


def test_triage_reads_the_kernels_lines(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "kernel.log")
    log.out_of_memory_kill("VLLM::Worker_PP1", 1024)
    reader = LogReader("vllm")
    reader.feed((tmp_path / "kernel.log").read_text(encoding="utf-8").splitlines())
    incident = reader.incident(exit_code=1, alive=False)
    assert incident is not None
    assert incident.symptom == "host_oom_kill"
