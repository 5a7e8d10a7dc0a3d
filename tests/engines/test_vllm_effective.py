"""What vLLM says of itself after start-up, and when an arm is not what it claims."""

from pathlib import Path

import pytest
from tests.engines.vllm_fixtures import adapter, gpus, init_line, installation, launch_in, model_folder

from culpa.engines.vllm import VllmAdapter
from culpa.model import Configuration

METRICS = (
    "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
    'vllm:cache_config_info{_block_size_resolved="True",block_size="128",cache_dtype="auto",'
    'enable_prefix_caching="False",engine="0",kv_cache_size_tokens="1024562",kv_offloading_size="None",'
    'mamba_cache_mode="none",mamba_ssm_cache_dtype="float32",num_gpu_blocks="8192",'
    'num_gpu_blocks_override="None"} 1.0\n'
)
MODELS = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 32768}]}


@pytest.fixture
def vllm(tmp_path: Path) -> VllmAdapter:
    """An adapter that has read the incident's launch on three big GPUs."""
    model_folder(tmp_path)
    own = adapter(installation(tmp_path / "venv"))
    own.read(launch_in(tmp_path, "vllm serve Qwen3.8-27B -pp 3"), gpus(3, gib=80))
    return own


def said(vllm: VllmAdapter, *lines: str, **api: object) -> dict[str, str]:
    return vllm.effective(lines, {f"/{path}": answer for path, answer in api.items()})


@pytest.mark.parametrize(
    ("mode", "graphs", "level"),
    [
        ("VLLM_COMPILE: 3", "FULL_AND_PIECEWISE: (2, 1)", "graphs"),
        ("NONE: 0", "FULL: 2", "graphs"),
        ("VLLM_COMPILE: 3", "NONE: 0", "compiled"),
        ("DYNAMO_TRACE_ONCE: 2", "NONE: 0", "compiled"),
        ("NONE: 0", "NONE: 0", "eager"),
    ],
)
def test_execution_follows_from_mode_and_graph_mode(
    vllm: VllmAdapter, mode: str, graphs: str, level: str
) -> None:
    assert said(vllm, init_line(mode=mode, graphs=graphs))["execution"] == level


@pytest.mark.parametrize(
    ("line", "name", "level"),
    [
        (init_line(version="0.31.1rc2.dev5+gabc"), "engine_version", "0.31.1rc2.dev5+gabc"),
        (init_line(), "pipeline_parallel_size", "3"),
        (init_line(), "prefix_caching", "on"),
        (init_line(speculative_config="SpeculativeConfig(method='mtp', model='m')"), "speculative_decoding", "*"),
        (init_line(disable_custom_all_reduce="True"), "custom_all_reduce", "off"),
        (init_line(kv_cache_dtype="fp8_e4m3"), "kv_cache_dtype", "fp8"),
        (init_line(enable_chunked_prefill="False"), "chunked_prefill", "off"),
        (init_line(dtype="torch.float16"), "dtype", "float16"),
    ],
)  # fmt: skip
def test_parts_of_the_configuration_line(vllm: VllmAdapter, line: str, name: str, level: str) -> None:
    assert said(vllm, line)[name] == level


def recorded_lines() -> list[list[str]]:
    """Lines as vLLM prints them: factor or fact, level, line."""
    text = (Path(__file__).parent / "data" / "vllm_lines.tsv").read_text(encoding="utf-8")
    return [row.split("\t") for row in text.splitlines()]


@pytest.mark.parametrize(("name", "level", "line"), recorded_lines())
def test_recorded_lines_tell_levels_and_facts(vllm: VllmAdapter, name: str, level: str, line: str) -> None:
    assert said(vllm, line)[name] == level


def test_a_later_correction_of_the_graph_mode_holds(vllm: VllmAdapter) -> None:
    correction = (
        "(Worker pid=9) WARNING 12-01 05:36:51 [compilation.py:1430] CUDAGraphMode.FULL_AND_PIECEWISE is not "
        "supported with FlashInferBackend backend (support: AttentionCGSupport.NEVER); setting "
        "cudagraph_mode=NONE because attention is not compiled piecewise"
    )
    effective = said(vllm, init_line(), correction)
    assert effective["cuda_graph_mode"] == "NONE"
    assert effective["execution"] == "compiled"


