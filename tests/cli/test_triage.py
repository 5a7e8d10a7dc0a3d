"""`culpa triage`: exit codes, sources, output, and bad input in one line."""

import io
import json
import threading
import time
from pathlib import Path

import pytest

from culpa.cli.app import _run
from culpa.logs import follow_log
from culpa.model import Reading

CASES = Path(__file__).parent.parent / "triage" / "cases"
CRASH = (CASES / "01-vllm-pp2-gdn-prefix-ima-interleaved.log").read_bytes()
GOOD = Path(__file__).parent.parent / "triage" / "logs" / "llamacpp-good.log"
KERNEL = (
    "Jul 15 21:01:01 host kernel: NVRM: Xid (PCI:0000:c1:00): 31, pid=4303, name=VLLM::Worker_PP, Ch 0000003b, intr "
    "00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_9 faulted @ 0x1_0c3c0000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_WRITE\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "engine.log").write_bytes(CRASH)
    (tmp_path / "kernel.log").write_text(KERNEL)
    return tmp_path


def given_on_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes, *, terminal: bool = False) -> None:
    stream = io.TextIOWrapper(io.BytesIO(data))
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stdin", stream)


def test_a_failure_ends_with_1_and_a_summary(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["triage", "engine.log"]) == 1
    shown = capsys.readouterr().out
    assert "first in PP1" in shown
    assert "engine.log, line 28" in shown


def test_a_log_without_a_failure_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["triage", str(GOOD)]) == 0
    assert "No failure" in capsys.readouterr().out


def test_xids_without_a_failure_are_told_all_the_same(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["triage", "kernel.log"]) == 0
    shown = capsys.readouterr().out
    assert "No failure" in shown
    assert "31 on 0000:c1:00.0" in shown
    assert "--kernel-log" in shown
    assert _run(["triage", "kernel.log", "--json"]) == 0
    (xid,) = json.loads(capsys.readouterr().out)["xids"]
    assert (xid["code"], xid["line"], xid["stale"]) == (31, 1, False)


@pytest.mark.parametrize(("code", "symptom"), [(61, "gpu_hw_lost"), (62, "gpu_hw_lost"), (79, "gpu_hw_lost"),
                                                (158, "gpu_hw_lost"), (172, "gpu_hw_ecc")])  # fmt: skip
