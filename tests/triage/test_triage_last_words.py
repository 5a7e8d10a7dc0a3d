"""A process that ends with an error code and left no traceback: what it said last is the root."""

import pytest

from culpa.model import Incident
from culpa.triage import LogReader

READY = "INFO:     Application startup complete."


def ended(*lines: str, exit_code: int = 1, dialect: str = "generic") -> Incident:
    reader = LogReader(dialect)
    reader.feed(lines)
    incident = reader.incident(exit_code=exit_code)
    assert incident is not None
    return incident


@pytest.mark.parametrize("dialect", ["generic", "vllm", "llamacpp"])
@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("RuntimeError: fifth", "RuntimeError: fifth"),
        ("ValueError: bad config", "ValueError: bad config"),
        ("ERROR boom at fifth", "ERROR boom at fifth"),
        ("panic: runtime error", "panic: runtime error"),
        ("thread 'main' panicked at src/main.rs:3", "thread 'main' panicked at src/main.rs:<n>"),
        ("\x1b[31mERROR\x1b[0m engine: RuntimeError: fifth", "ERROR engine: RuntimeError: fifth"),
        ("fatal error: all goroutines are asleep", "fatal error: all goroutines are asleep"),
        ("could not open the device", "could not open the device"),
        ("giving up", "giving up"),
    ],
)
def test_the_last_line_of_a_process_that_exits_with_an_error_code_is_its_root(
    dialect: str, line: str, event: str
) -> None:
    for lines, symptom in ((["loading", line, ""], "startup_error"), ([READY, "step", line], "error_exit")):
        found = ended(*lines, dialect=dialect)
        assert found.root is not None
        assert (found.symptom, found.event, found.missing_evidence) == (symptom, event, ())
        assert lines[found.root.line - 1] == line


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        (["panic: runtime error: index out of range", "goroutine 1 [running]:", "main.main()"], 2),
        (["thread 'main' panicked at src/main.rs:3:5:", "note: run with `RUST_BACKTRACE=1`"], 2),
        (["RuntimeError: fifth", "step 6", "bye"], 2),
        (["could not open the device", "bye"], 2),
        (["could not open the device", *["step"] * 60], 62),
        (["RuntimeError: first", "RuntimeError: second"], 3),
        (["device lost", "INFO: bye", '10.0.0.5 - "GET /health HTTP/1.1" 200 OK'], 2),
    ],
)
def test_a_line_that_looks_like_an_error_comes_before_the_last_one(lines: list[str], root: int) -> None:
    found = ended(READY, *lines)
    assert found.root is not None
    assert found.root.line == root


def test_what_is_known_of_a_failure_comes_before_what_was_said_last() -> None:
    found = ended(
        "Traceback (most recent call last):",
        '  File "/srv/engine.py", line 4, in load',
        "KeyError: 'x'",
        "ERROR could not clean up",
    )
    assert found.event == "KeyError: 'x'"


@pytest.mark.parametrize(
    ("exit_code", "symptom"),
    [(-9, "silent_death"), (-11, "segfault"), (137, "silent_death"), (139, "segfault")],
)
def test_a_signal_is_not_explained_by_whatever_was_said_last(exit_code: int, symptom: str) -> None:
    found = ended(READY, "step 5", "RuntimeError: retried", exit_code=exit_code)
    assert (found.symptom, found.root) == (symptom, None)


@pytest.mark.parametrize(
    "lines",
    [
        ["INFO loading the model"],
        ["2026-11-30 05:31:02,001 WARNING no accelerator"],
        ["RuntimeError: survived at start", READY],
        [READY, "RuntimeError: a request", "Shutting down", "bye"],
        [],
    ],
)
def test_lines_that_are_harmless_by_their_own_words_explain_nothing(lines: list[str]) -> None:
    found = ended(*lines)
    assert (found.symptom, found.root, found.event) == ("silent_death", None, "exit code 1")
    assert "standard error" in found.missing_evidence[0]


def test_a_clean_exit_has_no_last_words() -> None:
    reader = LogReader("generic")
    reader.feed([READY, "RuntimeError: fifth"])
    assert reader.incident() is None
    assert reader.incident(exit_code=0) is None


def test_the_place_of_the_speaker_is_kept() -> None:
    found = ended(READY, "(Worker_TP1 pid=7) RuntimeError: fifth", dialect="vllm")
    assert (found.process, found.rank, found.first_failed_rank) == ("worker", "TP1", (("tp", 1),))


@pytest.mark.parametrize("dialect", ["generic", "vllm", "llamacpp"])
@pytest.mark.parametrize(
    "lines",
    [
        ["usage: engine [-h]", "engine: error: unrecognized arguments: --x"],
        ["usage: vllm serve [model_tag] [options]", "vllm serve: error: unrecognized arguments: --x"],
        [
            "vllm serve [model_tag] [options]: error: argument --dtype: invalid choice: 'x' (choose from 'half')"
        ],
        ["api_server.py: error: argument --port: expected one argument"],
        ["engine: error: the following arguments are required: --model"],
        ["error: invalid argument: --bogus"],
        ["0.00.1.1 loading", 'error while handling argument "--ctx-size": stoi', "usage:", "--ctx-size N"],
        [
            "error: unexpected argument '--x' found",
            "Usage: engine [OPTIONS]",
            "For more information, try '--help'.",
        ],
        ["flag provided but not defined: -x", "Usage of engine:"],
        ["engine: unrecognized option '--x'"],
        ["\x1b[31mengine: error: unrecognized arguments: --x\x1b[0m"],
    ],
)
def test_an_argument_that_the_engine_refuses_is_named_as_such(dialect: str, lines: list[str]) -> None:
    for exit_code in (1, 2):
        found = ended(*lines, exit_code=exit_code, dialect=dialect)
        assert found.root is not None
        assert (found.symptom, found.missing_evidence) == ("bad_argument", ())
        assert "error" in found.root.text or "x" in found.root.text


@pytest.mark.parametrize(
    "line", ["engine: error: cannot read the configuration", "error: no such model: arguments"]
)
def test_another_error_of_a_start_is_no_bad_argument(line: str) -> None:
    assert ended(line).symptom == "startup_error"


def test_a_refused_argument_is_no_failure_of_an_engine_that_lives() -> None:
    reader = LogReader("generic")
    reader.feed(["error: invalid argument: --bogus"])
    assert not reader.decisive
    assert reader.incident() is None


ABORT = "terminate called after throwing an instance of 'c10::DistBackendError'"
TIMEOUT = (
    "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=51042, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600033 milliseconds before timing out."
)


def test_an_abort_whose_exception_is_not_told_says_that_it_is_missing() -> None:
    found = ended(READY, ABORT, exit_code=-6)
    assert found.symptom == "abort"
    assert "what()" in found.missing_evidence[0]


def test_a_torn_error_after_an_abort_is_no_better_cause_than_the_timeout_before_it() -> None:
    torn = "ERROR 07-02 06:01:25 async_llm_engine.py:56]"
    traceback = (f"{torn} Traceback (most recent call last):", f'{torn}   File "/vllm/x.py", line 52, in f')
    found = ended(READY, TIMEOUT, ABORT, *traceback, f"{torn} a", exit_code=-6)
    assert found.symptom == "nccl_timeout"
