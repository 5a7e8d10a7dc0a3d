"""The shapes that a log takes on its way: wrappers, nested, mangled or cut, around the same words."""

import json
from collections.abc import Callable

import pytest

from culpa.model import Incident
from culpa.triage import LogDocument, LogReader

ROOT = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
LINE = f"(Worker_TP1 pid=7) ERROR 09-17 00:55:51 [multiproc_executor.py:560] {ROOT}"
SHAPES: list[tuple[str, list[str], int, str]] = [
    (
        "CRI partial lines",
        [
            "2025-07-25T07:53:08.217487080Z stderr P torch.AcceleratorError: CUDA error: an illegal",
            "2025-07-25T07:53:08.217487090Z stderr F  memory access was encountered",
        ],
        1,
        "cuda_illegal_access",
    ),
    (
        "CRI partial lines of two streams",
        [
            "2025-07-25T07:53:08.217487080Z stderr P torch.AcceleratorError: CUDA error: an illegal ",
            "2025-07-25T07:53:08.217487085Z stdout F INFO:     all is well",
            "2025-07-25T07:53:08.217487090Z stderr P memory access ",
            "2025-07-25T07:53:08.217487095Z stderr F was encountered",
        ],
        1,
        "cuda_illegal_access",
    ),
    (
        "hard-wrapped paste",
        [
            "(Worker_TP1 pid=7) DEBUG 09-17 00:55:51 [multiproc_executor.py:560] torch.Out",
            "OfMemoryError: CUDA out of",
            " memory. Tried to allocate 2 GiB",
        ],
        1,
        "cuda_oom",
    ),
    (
        "traceback on one line, newlines escaped",
        [
            r"2024-04-18T18:44:03.144-04:00 Traceback (most recent call last):\n  File x, line 1\nValueError: bad"
        ],
        1,
        "exception",
    ),
    (
        "traceback on one line, newlines lost",
        [
            '2024-04-18T18:44:03.144-04:00 Traceback (most recent call last):   File "/a/b.py", line 1, in run     go()'
            f'   File "/a/c.py", line 7, in go     torch.cuda.synchronize() {ROOT}'
        ],
        1,
        "cuda_illegal_access",
    ),
    (
        "time on a line of its own",
        [
            "2024-04-18T18:44:03.144-04:00",
            r"Traceback (most recent call last):#012  File x#012ValueError: bad",
        ],
        2,
        "exception",
    ),
    (
        "TGI, JSON",
        ['{"timestamp":"2024-06-03T07:12:23Z","level":"ERROR","message":"Shard 0 crashed"}'],
        1,
        "silent_death",
    ),
    (
        "ollama",
        ['time=2026-07-21T13:44:38.516+08:00 level=ERROR source=runner.go:405 msg="runner has terminated"'],
        1,
        "silent_death",
    ),
    (
        "job platform",
        ["  |   | 2025-11-04 10:08:01.175639 master-0 >> ERROR 11-04 10:08:01 [core.py:1] device lost |  "],
        1,
        "startup_error",
    ),
]


def read(lines: list[str]) -> Incident:
    reader = LogReader("generic")
    reader.feed(lines)
    incident = reader.incident(alive=False)
    assert incident is not None
    return incident


