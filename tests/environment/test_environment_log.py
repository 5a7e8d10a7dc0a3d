"""The environment as logs and pasted reports tell it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.environment import (
    complete_environment,
    read_environment,
    read_from_logs,
    read_stored,
    with_said,
    write_environment,
)
from culpa.environment.log_lines import LineFacts, facts_of_lines
from culpa.host import Machine
from culpa.sources import SourceError

CASES = Path(__file__).parent.parent / "triage" / "cases"
REPORT = """\
Your output of python collect_env.py:
==============================
        System Info
==============================
OS                           : Ubuntu 24.04.3 LTS (x86_64)
Libc version                 : glibc-2.39
PyTorch version              : 2.13.0+cu130
CUDA used to build PyTorch   : 13.0
ROCM used to build PyTorch   : N/A
Python version               : 3.12.3 (main, Aug 14 2026) (64-bit runtime)
Python platform              : Linux-6.8.0-45-generic-x86_64-with-glibc2.39
GPU models and configuration :
GPU 0: NVIDIA GeForce RTX 3090
GPU 1: NVIDIA GeForce RTX 3090
Nvidia driver version        : 580.65.06
[pip3] torch==2.13.0
[pip3] triton==3.9.0
[pip3] nvidia-nccl-cu13==2.28.9
[pip3] flashinfer-python==0.6.15
vLLM Version                 : 0.32.0
GPU Topology:
        GPU0    GPU1    CPU Affinity    NUMA Affinity
GPU0     X      PHB     0-31    0
GPU1    PHB      X      0-31    0
VLLM_USE_V2_MODEL_RUNNER=0
HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt
docker run --gpus all --shm-size=16g vllm/vllm-openai:v0.32.0 --model x
(Worker_PP1 pid=90) INFO 12-01 10:00:00 [qwen_gdn_linear_attn.py:222] Using Triton/FLA GDN prefill kernel (x).
"""


def log(folder: Path, text: str) -> Path:
    path = folder / "report.txt"
    path.write_text(text)
    return path


def test_a_pasted_report_of_vllm_is_read(tmp_path: Path) -> None:
    found = read_from_logs([log(tmp_path, REPORT)])
    expected = {
        "engine.version": "0.32.0",
        "engine.image": "vllm/vllm-openai:v0.32.0",
        "package.torch": "2.13.0+cu130",
        "torch.cuda": "13.0",
        "package.triton": "3.9.0",
        "package.nvidia-nccl-cu13": "2.28.9",
        "package.flashinfer-python": "0.6.15",
        "gpu.driver": "580.65.06",
        "gpu.1.name": "NVIDIA GeForce RTX 3090",
        "gpu.count": "2",
        "link.0-1": "PHB",
        "system.os": "Ubuntu 24.04.3 LTS (x86_64)",
        "python.version": "3.12.3",
        "container.shm": "16g",
        "backend.gdn": "Triton/FLA",
        "variable.VLLM_USE_V2_MODEL_RUNNER": "0",
        "variable.HF_TOKEN": "[redacted]",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert found.get("torch.hip") is None


def test_what_a_log_does_not_tell_is_listed_as_unknown(tmp_path: Path) -> None:
    found = read_from_logs([CASES / "01-vllm-pp2-gdn-prefix-ima-interleaved.log"])
    assert found.get("engine.version") == "0.25.0"
    assert dict(found.settings)["pp"] == 2
    driver = found.fact("gpu.driver")
    assert driver is not None
    assert (driver.value, driver.reason) == (None, "not in this log")


def test_a_source_names_the_line(tmp_path: Path) -> None:
    fact = read_from_logs([log(tmp_path, REPORT)]).fact("gpu.driver")
    assert fact is not None
    assert fact.source == "report.txt line 15"


def test_lines_of_a_large_log_are_found_wherever_they_stand(tmp_path: Path) -> None:
    filler = "INFO 12-01 10:00:00 [loggers.py:1] Engine 000: nothing to see\n" * 40_000
    found = read_from_logs([log(tmp_path, filler + "vLLM is using nccl==2.27.5\n" + filler)])
    fact = found.fact("package.nvidia-nccl")
    assert fact is not None
    assert (fact.value, fact.source) == ("2.27.5", "report.txt line 40001")


def test_an_empty_log_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nothing to read"):
        read_from_logs([log(tmp_path, "")])


def test_what_the_engine_says_overrules_what_was_asked_for(tmp_path: Path) -> None:
    machine = Machine((), 2, 8 << 30, without_gpu_reason="none")
    kept = read_environment(machine=machine)
    text = "INFO 12-01 10:00:00 [cuda.py:1] Using FLASHINFER attention backend out of potential backends: ['X']\n"
    found = with_said(kept, read_from_logs([log(tmp_path, text)]), "engine.log")
    assert found.get("backend.attention") == "FLASHINFER"
    assert found.get("system.os") == kept.get("system.os")


def test_a_run_is_completed_by_what_the_engine_said_in_its_first_trial(tmp_path: Path) -> None:
    write_environment(read_environment(machine=Machine((), 2, 8 << 30, without_gpu_reason="none")), tmp_path)
    trial = tmp_path / "trials" / "0001"
    trial.mkdir(parents=True)
    (trial / "engine.log").write_text("INFO 12-01 10:00:00 [cuda.py:1] Using FLASH_ATTN attention backend\n")
    (trial / "effective.json").write_text('{"engine_version": "0.32.1.dev7"}')
    complete_environment(tmp_path)
    found = read_stored(tmp_path)
    assert found.get("backend.attention") == "FLASH_ATTN"
    assert found.get("engine.version") == "0.32.1.dev7"


def test_a_run_whose_engine_wrote_no_log_keeps_what_was_read_at_its_beginning(tmp_path: Path) -> None:
    kept = read_environment(machine=Machine((), 2, 8 << 30, without_gpu_reason="none"))
    write_environment(kept, tmp_path)
    complete_environment(tmp_path)
    assert read_stored(tmp_path) == kept


def test_terminal_escapes_reach_no_fact() -> None:
    facts = facts_of_lines(["OS: Ubuntu \x1b[31m24.04\x1b]0;title\x07"], "x")
    assert [fact.value for fact in facts] == ["Ubuntu 24.04"]


@given(st.lists(st.one_of(st.binary(max_size=80), st.sampled_from(REPORT.encode().split(b"\n")))))
def test_no_bytes_break_the_reading(lines: list[bytes]) -> None:
    found = LineFacts()
    found.feed(b"\n".join(lines), "x", 1)
    for fact in found.facts():
        assert fact.value is not None
        assert "\x1b" not in fact.value
