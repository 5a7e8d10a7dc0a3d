"""What NVML says of GPUs and links, and what is said where it refuses."""

import pytest
from tests.environment.nvml import StandIn

from culpa.environment.machine import gpu_facts
from culpa.host import gpus, read_machine


def facts(monkeypatch: pytest.MonkeyPatch, nvml: StandIn) -> dict[str, str | None]:
    monkeypatch.setattr(gpus, "_nvml", lambda: (nvml, None))
    return {fact.key: fact.value for fact in gpu_facts(read_machine())}


def test_every_gpu_is_named_with_what_a_report_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found = facts(monkeypatch, StandIn())
    assert found["gpu.count"] == "2"
    assert found["gpu.driver"] == "570.86.10"
    assert found["gpu.cuda"] == "12.8"
    assert found["gpu.1.name"] == "NVIDIA A100"
    assert found["gpu.1.sm"] == "8.0"
    assert found["gpu.1.bus"] == "0000:42:00.0"
    assert found["gpu.0.ecc"] == "on"
    assert found["gpu.0.mig"] == "off"
    assert found["gpu.0.throttling"] == "none (idle)"
    assert found["gpu.0.pcie"] == "gen 1 x16 now, gen 4 x16 at most"
    assert found["link.0-1"] == "SYS, across NUMA nodes; peer access: read ok, write ok, NVLink ok"


@pytest.mark.parametrize(
    ("call", "answer", "key", "said"),
    [
        (
            "nvmlDeviceGetRemappedRows",
            (1, 2, 1, 0),
            "remapped_rows",
            "1 corrected, 2 uncorrected, remapping pending",
        ),
        ("nvmlDeviceGetRemappedRows", (0, 9, 0, 1), "remapped_rows", "REMAPPING FAILED"),
        ("nvmlDeviceGetTotalEccErrors", 7, "ecc_errors", "7 uncorrected since boot"),
        (
            "nvmlDeviceGetCurrentClocksEventReasons",
            0x48,
            "throttling",
            "hardware slowdown, hardware thermal slowdown",
        ),
        ("nvmlDeviceGetEccMode", [1, 0], "ecc", "on, off after a reset"),
        ("nvmlDeviceGetMigMode", [1, 1], "mig", "on"),
    ],
)
def test_a_troubled_gpu_says_so(
    monkeypatch: pytest.MonkeyPatch, call: str, answer: object, key: str, said: str
) -> None:
    assert said in (facts(monkeypatch, StandIn(**{call: answer}))[f"gpu.0.{key}"] or "")


def test_links_that_are_down_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = facts(monkeypatch, StandIn(links={0: (1, 1, 0, 1), 1: ()}))
    assert found["gpu.0.nvlink"] == "3 of 4 links up, down: 2"
    assert found["gpu.1.nvlink"] == "none"


def test_what_the_driver_refuses_has_its_reason_and_the_rest_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = StandIn()
    nvml.refused = {"nvmlDeviceGetRemappedRows", "nvmlDeviceGetMigMode", "nvmlDeviceGetTotalEccErrors"}
    monkeypatch.setattr(gpus, "_nvml", lambda: (nvml, None))
    found = {fact.key: fact for fact in gpu_facts(read_machine())}
    assert found["gpu.0.remapped_rows"].value is None
    assert found["gpu.0.remapped_rows"].reason == "NVML: Not Supported"
    assert found["gpu.0.ecc_errors"].value is None
    assert found["gpu.0.ecc"].value == "on"


def test_a_package_that_is_older_than_a_question_does_not_break_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = StandIn()
    del nvml.answers["nvmlDeviceGetRemappedRows"]
    monkeypatch.setattr(gpus, "_nvml", lambda: (nvml, None))
    found = {fact.key: fact for fact in gpu_facts(read_machine())}
    assert "nvidia-ml-py has no nvmlDeviceGetRemappedRows" in found["gpu.0.remapped_rows"].reason


def test_without_nvml_one_reason_stands_for_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_nvml", lambda: (None, "no NVIDIA driver on this machine"))
    found = {fact.key: fact for fact in gpu_facts(read_machine())}
    assert found["gpu.count"].value is None
    assert found["gpu.driver"].reason == "no NVIDIA driver on this machine"