@pytest.mark.parametrize(("name", "lines", "root", "symptom"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_a_shape_is_read(name: str, lines: list[str], root: int, symptom: str) -> None:
    incident = read(lines)
    assert incident.root is not None
    assert (incident.root.line, incident.symptom) == (root, symptom)
    assert not (incident.event or "").startswith("traceback without its end")


def docker(line: str) -> str:
    return json.dumps({"log": line + "\r\n", "stream": "stderr", "time": "2025-08-28T08:07:33.153517124Z"})


WRAPPERS: dict[str, Callable[[str], str]] = {
    "compose": lambda line: f"vllm-1  | {line}",
    "compose with a container's name": lambda line: f"vllm  | {line}",
    "timestamps": lambda line: f"2025-08-29T09:49:52.016527039Z {line}",
    "timestamps with zone": lambda line: f"2025-09-02T08:04:02.878085941-07:00 {line}",
    "CRI": lambda line: f"2025-07-25T07:53:08.21748708+08:00 stdout F {line}",
    "json-file": docker,
    "GCP": lambda line: f"ERROR 2025-03-30T23:51:21.303592681Z {line}",
    "GCP, JSON": lambda line: json.dumps(
        {"severity": "INFO", "textPayload": line, "timestamp": "2025-03-30T23:51:21Z"}
    ),
    "CloudWatch": lambda line: f"2024-04-18T18:44:03.144-04:00   {line}",
    "journald": lambda line: f"Aug 17 18:42:18 host vllm[8052]: {line}",
    "journald, iso": lambda line: f"2026-10-09T10:15:22+0200 host vllm[8052]: {line}",
    "journald, JSON": lambda line: json.dumps(
        {"MESSAGE": line, "__REALTIME_TIMESTAMP": "1791533722000000", "_PID": "7", "SYSLOG_IDENTIFIER": "vllm"}
    ),
    "journald, JSON bytes": lambda line: json.dumps(
        {"MESSAGE": list(line.encode()), "__REALTIME_TIMESTAMP": "1791533722000000"}
    ),
    "job platform": lambda line: f"  |   | 2025-11-04 10:08:01.175639 master-0 >> {line} |  ",
    "kubectl --prefix": lambda line: f"[pod/vllm-0/engine] {line}",
    "syslog": lambda line: f"<11>1 2026-10-09T10:15:22.003Z host vllm 8052 - - {line}",
    "harness": lambda line: f"gpu 2026-03-09 01:27:30.122744672 (MapWorker(MapBatches(X)) pid=1202) {line}",
    "line numbers": lambda line: f"   1234\t{line}",
    "grep -n": lambda line: f"812:{line}",
    "Ray": lambda line: f"\x1b[36m(RayWorkerWrapper pid=7)\x1b[0m {line}",
    "Ray, escape lost": lambda line: f"[36m(RayWorkerWrapper pid=7)[0m {line}",
    "Ray, repeated": lambda line: f"{line} [repeated 6x across cluster]",
    "colours": lambda line: f"^[[31m{line}^[[0m",
    "colours of a collector": lambda line: f"#033[2m#033[31m{line}#033[0m",
    "CRLF": lambda line: f"{line}\r",
    "progress bar": lambda line: f"Capturing: 10%\rCapturing: 99%\r{line}",
    "trailing blanks": lambda line: f"{line}      ",
}  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_changes_nothing(wrapper: str) -> None:
    incident = read([WRAPPERS[wrapper](LINE)])
    assert incident.root is not None
    assert incident.root.text == ROOT
    assert incident.first_failed_rank == (("tp", 1),)


@pytest.mark.parametrize("outer", WRAPPERS)
@pytest.mark.parametrize("inner", ["compose", "CRI", "json-file", "timestamps", "GCP, JSON", "job platform"])
def test_nested_wrappers_change_nothing(outer: str, inner: str) -> None:
    if outer == "Ray, repeated" and inner.endswith(("file", "JSON")):
        pytest.skip("Ray counts what its processes print, before a collector takes it")
    incident = read([WRAPPERS[outer](WRAPPERS[inner](LINE))])
    assert incident.root is not None
    assert ROOT in incident.root.text
    assert incident.first_failed_rank == (("tp", 1),)


def test_what_stands_behind_a_cut_line_comes_in_later() -> None:
    reader = LogReader("generic")
    reader.feed(["2025-07-25T07:53:08.217487080Z stderr P terminate called after throwing"])
    early = reader.incident(alive=False)
    reader.feed(["2025-07-25T07:53:08.217487090Z stderr F  an instance of 'std::bad_alloc'"])
    late = reader.incident(alive=False)
    assert early is not None
    assert early.symptom == "abort"
    assert late is not None
    assert late.symptom == "host_out_of_memory"
    assert late.root is not None
    assert late.root.line == 1


def wrapped(text: str, width: int) -> str:
    return "\n".join(
        piece
        for line in text.split("\n")
        for piece in [line[i : i + width] for i in range(0, max(len(line), 1), width)]
    )


@pytest.mark.parametrize("width", [79, 80, 100, 132])
def test_a_paste_that_was_wrapped_is_joined(width: int) -> None:
    head = "(Worker_TP1 pid=7) ERROR 09-17 00:55:51 [multiproc_executor.py:560] "
    text = "\n".join(
        [
            "(APIServer pid=1) INFO 09-17 00:55:40 [loggers.py:273] Engine 000: Avg prompt throughput: 532.2 tokens/s,"
            " Avg generation throughput: 20.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.7%",
            head + "WorkerProc hit an exception.",
            head + "Traceback (most recent call last):",
            head
            + '  File "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py", line 41, in run',
            head + "    output = self.model_runner.execute_model(scheduler_output, intermediate_tensors)",
            head + ROOT,
            "(EngineCore_DP0 pid=5) ERROR 09-17 00:55:52 [core.py:1] RuntimeError: Worker failed with error 'CUDA"
            " error: an illegal memory access was encountered', please check the stack trace above for the root cause",
        ]
    )
    document = LogDocument()
    document.feed(wrapped(text, width).encode())
    document.end()
    incident = document.incident()
    assert incident is not None
    assert incident.root is not None
    assert incident.root.text == ROOT
    assert incident.first_failed_rank == (("tp", 1),)
    before = text.split("\n")[:5]
    assert incident.root.line == 1 + sum(len(wrapped(line, width).split("\n")) for line in before)


def test_a_storm_of_equal_lines_is_not_joined() -> None:
    line = "../aten/src/x.cu:144: operator(): block: [2,0,0], thread: [{},0,0] Assertion `a < b` failed."
    document = LogDocument()
    document.feed("\n".join(line.format(number) for number in range(10, 99)).encode())
    document.end()
    incident = document.incident()
    assert incident is not None
    assert incident.root is not None
    assert incident.root.line == 1
    assert 2 in incident.root_alternates
