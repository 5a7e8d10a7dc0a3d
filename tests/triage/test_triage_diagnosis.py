"""What surrounds an incident: Xids that belong and that don't, the GPU, hardware or software, what to fetch."""

import pytest

from culpa.model import Diagnosis, Incident
from culpa.triage import LogReader
from culpa.triage.windows import kernel_log, window

XID = "gpu1 kernel: NVRM: Xid (PCI:0000:9c:00): "
FAULT = (
    "Ch 0000003b, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_9 faulted @ 0x1_0c3c0000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)
START = "(APIServer pid=5001) INFO 09-05 03:40:01 [api_server.py:1028] vLLM API server version 0.24.0"
CRASH = (
    "(Worker_TP2 pid=5103) ERROR 09-05 03:56:20 [multiproc_executor.py:1004] "
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
)
TIMED_OUT = (
    "(EngineCore pid=5050) ERROR 09-05 03:56:20 [core.py:1132] EngineCore encountered a fatal error.",
    "(EngineCore pid=5050) ERROR 09-05 03:56:20 [core.py:1132] Traceback (most recent call last):",
    "(EngineCore pid=5050) ERROR 09-05 03:56:20 [core.py:1132] TimeoutError: RPC call to sample_tokens timed out.",
)


def incident(*lines: str) -> Incident:
    reader = LogReader("generic")
    reader.feed(lines)
    found = reader.incident(alive=False)
    assert found is not None
    return found


def diagnosis(*lines: str) -> Diagnosis:
    found = incident(*lines).diagnosis
    assert found is not None
    return found


def stale(*lines: str) -> list[tuple[int, bool]]:
    return [(xid.code, xid.stale) for xid in diagnosis(*lines).xids]


def test_an_xid_older_than_the_process_is_stale_and_no_root() -> None:
    lines = (f"Sep  4 22:00:00 {XID}79, pid=1, name=x, GPU has fallen off the bus.", START, CRASH)
    assert stale(*lines) == [(79, True)]
    assert incident(*lines).symptom == "cuda_illegal_access"
    assert diagnosis(*lines).gpu is None
    assert "older than the process" in diagnosis(*lines).xids[0].why


def test_an_xid_of_another_process_hours_before_the_failure_is_stale() -> None:
    lines = (f"Sep  5 01:00:00 {XID}31, pid=99, name=x, {FAULT}", CRASH)
    assert stale(*lines) == [(31, True)]


def test_an_xid_of_a_desktop_program_is_not_the_engines() -> None:
    lines = (f"Sep  5 03:56:10 {XID}31, pid=1500, name=Xorg, {FAULT}", CRASH)
    assert stale(*lines) == [(31, True)]
    assert diagnosis(*lines).gpu is None


def test_an_xid_before_the_machine_started_again_is_stale() -> None:
    lines = (
        f"Sep  5 03:50:00 {XID}31, pid=99, name=x, {FAULT}",
        "-- Boot 0123456789abcdef0123456789abcdef --",
        "Sep  5 03:52:00 gpu1 kernel: Linux version 6.8.0",
        f"Sep  5 03:56:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}",
        CRASH,
    )
    assert stale(*lines) == [(31, True), (31, False)]


def test_a_driver_that_is_loaded_after_the_failure_makes_nothing_stale() -> None:
    lines = (
        f"Sep  5 03:56:20 {XID}31, pid=77, name=x, {FAULT}",
        CRASH,
        "Sep  5 04:10:00 gpu1 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.82.07",
    )
    assert stale(*lines) == [(31, False)]


def test_teardown_belongs_to_the_failure_and_is_called_so() -> None:
    found = diagnosis(
        f"Sep  5 03:56:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}",
        f"Sep  5 03:56:21 {XID}45, pid=5103, name=VLLM::Worker_TP, channel 0x0000000a",
        CRASH,
    )
    assert [(xid.code, xid.stale, xid.teardown) for xid in found.xids] == [
        (31, False, False),
        (45, False, True),
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Memory cgroup out of memory: Killed process 71213 (python) total-vm:1kB",
        "NVRM: GPU 0000:9c:00.0: GPU has fallen off the bus.",
    ],
)
def test_an_older_message_of_the_kernel_is_no_root_either(message: str) -> None:
    assert incident(f"Sep  4 22:00:00 gpu1 kernel: {message}", START, CRASH).symptom == "cuda_illegal_access"
    assert incident(START, f"Sep  5 03:56:10 gpu1 kernel: {message}", CRASH).symptom != "cuda_illegal_access"


