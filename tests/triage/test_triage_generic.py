"""Failures of engines without a dialect of their own, of llama.cpp, and deaths without a word."""

import pytest

from culpa.model import Incident
from culpa.triage import LogReader


def incident(dialect: str, lines: list[str], *, exit_code: int | None = None) -> Incident | None:
    reader = LogReader(dialect)
    reader.feed(lines)
    return reader.incident(exit_code=exit_code, alive=exit_code is None)


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/srv/engine.py", line 10, in <module>',
    "    main()",
    '  File "/srv/engine.py", line 4, in load_tensor',
    "    raise ValueError('bad tensor 12')",
    "ValueError: bad tensor 12",
]


def test_a_traceback_counts_once_the_process_has_ended() -> None:
    assert incident("generic", TRACEBACK) is None
    ended = incident("generic", TRACEBACK, exit_code=1)
    assert ended is not None
    assert ended.root is not None
    assert (ended.symptom, ended.root.line, ended.event) == ("exception", 6, "ValueError: bad tensor <n>")


def test_a_bare_assertion_carries_the_innermost_function() -> None:
    ended = incident("generic", [*TRACEBACK[:4], "    assert ok", "AssertionError"], exit_code=1)
    assert ended is not None
    assert (ended.symptom, ended.event) == ("assertion", "AssertionError in load_tensor")


def test_lines_of_others_inside_an_unprefixed_traceback_do_not_end_it() -> None:
    lines = [
        *TRACEBACK[:4],
        'INFO:     10.0.0.5:52114 - "GET /health HTTP/1.1" 200 OK',
        "loading: done",
        *TRACEBACK[4:],
    ]
    ended = incident("generic", lines, exit_code=1)
    assert ended is not None
    assert ended.event == "ValueError: bad tensor <n>"


def test_a_traceback_without_its_head_is_read_from_its_frames() -> None:
    ended = incident("generic", TRACEBACK[3:], exit_code=1)
    assert ended is not None
    assert ended.event == "ValueError: bad tensor <n>"


def test_a_log_that_ends_inside_a_traceback_says_so() -> None:
    ended = incident("generic", TRACEBACK[:5], exit_code=1)
    assert ended is not None
    assert ended.event == "traceback without its end in load_tensor"
    assert "ends inside a traceback" in ended.missing_evidence[0]


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        ("terminate called after throwing an instance of 'std::runtime_error'", "abort"),
        ("Aborted (core dumped)", "abort"),
        ("Segmentation fault (core dumped)", "segfault"),
        ("Fatal Python error: Segmentation fault", "segfault"),
        ("!!!!!!! Segfault encountered !!!!!!!", "segfault"),
        ("server: /src/kv.cpp:88: void put(int): Assertion `n > 0' failed.", "assertion"),
        ("CUDA error: an illegal memory access was encountered", "cuda_illegal_access"),
    ],
)
def test_lines_that_only_a_dying_process_writes_are_decisive(line: str, symptom: str) -> None:
    reader = LogReader("generic")
    reader.feed([line])
    assert reader.decisive
    found = reader.incident()
    assert found is not None
    assert found.symptom == symptom


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: cannot bind",
        "FATAL:engine:no device",
        "2026-11-30 05:31:02,001 - core - CRITICAL - scheduler died",
    ],
)
def test_an_error_line_counts_only_when_the_process_ends(line: str) -> None:
    assert incident("generic", [line]) is None
    ended = incident("generic", [line], exit_code=1)
    assert ended is not None
    assert ended.symptom == "startup_error"


def test_errors_long_before_the_end_are_not_its_cause() -> None:
    ended = incident(
        "generic",
        [
            "INFO:     Application startup complete.",
            "2026-11-30 05:31:02 ERROR could not parse a request",
            "2026-11-30 07:00:00 ERROR device lost",
            "2026-11-30 07:00:01 ERROR scheduler stopped",
        ],
        exit_code=1,
    )
    assert ended is not None
    assert ended.root is not None
    assert (ended.root.line, ended.symptom) == (3, "error_exit")


@pytest.mark.parametrize("exit_code", [None, 0])
def test_nothing_in_the_log_and_no_bad_end_is_no_incident(exit_code: int | None) -> None:
    assert incident("generic", ["loading", "ready"], exit_code=exit_code) is None
    assert LogReader("generic").incident(alive=False) is None


