"""vLLM's logs of several eras: who failed first, and what only followed."""

from collections.abc import Sequence

import pytest

from culpa.model import Incident
from culpa.triage import LogReader

CORE_DIES = [
    "(EngineCore pid=20) ERROR 07-15 21:01:03 [core.py:1348] EngineCore encountered a fatal error.",
    "(EngineCore pid=20) ERROR 07-15 21:01:03 [core.py:1348] Traceback (most recent call last):",
    '(EngineCore pid=20) ERROR 07-15 21:01:03 [core.py:1348]   File "/v/core.py", line 1, in run_engine_core',
    "(EngineCore pid=20) ERROR 07-15 21:01:03 [core.py:1348] RuntimeError: Worker failed with error 'CUDA error: "
    "an illegal memory access was encountered', please check the stack trace above for the root cause",
    "(APIServer pid=10) ERROR 07-15 21:01:03 [async_llm.py:708] AsyncLLM output_handler failed.",
    "(APIServer pid=10) ERROR 07-15 21:01:03 [async_llm.py:708] Traceback (most recent call last):",
    "(APIServer pid=10) ERROR 07-15 21:01:03 [async_llm.py:708] vllm.v1.engine.exceptions.EngineDeadError: "
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
]


def worker(rank: str, second: int, exception: str, function: str = "forward", pid: int = 30) -> list[str]:
    head = f"(Worker_{rank} pid={pid}) ERROR 07-15 21:01:{second:02} [multiproc_executor.py:1007] "
    return [
        head + "WorkerProc hit an exception.",
        head + "Traceback (most recent call last):",
        head + f'  File "/v/model.py", line 7, in {function}',
        head + "    x = y",
        head + exception,
        head,
    ]


def judged(lines: Sequence[str], dialect: str = "vllm", **end: int) -> Incident:
    reader = LogReader(dialect)
    reader.feed(lines)
    incident = reader.incident(exit_code=end.get("exit_code"), alive="exit_code" not in end)
    assert incident is not None
    return incident


def test_the_earlier_second_wins_over_the_earlier_line() -> None:
    lines = worker("PP0", 2, "RuntimeError: shape mismatch", pid=30) + worker(
        "PP1", 1, "ValueError: bad", pid=31
    )
    incident = judged(lines)
    assert incident.root is not None
    assert (incident.root.line, incident.rank) == (11, "PP1")


def test_container_nanoseconds_decide_within_one_second() -> None:
    first = [
        f"2026-07-15T21:01:01.200000{i:03}Z {line}"
        for i, line in enumerate(worker("TP0", 1, "ValueError: a"))
    ]
    second = [
        f"2026-07-15T21:01:01.100000{i:03}Z {line}"
        for i, line in enumerate(worker("TP1", 1, "KeyError: 'b'"))
    ]
    assert judged(first + second).rank == "TP1"


def test_a_peer_that_is_gone_is_never_the_root() -> None:
    gone = "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:52644"
    incident = judged(worker("PP0", 1, gone) + worker("PP1", 2, "AssertionError", "gather", pid=31))
    assert (incident.symptom, incident.rank) == ("assertion", "PP1")
    assert 5 in incident.cascade_lines


def test_frames_of_two_ranks_that_interleave_are_kept_apart() -> None:
    a = worker("PP0", 1, "RuntimeError: a", "run_a", pid=30)
    b = worker("PP1", 1, "AssertionError", "run_b", pid=31)
    incident = judged([line for pair in zip(b, a, strict=True) for line in pair])
    assert incident.event == "AssertionError in run_b"


def test_the_same_failure_of_all_ranks_in_one_second_names_none() -> None:
    incident = judged(
        worker("TP0", 1, "ValueError: bad shape 3") + worker("TP1", 1, "ValueError: bad shape 4", pid=31)
    )
    assert (incident.process, incident.rank, incident.first_failed_rank) == ("worker", None, None)


