"""Which single lines prove that an engine can only end, and which it may print and live on."""

import pytest

from culpa.triage import LogReader

READY = "INFO:     Application startup complete."


def fed(dialect: str, *lines: str) -> LogReader:
    reader = LogReader(dialect)
    reader.feed(lines)
    return reader


@pytest.mark.parametrize("dialect", ["generic", "vllm", "llamacpp"])
@pytest.mark.parametrize(
    "line",
    [
        "WARNING: CUDA error: out of memory, retrying with a smaller pool",
        "torch.OutOfMemoryError: CUDA out of memory. caught, falling back to CPU offload",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "cudaMalloc failed: out of memory",
        "INFO faulthandler enabled: will dump on Segmentation fault (core dumped)",
        "Segmentation fault handler installed",
        "engine: Segmentation fault handler installed",
        "faulthandler will print Fatal Python error: Segmentation fault and a stack",
        "SIGSEGV received is logged with a stack",
        "on std::terminate we print terminate called after throwing an instance of 'X'",
        "the last run ended with Aborted (core dumped)",
        "Caught signal 11 handler is installed",
        "2026-11-30 05:31:02,001 WARNING CUDA error: an illegal memory access was encountered in a child; restarted",
        "[WARNING] GGML_ASSERT(n > 0) failed in the draft model, continuing without it",
        "/srv/x.py:12: UserWarning: CUDA error: misaligned address on this driver",
        "DEBUG: terminate called after throwing an instance of 'X' (test of the handler)",
        "level=info msg=x CUDA error: unspecified launch failure",
    ],
)
def test_a_line_that_an_engine_survives_is_neither_decisive_nor_an_incident(dialect: str, line: str) -> None:
    for lines in ([line], [READY, line]):
        reader = fed(dialect, *lines)
        assert not reader.decisive
        assert reader.incident() is None


@pytest.mark.parametrize("dialect", ["generic", "vllm"])
@pytest.mark.parametrize("level", ["INFO", "WARNING", "DEBUG"])
def test_the_level_of_the_lines_own_prefix_counts(dialect: str, level: str) -> None:
    head = f"(Worker_TP0 pid=7) {level} 07-15 21:01:01 [x.py:9] "
    assert not fed(dialect, head + "CUDA error: an illegal memory access was encountered").decisive
    assert not fed(
        dialect, head + "Traceback (most recent call last):", head + "RuntimeError: CUDA error: x"
    ).decisive


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        ("Segmentation fault (core dumped)", "segfault"),
        ("Segmentation fault", "segfault"),
        ("run.sh: line 3:  1234 Segmentation fault      (core dumped) python3 -m engine", "segfault"),
        ("run.sh: line 3:  1234 Segmentation fault      python3 -m engine", "segfault"),
        ("bash: line 1: 77 Aborted                 (core dumped) ./engine", "abort"),
        ("engine: Segmentation fault (core dumped)", "segfault"),
        ("zsh: segmentation fault (core dumped)  ./engine", "segfault"),
        ("[1]+  Segmentation fault      (core dumped) ./engine", "segfault"),
        ("Bus error (core dumped)", "segfault"),
        ("Fatal Python error: Segmentation fault", "segfault"),
        ("*** SIGSEGV received at time=1700000000 on cpu 57 ***", "segfault"),
        (
            "[2026-08-04 14:44:27,330 E 3 3] logging.cc:361: *** SIGSEGV received at time=1691 on cpu 9 ***",
            "segfault",
        ),
        (
            "[node:7:0:7] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)",
            "segfault",
        ),
        ("[node:7] Signal: Segmentation fault (11)", "segfault"),
        ("terminate called after throwing an instance of 'c10::Error'", "abort"),
        ("[1,3]<stderr>:terminate called after throwing an instance of 'c10::Error'", "abort"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "host_out_of_memory"),
        ("Aborted (core dumped)", "abort"),
        ("Illegal instruction (core dumped)", "abort"),
        ("*** SIGABRT received at time=1700000000 on cpu 5 ***", "abort"),
        ("double free or corruption (!prev)", "abort"),
        ("*** stack smashing detected ***: terminated", "abort"),
        ("/src/llama-context.cpp:2289: GGML_ASSERT(n_outputs_max <= n) failed", "assertion"),
        (
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            "cuda_illegal_access",
        ),
        ("ERROR: CUDA error: misaligned address", "cuda_misaligned_address"),
    ],
)
def test_a_line_in_the_shape_of_a_death_is_decisive(line: str, symptom: str) -> None:
    reader = fed("generic", READY, line)
    assert reader.decisive
    found = reader.incident()
    assert found is not None
    assert found.symptom == symptom


@pytest.mark.parametrize("dialect", ["generic", "vllm", "llamacpp"])
@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "ggml_alloc: cudaMalloc failed: out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. caught, falling back to CPU offload",
        "WARNING: CUDA error: out of memory, retrying with a smaller pool",
    ],
)
def test_memory_that_ran_out_counts_once_the_process_has_ended_or_a_request_failed(
    dialect: str, line: str
) -> None:
    reader = fed(dialect, READY, line)
    for found in (
        reader.incident(exit_code=1),
        reader.incident(alive=False),
        reader.incident(request_failed=True),
    ):
        assert found is not None
        assert found.root is not None
        assert (found.symptom, found.root.line) == ("cuda_oom", 2)


def test_memory_that_ran_out_counts_when_the_log_shows_that_a_request_failed_after_it() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    failed = 'INFO:     10.0.0.20:52114 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error'
    found = fed("generic", READY, oom, failed).incident()
    assert found is not None
    assert found.symptom == "cuda_oom"
    assert fed("generic", READY, failed, oom).incident() is None


def test_memory_that_ran_out_in_a_worker_of_vllm_ends_the_engine() -> None:
    head = "(Worker_TP0 pid=7) ERROR 07-15 21:01:01 [multiproc_executor.py:1007] "
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    reader = fed("vllm", READY, head + "Traceback (most recent call last):", head + oom)
    assert reader.decisive


def test_what_only_a_warning_speaks_of_gives_way_to_the_error_that_ended_the_process() -> None:
    warning = "WARNING: CUDA error: out of memory, retrying with a smaller pool"
    found = fed("generic", READY, warning, "step 5", "RuntimeError: fifth").incident(exit_code=1)
    assert found is not None
    assert (found.symptom, found.event) == ("error_exit", "RuntimeError: fifth")
    killed = fed("generic", READY, warning).incident(exit_code=-11)
    assert killed is not None
    assert (killed.symptom, killed.root) == ("segfault", None)