def test_the_labels_of_the_metrics_win_over_the_log(vllm: VllmAdapter) -> None:
    effective = said(vllm, init_line(enable_prefix_caching="True"), metrics=METRICS)
    assert effective["prefix_caching"] == "off"
    assert effective["mamba_cache_mode"] == "none"
    assert effective["block_size"] == "128"
    assert effective["num_gpu_blocks_override"] == "default"
    assert effective["kv_offloading_size"] == "off"


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"execution": "graphs"}, (init_line(graphs="NONE: 0"),)),
        ({"execution": "graphs"}, (init_line(mode="NONE: 0", graphs="NONE: 0"),)),
        ({"prefix_caching": "on"}, (init_line(enable_prefix_caching="False"),)),
        ({"prefix_caching": "on"}, (init_line(), "Disabling prefix caching: model has non-causal attention layers.")),
        ({"attention_backend": "TRITON_ATTN"}, ("Using FLASH_ATTN attention backend out of potential backends: [].",)),
        ({"async_scheduling": "on"}, ("Async scheduling is disabled because the V1 model runner ...",)),
        ({"model_runner": "V2"}, ("... does not yet support pooling; using the V1 model runner instead.",)),
        ({"speculative_decoding": '{"method":"mtp"}'}, (init_line(speculative_config="None"),)),
        ({"speculative_decoding": "off"}, (init_line(speculative_config="SpeculativeConfig(method='mtp')"),)),
        ({"pipeline_partition": "24,24,16"}, ("Hidden layers were unevenly partitioned: [21,22,21].",)),
        ({"gdn_prefill_backend": "flashinfer"}, ("Using Triton/FLA GDN prefill kernel (requested=flashinfer)",)),
    ],
)  # fmt: skip
def test_an_arm_that_is_not_what_it_claims(
    vllm: VllmAdapter, asked: dict[str, str], lines: tuple[str, ...]
) -> None:
    (sentence,) = vllm.mismatches(Configuration.of(asked), said(vllm, *lines))
    (name,) = asked
    assert sentence.startswith(f"{name} was to be {asked[name]}, but the engine says")


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"execution": "graphs", "prefix_caching": "on", "pipeline_parallel_size": "3"}, (init_line(),)),
        ({"cuda_graph_mode": "default"}, (init_line(),)),
        ({"kv_cache_dtype": "auto"}, (init_line(kv_cache_dtype="fp8"),)),
        ({"attention_backend": "auto"}, ("Using FLASH_ATTN attention backend out of potential backends: [].",)),
        ({"speculative_decoding": '{"method":"mtp"}'}, (init_line(speculative_config="SpeculativeConfig(a=1)"),)),
        ({"execution": "eager", "cuda_graph_mode": "PIECEWISE"}, (init_line(mode="NONE: 0", graphs="NONE: 0"),)),
        ({"pipeline_parallel_size": "1", "pipeline_partition": "24,24,16"}, (init_line(pipeline_parallel_size="1"),)),
        ({"prefix_caching": "on"}, ()),
    ],
)  # fmt: skip
def test_no_complaint_about_what_the_engine_does_not_contradict(
    vllm: VllmAdapter, asked: dict[str, str], lines: tuple[str, ...]
) -> None:
    assert vllm.mismatches(Configuration.of(asked), said(vllm, *lines)) == ()


def test_limits_come_from_the_engine_and_else_from_its_defaults(vllm: VllmAdapter) -> None:
    limits = vllm.limits({"/v1/models": MODELS}, said(vllm, init_line()))
    assert (limits.model, limits.context_tokens) == ("tiny", 32768)
    assert (limits.batch_tokens, limits.parallel) == (8192, 1024)


def test_limits_that_the_launch_gives_are_read_from_the_log(vllm: VllmAdapter) -> None:
    lines = (
        "INFO [api_utils.py:286] non-default args: {'model': 'm', 'max_num_seqs': 4, 'enforce_eager': True}",
        "INFO [scheduler.py:307] Chunked prefill is enabled with max_num_batched_tokens=512.",
    )
    limits = vllm.limits({"/v1/models": MODELS}, said(vllm, *lines))
    assert (limits.batch_tokens, limits.parallel) == (512, 4)


def test_hostile_lines_are_harmless(vllm: VllmAdapter) -> None:
    assert said(vllm, "\x1b[31m\x00{{{'mode': <", "Initializing a V1 LLM engine (" + "x=" * 200_000) == {}