def test_an_illegal_access_names_the_rank_that_reported_it_a_second_earlier() -> None:
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    incident = judged(worker("TP1", 1, error, pid=31) + worker("TP0", 2, error))
    assert incident.first_failed_rank == (("tp", 1),)


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("(Worker_PP0_TP1 pid=7) ", (("pp", 0), ("tp", 1))),
        ("(Worker_DP1_TP0_EP2 pid=7) ", (("dp", 1), ("tp", 0))),
        ("(Worker pid=7) (Worker_TP2 pid=7) ", (("tp", 2),)),
        ("(EngineCore_0 pid=1) (VllmWorker TP3 pid=7) ", (("tp", 3),)),
        ("(VllmWorker PP1_TP0 pid=7) ", (("pp", 1), ("tp", 0))),
        ("(VllmWorker rank=5 pid=7) ", (("rank", 5),)),
        ("(Worker pid=7) ", None),
        ("\x1b[0;36m(Worker_TP1 pid=7)\x1b[0;0m ", (("tp", 1),)),
        ("^[[36m(Worker_TP1 pid=7)^[[0m ", (("tp", 1),)),
        ("vllm-1  | (Worker_PP2 pid=7) ", (("pp", 2),)),
    ],
)
def test_ranks_are_read_from_prefixes_of_all_eras(
    prefix: str, rank: tuple[tuple[str, int], ...] | None
) -> None:
    head = prefix + "ERROR 07-15 21:01:01 [multiproc_executor.py:1007] "
    incident = judged([head + "Traceback (most recent call last):", head + "ValueError: bad"])
    assert (incident.process, incident.first_failed_rank) == ("worker", rank)


def test_a_worker_that_fails_before_it_has_its_name_gets_it_from_another_line_of_its_pid() -> None:
    lines = ["(Worker_PP2 pid=7) INFO 07-15 21:01:00 [cpu_model_runner.py:68] Starting to load model"]
    head = "(Worker pid=7) ERROR 07-15 21:01:01 [multiproc_executor.py:953] "
    incident = judged([*lines, head + "Traceback (most recent call last):", head + "ValueError: bad"])
    assert incident.rank == "PP2"


def test_a_lone_rank_zero_is_no_rank() -> None:
    incident = judged(["[rank0]: Traceback (most recent call last):", "[rank0]: ValueError: bad"])
    assert incident.first_failed_rank is None


def test_an_excepthook_of_a_rank_among_others_is_that_rank() -> None:
    lines = [
        "[rank0]:[W715 21:01:02.915052888 socket.cpp:1] x",
        "[rank3]: Traceback (most recent call last):",
    ]
    assert judged([*lines, "[rank3]: ValueError: bad"]).first_failed_rank == (("rank", 3),)


def test_of_directly_chained_exceptions_the_first_is_the_root() -> None:
    head = "(Worker_TP0 pid=7) ERROR 07-15 21:01:01 [multiproc_executor.py:1007] "
    incident = judged(
        [
            head + "Traceback (most recent call last):",
            head + "ValueError: the cause",
            head,
            head + "The above exception was the direct cause of the following exception:",
            head,
            head + "Traceback (most recent call last):",
            head + "RuntimeError: could not load",
        ]
    )
    assert incident.event == "ValueError: the cause"
    assert 7 in incident.cascade_lines


def test_an_everyday_exception_that_was_being_handled_is_not_the_root() -> None:
    head = "(Worker_TP0 pid=7) ERROR 07-15 21:01:01 [multiproc_executor.py:1007] "
    incident = judged(
        [
            head + "Traceback (most recent call last):",
            head + "KeyError: 'cache_key'",
            head,
            head + "During handling of the above exception, another exception occurred:",
            head,
            head + "Traceback (most recent call last):",
            head + "RuntimeError: kernel does not support this head size",
        ]
    )
    assert incident.event == "RuntimeError: kernel does not support this head size"
    assert incident.root_alternates == (2,)


def test_only_consequences_are_reported_as_such_with_what_to_fetch() -> None:
    incident = judged(CORE_DIES[4:])
    assert (incident.symptom, incident.process) == ("engine_dead", "api_server")
    assert "standard error of the engine core and of every worker" in incident.missing_evidence[0]


def test_a_quoted_error_gives_its_class_but_is_not_the_evidence() -> None:
    incident = judged(CORE_DIES)
    assert incident.symptom == "cuda_illegal_access"
    assert "the worker's own traceback" in incident.missing_evidence[0]


def test_a_worker_that_died_without_a_word_is_the_suspect() -> None:
    lines = [
        "(VllmWorker-1 pid=31) WARNING 12-01 05:36:51 [vllm.py:725] x",
        "(Worker_PP1 pid=31) INFO 12-01 05:36:52 [x.py:1] y",
        "(EngineCore pid=20) ERROR 12-01 05:40:00 [multiproc_executor.py:316] Worker proc VllmWorker-1 died "
        "unexpectedly (exit code: -9), shutting down executor.",
        *CORE_DIES[4:],
    ]
    incident = judged(lines)
    assert (incident.symptom, incident.process, incident.rank) == ("silent_death", "worker", "PP1")
    assert incident.event == "killed by SIGKILL"
    assert any("journalctl -k" in sentence for sentence in incident.missing_evidence)


