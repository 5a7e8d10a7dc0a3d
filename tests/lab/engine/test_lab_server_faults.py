"""Faults that show only among processes, and what culpa's triage makes of the engine's logs."""

import re
from pathlib import Path

import httpx2
import pytest
from tests.lab.engine.engines import prompt
from tests.lab.engine.servers import Server, server

from culpa.model import Incident
from culpa.triage import LogReader

pytestmark = pytest.mark.slow

LONG = list(prompt(300, seed=5))
THREE = {"VLLM_PP_LAYER_PARTITION": "3,3,2"}


def triaged(lab: Server, kernel: Path | None = None) -> Incident:
    """What triage says of the engine's log and the kernel's, after the engine's end."""
    code = lab.wait()
    reader = LogReader("vllm")
    reader.feed(lab.lines)
    if kernel is not None:
        reader.begin_file()
        reader.feed(kernel.read_text(encoding="utf-8").splitlines())
    incident = reader.incident(exit_code=code, alive=False, request_failed=True)
    assert incident is not None
    return incident


def test_the_incident_is_told_late_and_triage_finds_the_stage_its_gpu_and_its_xid(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.log"
    with server("-pp", "3", "--fault", "incident", "--kernel-log", str(kernel), env=THREE) as lab:
        assert lab.complete("2+2=?")["status"] == 200
        assert lab.complete(LONG)["status"] == 500
        incident = triaged(lab, kernel)
        assert lab.process.returncode == 1
        log = lab.text
    assert (incident.symptom, incident.rank, incident.async_stack) == ("cuda_illegal_access", "PP1", True)
    assert incident.root is not None
    assert re.search(r"Worker_PP1 pid=\d+\) ERROR|NVRM: Xid", incident.root.text)
    # Nobody but that stage and its consequences says anything, and the stack is that of a later launch.
    assert "Triton Error [CUDA]: an illegal memory access was encountered" in log
    assert "in launch" in log
    assert not re.search(r"Worker_PP[02] pid=\d+\) ERROR", log)
    pid = re.search(r"Worker_PP1 pid=(\d+)", log)
    assert pid is not None
    xid = kernel.read_text(encoding="utf-8")
    assert f"Xid (PCI:0000:41:00): 31, pid={pid[1]}, name=VLLM::Worker_PP," in xid
    assert "PP rank 1, PCP rank 0, TP rank 0, device cuda:1 pci 0000:41:00" in log


def test_with_blocking_launches_the_incident_is_told_where_it_happens() -> None:
    env = {**THREE, "CULPA_LAUNCH_BLOCKING": "1"}
    with server("-pp", "3", "--fault", "incident", env=env) as lab:
        assert lab.complete(LONG)["status"] == 500
        incident = triaged(lab)
        assert (incident.symptom, incident.rank) == ("cuda_illegal_access", "PP1")
        assert "in begin" in lab.text
        assert "torch.AcceleratorError: CUDA error: an illegal memory access was encountered" in lab.text


def test_the_incident_in_a_prompt_whose_second_piece_is_its_last_ends_too() -> None:
    with server("-pp", "3", "--fault", "incident", env=THREE) as lab:
        assert lab.complete(LONG[:100])["status"] == 500
        assert triaged(lab).rank == "PP1"


@pytest.mark.parametrize("switch", [["--enforce-eager"], ["-pp", "1"], ["--max-num-batched-tokens", "512"]])
def test_the_incident_needs_every_part_of_its_condition(switch: list[str]) -> None:
    stages = [] if "-pp" in switch else ["-pp", "2"]
    with server("--fault", "incident", *stages, *switch) as lab:
        assert lab.complete(LONG)["status"] == 200


def test_a_lost_wakeup_hangs_without_a_word() -> None:
    with server("-pp", "2", "--fault", "silent-hang") as lab:
        assert lab.complete(LONG[:70])["status"] == 200
        before = len(lab.lines)
        with pytest.raises(httpx2.TimeoutException):
            lab.client.post("/v1/completions", json={"prompt": LONG, "max_tokens": 1}, timeout=2)
        assert lab.client.get("/health").status_code == 200
        assert not [line for line in lab.lines[before:] if "ERROR" in line]
    with server("--fault", "silent-hang") as lab:
        assert lab.complete(LONG)["status"] == 200


def test_a_hang_ends_when_the_engine_core_has_waited_long_enough() -> None:
    with server("-pp", "2", "--fault", "silent-hang", env={"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1"}) as lab:
        assert lab.complete(LONG)["status"] == 500
        incident = triaged(lab)
        assert incident.symptom == "hang_timeout"


def test_a_stage_that_the_host_kills_says_nothing_and_the_kernel_does(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.log"
    long = [
        "--max-model-len",
        "12288",
        "--num-gpu-blocks-override",
        "900",
        "--max-num-batched-tokens",
        "2048",
    ]
    with server("-pp", "3", "--fault", "stage-killed-silently", "--kernel-log", str(kernel), *long) as lab:
        assert lab.complete(list(prompt(10500)), 1)["status"] == 500
        incident = triaged(lab, kernel)
        assert not re.search(r"Worker_PP1 pid=\d+\) ERROR", lab.text)
        assert "Worker proc VllmWorker-1 died unexpectedly" in lab.text
    assert (incident.symptom, incident.rank) == ("host_oom_kill", "PP1")
    with server("-pp", "2", "--fault", "stage-killed-silently", *long) as lab:
        assert lab.complete(list(prompt(10500)), 1)["status"] == 200


def test_an_arm_that_does_not_apply_shows_in_the_configuration_alone() -> None:
    with server("-pp", "2", "--enforce-eager", "--fault", "arm-ignored") as lab:
        assert "enforce_eager=False" in lab.text
        assert lab.complete(LONG)["status"] == 500
    with server("--enforce-eager", "--fault", "arm-ignored") as lab:
        assert "enforce_eager=True" in lab.text
        assert lab.complete(LONG)["status"] == 200


def test_a_rate_is_drawn_once_a_launch_and_follows_the_seed() -> None:
    from culpa_lab.engine.settings import _armed

    armed = [bool(_armed((("incident", 0.3),), seed)) for seed in range(400)]
    assert 0.2 < sum(armed) / 400 < 0.4
    assert armed == [bool(_armed((("incident", 0.3),), seed)) for seed in range(400)]