def test_xids_that_only_hardware_raises_are_failures(
    code: int, symptom: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "kernel.log").write_text(KERNEL.replace(": 31,", f": {code},"))
    assert _run(["triage", "kernel.log", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["symptom"] == symptom
    assert shown["gpu"]["pci_bus"] == "0000:c1:00.0"
    assert shown["verdict"]["blame"] == "hardware"


SURVIVED = """\
INFO 03-11 15:40:02 [api_server.py:1034] vLLM API server version 0.8.5.post1
INFO:     Application startup complete.
ERROR 03-11 15:42:02 [serving_chat.py:200] something odd happened
"""
SERVES = 'INFO:     10.0.0.3:50112 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def test_an_error_that_the_engine_survives_is_no_failure(place: Path) -> None:
    (place / "engine.log").write_text(SURVIVED)
    assert _run(["triage", "engine.log"]) == 1
    (place / "engine.log").write_text(SURVIVED + SERVES)
    assert _run(["triage", "engine.log"]) == 0


def test_an_engine_that_was_started_again_has_not_survived(place: Path) -> None:
    (place / "engine.log").write_text(SURVIVED + SURVIVED.partition("ERROR")[0] + SERVES)
    assert _run(["triage", "engine.log"]) == 1


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_is_read(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given_on_stdin(monkeypatch, CRASH)
    assert _run(["triage", "--json", *arguments]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["root_event"]["file"] == "standard input"
    assert document["root_event"]["line"] == 28


def test_kernel_log_names_the_gpu_in_its_own_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["triage", "engine.log", "--kernel-log", "kernel.log", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["gpu"]["pci_bus"] == "0000:c1:00.0"
    assert [(xid["file"], xid["line"], xid["stale"]) for xid in document["xids"]] == [
        ("kernel.log", 1, False)
    ]
    files = {document["root_event"]["file"], *(one["file"] for one in document["elsewhere"])}
    assert files == {"engine.log", "kernel.log"}


def test_annotated_log_marks_root_and_cascade_and_holds_no_escape(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "engine.log").write_bytes(CRASH + b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07")
    assert _run(["triage", "engine.log", "--annotate", "marked.log"]) == 1
    marked = (place / "marked.log").read_text("utf-8").splitlines()
    assert len(marked) == 50
    assert [line[:4] for line in marked if line.startswith("ROOT")] == ["ROOT"]
    assert marked[27].startswith("ROOT    28  (Worker_PP1 pid=4303)")
    assert marked[16].startswith("follows 17  ")
    assert marked[2].startswith("noise    3  ")
    assert marked[48] == f"{'':8}49  red"
    assert "\x1b" not in "".join(marked)
    assert not list(place.glob(".*.part"))


def test_annotation_on_standard_output_leaves_the_summary_to_standard_error(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["triage", "engine.log", "kernel.log", "--annotate", "-"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("==> engine.log <==\n")
    assert "first in PP1" in err


def test_a_log_that_is_named_twice_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["triage", "engine.log", "./engine.log"]) == 2
    assert "engine.log is named twice" in capsys.readouterr().err
    assert _run(["triage", "engine.log", "--kernel-log", "engine.log"]) == 2


def test_standard_input_can_be_annotated(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given_on_stdin(monkeypatch, CRASH)
    assert _run(["triage", "--annotate", "marked.log"]) == 1
    assert "ROOT    28" in (place / "marked.log").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.log"], "nowhere.log does not exist"),
        (["."], "is a folder"),
        (["empty.log"], "nothing to read"),
        (["engine.log", "--kernel-log", "nowhere.log"], "nowhere.log does not exist"),
        (["-", "-"], "only once"),
        (["engine.log", "kernel.log", "--follow"], "one log"),
        (["engine.log", "--follow", "--annotate", "x"], "--annotate"),
        (["engine.log", "--annotate", "engine.log"], "overwrite"),
        (["engine.log", "--annotate", "no/folder/x"], "does not exist"),
        (["engine.log", "--engine", "frob"], "frob"),
        ([], "pipe a log"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    place: Path,
    arguments: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (place / "empty.log").touch()
    given_on_stdin(monkeypatch, b"", terminal=True)
    assert _run(["triage", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert told in err


def test_following_a_file_tells_of_the_failure_once_and_of_what_changes_it(place: Path) -> None:
    log = place / "growing.log"
    lines = CRASH.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:18]))
    told: list[Reading] = []
    later = threading.Event()

    def tell(reading: Reading) -> None:
        told.append(reading)
        if len(told) == 1:
            with log.open("ab") as file:
                file.write(b"".join(lines[18:]))
        else:
            later.set()

    deadline = time.monotonic() + 30
    reading = follow_log(log, None, tell, stopped=lambda: later.is_set() or time.monotonic() > deadline)
    assert reading.incident is not None
    assert reading.incident.root is not None
    assert reading.incident.root.line == 28
    assert [one.incident.root.line for one in told if one.incident and one.incident.root] == [9, 28]


@pytest.mark.parametrize("way", ["replaced", "cut short"])
def test_a_followed_log_that_begins_anew_is_judged_anew(way: str, place: Path) -> None:
    log = place / "growing.log"
    log.write_bytes(CRASH)
    told: list[Reading] = []
    later = threading.Event()

    def tell(reading: Reading) -> None:
        told.append(reading)
        if len(told) > 1:
            later.set()
        elif way == "replaced":
            log.rename(place / "growing.log.1")
            log.write_bytes(b"INFO begun anew\n" + CRASH)
        else:
            log.write_bytes(CRASH.partition(b"\n")[2])

    deadline = time.monotonic() + 30
    follow_log(log, None, tell, stopped=lambda: later.is_set() or time.monotonic() > deadline)
    lines = [one.incident.root.line for one in told if one.incident and one.incident.root]
    assert lines == [28, 29 if way == "replaced" else 27]


def test_a_pipe_that_is_followed_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given_on_stdin(monkeypatch, CRASH)
    assert _run(["triage", "--follow", "--json"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["root_event"]["line"] == 28


def test_help_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["triage", "--help"]) == 0
    shown = capsys.readouterr().out
    for word in ("--kernel-log", "--follow", "--json", "--annotate", "Ends with 1 if a failure was found"):
        assert word in shown