def test_a_request_error_of_the_api_server_is_no_failure_while_the_engine_lives() -> None:
    reader = LogReader("vllm")
    head = "(APIServer pid=10) ERROR 07-15 21:01:03 [serving_chat.py:200] "
    reader.feed(["INFO:     Application startup complete.", head + "Error in preprocessing prompt inputs"])
    reader.feed(
        [head + "Traceback (most recent call last):", head + "jinja2.exceptions.TemplateError: bad roles"]
    )
    assert not reader.decisive
    assert reader.incident() is None
    assert reader.incident(exit_code=0) is None
    late = reader.incident(exit_code=1)
    assert late is not None
    assert late.event == "TemplateError: bad roles"


def test_a_call_that_failed_inside_the_core_is_not_decisive() -> None:
    reader = LogReader("vllm")
    head = "(EngineCore pid=20) ERROR 07-15 21:01:03 [core.py:1750] "
    reader.feed([head + "Invocation of add_lora method failed", head + "Traceback (most recent call last):"])
    reader.feed([head + "ValueError: no adapter"])
    assert not reader.decisive
    assert reader.incident() is None


def test_a_traceback_at_warning_level_is_not_decisive() -> None:
    reader = LogReader("vllm")
    head = "(Worker_TP0 pid=7) WARNING 07-15 21:01:01 [fa_utils.py:9] "
    reader.feed(
        [head + "falling back", head + "Traceback (most recent call last):", head + "ImportError: no fa3"]
    )
    assert not reader.decisive
    assert reader.incident() is None


def test_a_hang_begins_where_tokens_stopped_coming() -> None:
    stats = "(APIServer pid=1) INFO 07-15 15:32:{:02} [loggers.py:273] Engine 000: Avg prompt "
    tail = (
        "throughput: 0.0 tokens/s, Avg generation throughput: {} tokens/s, Running: 3 reqs, Waiting: 0 reqs"
    )
    incident = judged(
        [
            (stats + tail).format(17, "0.0"),
            (stats + tail).format(27, "20.5"),
            (stats + tail).format(37, "0.0"),
            "(EngineCore pid=2) INFO 07-15 15:33:47 [shm_broadcast.py:705] No available shared memory broadcast block "
            "found in 60 seconds.",
        ]
    )
    assert incident.root is not None
    assert (incident.symptom, incident.root.line) == ("hang_timeout", 3)
    assert incident.missing_evidence


def test_an_exception_after_an_orderly_end_is_no_failure() -> None:
    reader = LogReader("vllm")
    reader.feed(
        ["(EngineCore pid=2) INFO 07-15 15:33:47 [core.py:1454] [shutdown] EngineCore: trigger received"]
    )
    reader.feed(worker("TP0", 1, "RuntimeError: cancelled by teardown"))
    assert not reader.decisive
    assert reader.incident(exit_code=0) is None


def test_an_end_that_a_failure_brought_about_takes_nothing_back() -> None:
    lines = [
        *worker("TP1", 1, "ValueError: bad"),
        "INFO:     Shutting down",
        *worker("TP0", 2, "KeyError: 'x'"),
    ]
    assert judged(lines, exit_code=0).rank == "TP1"


def test_an_engine_that_died_and_left_with_zero_is_still_an_incident() -> None:
    assert judged(worker("TP1", 1, "ValueError: bad"), exit_code=0).event == "ValueError: bad"


def test_triton_illegal_access_marks_its_stack_asynchronous() -> None:
    error = "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered"
    incident = judged(worker("PP1", 1, error))
    assert (incident.symptom, incident.rank, incident.async_stack) == ("cuda_illegal_access", "PP1", True)


def test_a_usage_error_is_a_failed_start() -> None:
    incident = judged(
        ["usage: api_server.py [-h]", "api_server.py: error: unrecognized arguments: --x"], exit_code=2
    )
    assert (incident.symptom, incident.event) == (
        "bad_argument",
        "api_server.py: error: unrecognized arguments: --x",
    )


def test_a_pid_that_two_containers_share_names_no_rank() -> None:
    lines = [
        "(Worker_TP0 pid=7) INFO 07-15 21:01:00 [cpu_model_runner.py:68] a",
        "(Worker_TP4 pid=7) INFO 07-15 21:01:00 [cpu_model_runner.py:68] b",
    ]
    head = "(Worker pid=7) ERROR 07-15 21:01:01 [multiproc_executor.py:953] "
    incident = judged([*lines, head + "Traceback (most recent call last):", head + "ValueError: bad"])
    assert incident.first_failed_rank is None


def test_a_timeout_of_one_request_is_no_hang() -> None:
    reader = LogReader("vllm")
    head = "(APIServer pid=10) ERROR 07-15 21:01:03 [serving_chat.py:200] "
    reader.feed(["INFO:     Application startup complete.", head + "x"])
    reader.feed([head + "Traceback (most recent call last):", head + "TimeoutError"])
    assert reader.incident() is None