def test_page_faults_at_one_address_or_at_another_each_time_are_told_apart() -> None:
    other = FAULT.replace("0x1_0c3c0000", "0x2_0c3c0000")
    first = f"Sep  5 03:50:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}"
    fixed = diagnosis(first, f"Sep  5 03:56:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}", CRASH)
    drifting = diagnosis(first, f"Sep  5 03:56:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {other}", CRASH)
    assert "the address is fixed" in fixed.verdict.why
    assert "the address is drifting" in drifting.verdict.why


def test_the_same_hour_in_two_zones_is_no_age() -> None:
    lines = (f"Sep  5 01:56:21 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}", CRASH)
    assert stale(*lines) == [(31, False)]


def test_the_gpu_comes_from_the_process_that_the_kernel_names() -> None:
    found = diagnosis(
        f"Sep  5 03:56:20 {XID}31, pid=5103, name=VLLM::Worker_TP, {FAULT}",
        f"Sep  5 03:56:20 gpu1 kernel: NVRM: Xid (PCI:0000:9d:00): 31, pid=5104, name=VLLM::Worker_TP, {FAULT}",
        CRASH,
    )
    assert found.gpu is not None
    assert found.gpu.pci_bus == "0000:9c:00.0"


def test_several_gpus_and_no_process_that_is_known_give_no_gpu() -> None:
    found = diagnosis(
        CRASH,
        f"Sep  5 03:56:20 {XID}31, pid=1, name=x, {FAULT}",
        f"Sep  5 03:56:20 gpu1 kernel: NVRM: Xid (PCI:0000:9d:00): 31, pid=2, name=x, {FAULT}",
    )
    assert found.gpu is None


def test_an_xid_says_nothing_of_a_host_that_ran_out_of_memory() -> None:
    found = diagnosis(
        f"Sep  5 03:56:20 {XID}31, pid=1, name=x, {FAULT}",
        "[Sat Sep  5 03:56:25 2026] Memory cgroup out of memory: Killed process 71213 (sglang::schedul) total-vm:1kB",
    )
    assert found.gpu is None
    assert found.verdict.blame == "memory"


def test_a_hang_with_ecc_errors_is_hardware_and_names_rank_and_gpu() -> None:
    found = incident(
        START,
        "(Worker_TP2 pid=5103) INFO 09-05 03:41:00 [parallel_state.py:1607] world_size=4 rank=2 local_rank=2 x",
        f"Sep  5 03:51:10 {XID}48, pid=5103, name=VLLM::Worker_TP, DBE (double bit error) ECC Error",
        *TIMED_OUT,
    )
    assert found.symptom == "gpu_hw_ecc"
    assert found.first_failed_rank == (("tp", 2),)
    assert found.diagnosis is not None
    assert found.diagnosis.verdict.blame == "hardware"
    assert found.diagnosis.gpu is not None
    assert found.diagnosis.gpu.pci_bus == "0000:9c:00.0"


def test_the_process_that_a_gsp_time_out_names_is_no_suspect() -> None:
    found = incident(
        "(Worker_TP2 pid=5103) INFO 09-05 03:41:00 [parallel_state.py:1607] world_size=4 rank=2 local_rank=2 x",
        f"Sep  5 03:51:10 {XID}119, pid=5103, name=VLLM::Worker_TP, Timeout after 45s of waiting for RPC response "
        "from GPU3 GSP!",
        *TIMED_OUT,
    )
    assert found.symptom == "gsp_timeout"
    assert found.first_failed_rank is None


