"""The machine, its GPUs through a stand-in of NVML, and the facts for a report."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from culpa.host import (
    Gpu,
    busy_gpus,
    environment_facts,
    gpu_memory_used,
    gpu_processes,
    gpus,
    read_machine,
    visible_gpus,
    wait_until_idle,
)

GIB = 1 << 30


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class FakeNvml:
    """Stands in for the pynvml module: two GPUs, with processes and memory that a test sets."""

    NVMLError = NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    nvmlMemory_v2 = 2

    def __init__(self) -> None:
        self.start_error: int | None = None
        self.processes: dict[int, list[tuple[int, int | None]]] = {0: [], 1: []}
        self.used = {0: 100 << 20, 1: 100 << 20}
        self.looks = 0

    def nvmlInit(self) -> None:
        if self.start_error is not None:
            raise NVMLError(self.start_error)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.used)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"NVIDIA H200"  # older packages give bytes

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}{handle}-abc"

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=f"00000000:{0x43 + handle:02X}:00.0")

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int = 1) -> SimpleNamespace:
        self.looks += 1
        return SimpleNamespace(total=140 * GIB, used=self.used[handle])

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in self.processes[handle]]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """A machine with NVML."""
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    gpus._nvml.cache_clear()
    yield fake
    gpus._nvml.cache_clear()


def test_gpus_are_read_with_what_a_trial_needs(nvml: FakeNvml) -> None:
    machine = read_machine()
    assert machine.gpus[0] == Gpu(0, "NVIDIA H200", 140 * GIB, "00000000:43:00.0", "9.0", "GPU-00-abc")
    assert (len(machine.gpus), machine.driver, machine.without_gpu_reason) == (2, "580.65", None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(12, "no NVIDIA driver on this machine"), (9, "NVML does not start: error 9")],
)
def test_without_a_driver_there_are_no_gpus_and_a_reason(nvml: FakeNvml, error: int, reason: str) -> None:
    nvml.start_error = error
    machine = read_machine()
    assert (machine.gpus, machine.without_gpu_reason) == ((), reason)
    assert busy_gpus(machine) == []


def test_without_the_package_there_are_no_gpus_and_a_reason(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    machine = read_machine()
    assert machine.gpus == ()
    assert machine.without_gpu_reason == "the package nvidia-ml-py is not installed, so no GPU can be seen"


def test_idle_gpus_are_not_busy(nvml: FakeNvml) -> None:
    machine = read_machine()
    assert busy_gpus(machine) == []
    assert gpu_processes(machine.gpus) == []
    assert gpu_memory_used(machine.gpus) == {0: 100 << 20, 1: 100 << 20}


def test_who_holds_gpu_memory_is_named(nvml: FakeNvml) -> None:
    nvml.processes[1] = [(os.getpid(), 2 * GIB), (2**22 + 1, None)]
    first, second = busy_gpus(read_machine())
    assert first.startswith(f"GPU 1 (NVIDIA H200): pid {os.getpid()} (")
    assert first.endswith(" holds 2.0 GiB")
    assert second == f"GPU 1 (NVIDIA H200): pid {2**22 + 1}, which is not visible here holds memory"


def test_memory_that_nobody_visible_holds_makes_a_gpu_busy(nvml: FakeNvml) -> None:
    nvml.used[0] = 70 * GIB
    assert busy_gpus(read_machine()) == [
        "GPU 0 (NVIDIA H200): 70.0 GiB in use by processes that are not visible"
    ]


def test_gpus_that_the_launch_does_not_see_may_be_busy(nvml: FakeNvml) -> None:
    nvml.used[0] = 70 * GIB
    assert busy_gpus(read_machine(), visible="1") == []


def test_waiting_ends_when_the_memory_is_back(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = read_machine()
    nvml.used[0] = 70 * GIB
    original = nvml.nvmlDeviceGetMemoryInfo

    def give_back(handle: int, version: int = 1) -> SimpleNamespace:
        if nvml.looks > 6:
            nvml.used[0] = 0
        return original(handle, version)

    monkeypatch.setattr(nvml, "nvmlDeviceGetMemoryInfo", give_back)
    assert asyncio.run(wait_until_idle(machine, patience=60)) == []


def test_waiting_ends_when_patience_does(nvml: FakeNvml) -> None:
    nvml.used[0] = 70 * GIB
    assert len(asyncio.run(wait_until_idle(read_machine(), patience=0.01))) == 1


def gpu(index: int, name: str = "A") -> Gpu:
    return Gpu(index, name, GIB, "", "9.0", f"GPU-{index}{index}-abc")


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("0, 2", [0, 2]),
        ("0,9,1", [0]),
        ("-1", []),
        ("GPU-22-abc", [2]),
        ("GPU-1", [1]),
        ("GPU-", []),
        ("MIG-x", []),
    ],
)
def test_visible_gpus_are_those_that_cuda_would_use(visible: str | None, indices: list[int]) -> None:
    assert [found.index for found in visible_gpus((gpu(0), gpu(1), gpu(2)), visible)] == indices


def test_numbers_select_all_gpus_where_their_kinds_differ() -> None:
    mixed = (gpu(0, "A"), gpu(1, "B"))
    assert visible_gpus(mixed, "1") == mixed


def test_the_facts_for_a_report_are_there_without_names_of_the_machine() -> None:
    facts = environment_facts()
    assert facts.keys() >= {"os", "kernel", "python", "cpu", "cores", "memory", "shared_memory", "gpus"}
    assert all(facts.values())
    words = " ".join(facts.values()).split()
    assert socket.gethostname() not in words


def test_the_facts_name_gpus_and_driver(nvml: FakeNvml) -> None:
    facts = environment_facts()
    assert facts["gpus"].startswith("GPU 0 (NVIDIA H200) 140 GiB, sm 9.0, 00000000:43:00.0; GPU 1")
    assert facts["gpu_driver"] == "580.65"


def test_the_limits_of_a_container_bound_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/sys/fs/cgroup/memory.max": str(GIB), "/sys/fs/cgroup/cpu.max": "150000 100000"}
    monkeypatch.setattr("culpa.host.machine.read_text", lambda name: files.get(name, ""))
    machine = read_machine()
    assert (machine.memory_bytes, machine.cpus) == (GIB, 1)


@pytest.mark.parametrize("text", ["max", "9223372036854771712", ""])
def test_no_limit_is_no_limit(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("culpa.host.machine.read_text", lambda _: text)
    assert read_machine().memory_bytes == psutil.virtual_memory().total
