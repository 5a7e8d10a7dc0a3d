"""A real, unplanted fault of vLLM 0.32.0 on the CPU: eager execution with more than one pipeline stage.

The factors are the likeliest few, so that the minutes of compiled starts stay bounded; without --only the same
set is found among all that apply.
"""

from pathlib import Path

import pytest
from tests.real.isolation import Isolated, isolate

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2400)]

ENVIRONMENT = [
    "VLLM_CPU_KVCACHE_SPACE=1",
    "VLLM_CPU_OMP_THREADS_BIND=0|1|1",
    "HF_HUB_OFFLINE=1",
    "OMP_NUM_THREADS=1",
]
ONLY = ("execution", "pipeline_parallel_size", "prefix_caching", "max_num_seqs")


def launch(vllm: str, checkpoint: Path, *flags: str) -> list[str]:
    server = [vllm, "-m", "vllm.entrypoints.openai.api_server", "--model", str(checkpoint)]
    return [*ENVIRONMENT, *server, "--served-model-name", "tiny", "-pp", "3", *flags]


@pytest.fixture(scope="module")
def eager(vllm: str, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    options = [word for name in ONLY for word in ("--only", name)]
    return isolate(
        tmp_path_factory.mktemp("eager") / "run",
        launch(vllm, checkpoint, "--enforce-eager"),
        *options,
        "--no-thresholds",
        seconds=2300,
    )


def test_eager_execution_and_the_number_of_stages_are_isolated(eager: Isolated) -> None:
    assert eager.code == 1
    assert eager.found == [{"execution", "pipeline_parallel_size"}]
    assert eager.accused == {"execution", "pipeline_parallel_size"}


def test_first_failing_rank_is_the_second_stage(eager: Isolated) -> None:
    assert eager.result["signature"]["rank"] == "PP1"
    assert eager.result["signature"]["process"] == "worker"


def test_root_event_is_the_assertion_and_not_its_consequences(eager: Isolated) -> None:
    assert eager.result["signature"]["symptom"] == "assertion"
    assert "sync_and_gather_intermediate_tensors" in eager.result["signature"]["event"]


def test_failing_trials_are_over_within_five_seconds_of_the_error(eager: Isolated) -> None:
    failing = [trial for trial in eager.result["trials"] if trial["outcome"] == "fail"]
    assert failing
    for trial in failing:
        assert trial["verdict_delay_seconds"] < 5


def test_same_launch_compiled_shows_no_failure(vllm: str, checkpoint: Path, tmp_path: Path) -> None:
    # Long prompts of a bounded length, so that the minutes do not depend on how fast the machine reads.
    options = ("--patience", "1s", "--probe-tokens", "3000")
    run = isolate(tmp_path / "run", launch(vllm, checkpoint), *options, seconds=1500)
    assert run.code == 0, run.result["signature"]
    assert run.result["outcome"] == "no_failure"
    assert run.result["findings"] == []