PAGE_FAULT = (
    "[14328.198504] NVRM: Xid (PCI:0000:0a:00): 31, pid=7302, name=VLLM::Worker_TP, Ch 00000010, intr 00000000. MMU "
    "Fault: ENGINE CE2 HUBCLIENT_CE0 faulted @ 0x7f29_5b8c9000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
HALT = "NVRM: Xid (PCI:0000:0a:00): 62, pid='<unknown>', name=<unknown>, 2023b230 20238a3a 2023e8b6"
OWN_WORDS = (
    "(Worker_TP1 pid=7302) ERROR 07-15 21:01:02 [multiproc_executor.py:871] torch.AcceleratorError: CUDA error: an "
    "illegal memory access was encountered"
)


def test_a_gpu_that_halts_after_a_page_fault_only_follows() -> None:
    found = incident(PAGE_FAULT, f"[14370.687545] {HALT}", OWN_WORDS)
    assert (found.symptom, found.diagnosis and found.diagnosis.verdict.blame) == (
        "cuda_illegal_access",
        "software",
    )
    assert found.root is not None
    assert found.root.line == 1


@pytest.mark.parametrize("lines", [(f"[14370.687545] {HALT}", OWN_WORDS), (PAGE_FAULT, f"[14370.687545] {HALT}"),
                                   (PAGE_FAULT, f"[94370.687545] {HALT}", OWN_WORDS)])  # fmt: skip
def test_a_gpu_that_halts_by_itself_or_is_all_that_is_seen_is_the_failure(lines: tuple[str, ...]) -> None:
    assert incident(*lines).symptom == "gpu_hw_lost"


@pytest.mark.parametrize(
    ("code", "blame"), [(149, "link"), (79, "hardware"), (119, "driver"), (13, "software")]
)
def test_the_driver_may_name_a_cause_that_the_log_has_lost(code: int, blame: str) -> None:
    found = diagnosis(
        f"[7.5] NVRM: Xid (PCI:0000:0a:00): 45, pid=7302, name=python3, Ch 00000001 caused by previous Xid {code}",
        OWN_WORDS,
    )
    assert found.verdict.blame == blame
    assert found.gpu is not None
    assert found.gpu.pci_bus == "0000:0a:00.0"


def test_text_of_failing_memory_without_an_xid_leaves_it_open() -> None:
    verdict = diagnosis(
        CRASH.replace("an illegal memory access was encountered", "uncorrectable ECC error encountered")
    ).verdict
    assert verdict.blame == "unknown"


def test_a_launch_failure_is_nobodys_fault_until_the_kernel_log_was_read() -> None:
    failed = CRASH.replace("an illegal memory access was encountered", "unspecified launch failure")
    assert diagnosis(failed).verdict.blame == "unknown"
    assert diagnosis("Jul 15 21:00:00 host kernel: usb 1-1: new device", failed).verdict.blame == "software"


FRAME = '  File "/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4053, in execute_model'


def test_a_traceback_alone_tells_the_engine_by_its_files() -> None:
    found = diagnosis(
        "Traceback (most recent call last):", FRAME, "RuntimeError: CUDA error: an illegal memory access"
    )
    assert found.engine == "vllm"


def test_a_date_in_brackets_is_not_the_mark_of_an_engine() -> None:
    found = diagnosis(
        "[2025-09-17 15:16:23] node:3:4 [0] net_ib.cc:199 NCCL WARN NET/IB : Got async error event: port error",
        "[2025-09-17 15:16:31] node:3:4 [0] net_ib.cc:199 NCCL WARN NET/IB : Got async error event: port active",
        "Traceback (most recent call last):", FRAME, "RuntimeError: CUDA error: unspecified launch failure",
    )  # fmt: skip
    assert found.engine == "vllm"


@pytest.mark.parametrize(
    ("line", "blame"),
    [
        (CRASH, "software"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "memory"),
        ("ValueError: No available memory for the cache blocks.", "configuration"),
        ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "software"),
    ],
)
def test_the_class_tells_where_the_fault_lies(line: str, blame: str) -> None:
    assert diagnosis(line).verdict.blame == blame


def test_only_consequences_ask_for_what_is_missing_with_command_and_window() -> None:
    found = incident(
        "(APIServer pid=21) ERROR 06-03 14:20:11 [async_llm.py:485] AsyncLLM output_handler failed.",
        "(APIServer pid=21) ERROR 06-03 14:20:11 [async_llm.py:485] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    )
    text = "\n".join(found.missing_evidence)
    assert "only consequences" in text
    assert '--since "$(date +%Y)-06-03 14:15:11" --until "$(date +%Y)-06-03 14:25:11"' in text
    assert "nvidia-smi -q -d ECC,ROW_REMAPPER" in text
    assert found.diagnosis is not None
    assert found.diagnosis.confidence == "low"


@pytest.mark.parametrize(
    ("time", "since"),
    [
        ("12-31 23:58:00", "$(date +%Y)-12-31 23:53:00"),
        ("2026-07-15T15:33:47.500000001Z", "2026-07-15 15:28:47 UTC"),
        ("2025-09-02T08:04:02.878085941-07:00", "2025-09-02 14:59:02 UTC"),
        ("2026-03-10 09:01:33", "2026-03-10 08:56:33"),
        ("05/27/2025-21:12:36", "2025-05-27 21:07:36"),
        ("Aug 22 05:20:22", "$(date +%Y)-08-22 05:15:22"),
        ("Tue Mar 10 09:01:31 2026", "2026-03-10 08:56:31"),
        ("02-29 00:00:00", "$(date +%Y)-02-28 23:55:00"),
    ],
)
def test_the_window_is_written_as_journalctl_takes_it(time: str, since: str) -> None:
    found = window(time)
    assert found is not None
    assert found[0] == since


@pytest.mark.parametrize(
    "time", [None, "", "0.54.236.075", "93904.120111", "13-45 99:00:00", "0001-01-01T00:00:00Z"]
)
def test_what_is_no_wall_clock_gives_no_window(time: str | None) -> None:
    assert window(time) is None
    assert kernel_log(time) == "journalctl -k -o short-iso"