@pytest.mark.parametrize(
    ("exit_code", "symptom", "event", "fetch"),
    [
        (-11, "segfault", "killed by SIGSEGV", "core dump"),
        (139, "segfault", "killed by SIGSEGV", "core dump"),
        (-6, "abort", "killed by SIGABRT", "core dump"),
        (-9, "silent_death", "killed by SIGKILL", "journalctl -k"),
        (-15, "silent_death", "killed by SIGTERM", "who sent SIGTERM"),
        (3, "silent_death", "exit code 3", "standard error"),
    ],
)
def test_a_death_without_a_word_is_named_by_its_exit(
    exit_code: int, symptom: str, event: str, fetch: str
) -> None:
    ended = incident("llamacpp", ["0.00.297.099 I srv  init: loading model"], exit_code=exit_code)
    assert ended is not None
    assert (ended.symptom, ended.event, ended.process, ended.root) == (symptom, event, "server", None)
    assert fetch in ended.missing_evidence[0]


def test_the_first_error_line_of_a_failed_start_is_its_root_even_if_it_ends_in_a_signal() -> None:
    lines = [
        "0.00.1.1 x",
        "0.00.297.099 E llama_x: tensor is missing",
        "0.00.297.300 E srv init: exiting due to model loading error",
    ]
    ended = incident("llamacpp", lines, exit_code=-11)
    assert ended is not None
    assert (ended.symptom, ended.event) == ("startup_error", "llama_x: tensor is missing")


def test_an_old_llama_log_names_the_device_of_its_cuda_error() -> None:
    ended = incident(
        "llamacpp",
        [
            "CUDA error: an illegal memory access was encountered",
            "  current device: 1, in function ggml_backend_cuda_synchronize at /src/ggml-cuda.cu:2780",
            "  cudaStreamSynchronize(cuda_ctx->stream())",
            "/src/ggml-cuda.cu:88: CUDA error",
        ],
        exit_code=-6,
    )
    assert ended is not None
    assert (ended.symptom, ended.first_failed_rank, ended.root_alternates) == (
        "cuda_illegal_access",
        (("device", 1),),
        (2,),
    )


def test_an_interrupt_is_no_failure() -> None:
    assert incident("generic", [*TRACEBACK[:5], "KeyboardInterrupt"], exit_code=0) is None


def test_nothing_hostile_of_a_line_is_reported() -> None:
    line = "\x1b]0;owned\x07ValueError: \x1b[31mbad\x1b[0m\x08\x00\u202e thing"
    ended = incident("generic", [*TRACEBACK[:5], line], exit_code=1)
    assert ended is not None
    assert ended.root is not None
    assert ended.root.text == "ValueError: bad thing"


def test_an_unknown_dialect_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown log dialect 'vlm': known are generic, llamacpp, vllm"):
        LogReader("vlm")


def test_an_abort_of_ggml_is_decisive_and_keeps_its_reason() -> None:
    reader = LogReader("llamacpp")
    reader.feed(["0.00.516.905 I srv init: listening on http://127.0.0.1:8080"])
    reader.feed(["/src/llama.cpp/ggml/src/ggml-backend.cpp:1234: cannot run the operation (NONE)"])
    assert reader.decisive
    found = reader.incident(exit_code=-6)
    assert found is not None
    assert (found.symptom, found.event) == ("abort", "ggml-backend.cpp:<n>: cannot run the operation (NONE)")


def test_an_allocation_that_fails_is_the_root_of_a_failed_start_but_not_decisive() -> None:
    line = "0.00.4.5 x"
    oom = "0.00.400.500 E ggml_alloc: allocating 4096.00 MiB on device 0: cudaMalloc failed: out of memory"
    reader = LogReader("llamacpp")
    reader.feed([line, oom, "0.00.400.600 E llama_x: failed to allocate buffer"])
    assert not reader.decisive
    ended = reader.incident(exit_code=1)
    assert ended is not None
    assert (ended.symptom, ended.root and ended.root.line) == ("cuda_oom", 2)


def test_errors_that_a_start_survived_are_not_the_cause_of_a_later_end() -> None:
    lines = [
        "0.00.400.500 E llama_x: no projector",
        "0.00.516.905 I srv init: listening on http://127.0.0.1:8080",
    ]
    ended = incident("llamacpp", lines, exit_code=1)
    assert ended is not None
    assert (ended.root, ended.event) == (None, "exit code 1")
