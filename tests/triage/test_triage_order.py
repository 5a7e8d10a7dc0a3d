"""One time line from clocks that differ: zones, uptimes, seconds and nanoseconds."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.model import Incident
from culpa.triage import LogDocument
from culpa.triage.clock import days_added, stamp_nanoseconds, wall_second, yearless

ENGINE = [
    "(APIServer pid=10) INFO 06-24 15:00:01 [api_server.py:1896] vLLM API server version 0.12.0",
    "(Worker_TP0 pid=7300) INFO 06-24 15:01:00 [gpu_model_runner.py:2602] Starting to load model acme/m70b...",
    "(Worker_TP1 pid=7301) INFO 06-24 15:01:00 [gpu_model_runner.py:2602] Starting to load model acme/m70b...",
    "(Worker_TP1 pid=7301) ERROR 06-24 15:44:21 [x.py:880] Traceback (most recent call last):",
    "(Worker_TP1 pid=7301) ERROR 06-24 15:44:21 [x.py:880] RuntimeError: CUDA error: unspecified launch failure",
    "(Worker_TP0 pid=7300) ERROR 06-24 15:44:22 [x.py:880] RuntimeError: NCCL error: unhandled cuda error (run with x)",
]
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
LOST = "NVRM: Xid (PCI:0000:b3:00): 79, pid={pid}, name=VLLM::Worker_TP, GPU has fallen off the bus."
KERNELS = {
    "same zone": f"Jun 24 15:44:20 host kernel: {LOST.format(pid=90211)}",
    "west": f"Jun 24 08:44:20 host kernel: {LOST.format(pid=90211)}",
    "east, half an hour": f"[Wed Jun 24 21:14:20 2026] {LOST.format(pid=90211)}",
    "iso with zone": f"2026-06-24T17:44:20+0200 host kernel: {LOST.format(pid=90211)}",
    "Talos": f"10.0.0.19: kern: warning: [2026-06-24T15:44:20.342163186Z]: {LOST.format(pid=90211)}",
    "uptime, same pid": f"[93904.120111] {LOST.format(pid=7301)}",
    "uptime, host pid": f"[93904.120111] {LOST.format(pid=90211)}",
}


def judged(*files: list[str]) -> tuple[Incident, LogDocument]:
    document = LogDocument()
    for number, lines in enumerate(files):
        document.begin(f"file-{number}")
        document.feed("\n".join(lines).encode())
    document.end()
    incident = document.incident()
    assert incident is not None
    return incident, document


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("first", ["kernel", "engine"])
def test_a_lost_gpu_comes_before_what_cuda_sees_of_it_whatever_the_clock(kernel: str, first: str) -> None:
    files = [[KERNELS[kernel]], ENGINE] if first == "kernel" else [ENGINE, [KERNELS[kernel]]]
    incident, document = judged(*files)
    assert incident.symptom == "gpu_hw_lost"
    assert incident.root is not None
    assert document.locate(incident.root.line) == (f"file-{0 if first == 'kernel' else 1}", 1)
    assert incident.first_failed_rank == (("tp", 1),)


def test_the_boot_time_that_the_log_tells_sets_the_uptime() -> None:
    told = ["$ uptime -s", "2026-06-23 13:39:16"]
    # 93904 s after the boot is 15:44:20; 93000 s is a quarter of an hour before anything failed.
    late, _ = judged([*told, f"[93904.120111] {LOST.format(pid=90211)}"], ENGINE)
    assert late.symptom == "gpu_hw_lost"
    assert late.root is not None


def test_an_error_before_the_gpu_was_lost_stays_the_first() -> None:
    kernel = f"Jun 24 15:44:40 host kernel: {LOST.format(pid=90211)}"
    incident, _ = judged([kernel], ENGINE)
    assert incident.symptom == "cuda_launch_failure"


def test_nanoseconds_of_the_collector_decide_within_a_second() -> None:
    fault = f"ERROR 06-24 15:44:21 [x.py:880] {ILLEGAL}"
    incident, _ = judged(
        [
            f"2026-06-24T13:44:21.900000000Z (Worker_TP0 pid=7300) {fault}",
            f"2026-06-24T13:44:21.100000000Z (Worker_TP1 pid=7301) {fault}",
        ]
    )
    assert incident.first_failed_rank == (("tp", 1),)
    assert incident.root is not None
    assert incident.root.line == 2


def test_a_tie_in_seconds_names_no_rank() -> None:
    fault = f"ERROR 06-24 15:44:21 [x.py:880] {ILLEGAL}"
    incident, _ = judged([f"(Worker_TP0 pid=7300) {fault}", f"(Worker_TP1 pid=7301) {fault}"])
    assert incident.first_failed_rank is None


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2199, 1, 1)))
def test_a_collectors_time_and_the_same_wall_clock_are_the_same_second(time: datetime) -> None:
    stamp = stamp_nanoseconds(time.replace(tzinfo=UTC).isoformat(timespec="seconds"))
    assert stamp is not None
    assert yearless(stamp) == wall_second(time.strftime("%Y-%m-%d %H:%M:%S"))


@given(
    st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2026, 12, 30)),
    st.integers(0, 300 * 86400),
)
def test_an_uptime_is_added_over_the_real_lengths_of_months(boot: datetime, uptime: int) -> None:
    later = boot + timedelta(seconds=uptime)
    begun = wall_second(boot.strftime("%Y-%m-%d %H:%M:%S"))
    assert begun is not None
    if later.year == boot.year:
        assert days_added(begun, uptime) == wall_second(later.strftime("%Y-%m-%d %H:%M:%S"))
    else:
        assert days_added(begun, uptime) > begun
