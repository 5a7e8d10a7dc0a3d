"""The configuration that a log tells: dumps, launches, variables, and what engines say that they chose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.triage.configuration import ConfigurationReader
from culpa.triage.context import Context
from culpa.triage.lines import LineParser
from culpa.triage.pairs import pairs
from culpa.triage.tables import load_tables


def read(*texts: str) -> ConfigurationReader:
    context = Context()
    parser = LineParser(load_tables("generic"))
    for number, raw in enumerate(texts, 1):
        for line in parser.parse(number, raw):
            context.note(line)
    return context.configuration


BANNER = (
    "(APIServer pid=1) INFO 07-15 20:57:43 [api_utils.py:345]  " + "\u2584\u2588 " * 5 + " version 0.25.0"
)
ARGS = (
    "(APIServer pid=1) INFO 08-22 04:10:33 [api_utils.py:273] non-default args: {'model': '/m/x', "
    "'tensor_parallel_size': 2, 'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 4}, "
    "'enable_prefix_caching': True}"
)
DUMP = (
    "(EngineCore pid=2) INFO 07-15 20:58:01 [core.py:110] Initializing a V1 LLM engine (v0.25.0) with config: "
    "model='/m/x', speculative_config=None, tensor_parallel_size=4, enforce_eager=True, kv_cache_dtype=auto, "
    "compilation_config={'level': 3, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>}"
)


def test_arguments_and_what_is_left_at_its_default() -> None:
    values = read(ARGS).values()
    assert values["tp"] == 2
    assert values["spec_decode"] == "mtp"
    assert values["spec_tokens"] == 4
    assert values["prefix_caching"] is True
    assert values["eager"] is False
    assert values["pp"] == 1


def test_the_dump_of_the_engine_counts_more_than_what_was_asked_for() -> None:
    reader = read(ARGS, DUMP)
    values = reader.values()
    assert (values["tp"], values["eager"], values["spec_decode"]) == (4, True, False)
    assert values["cudagraph_mode"] == "FULL_AND_PIECEWISE"
    assert (reader.engine, reader.version) == ("vllm", "0.25.0")


def test_what_the_engine_says_that_it_chose_counts_most() -> None:
    values = read(
        DUMP, "INFO 08-22 04:11:40 [cache.py:231] kv_cache_dtype=fp8_e4m3 taken from checkpoint"
    ).values()
    assert values["kv_cache_dtype"] == "fp8_e4m3"


def test_several_backends_are_all_named() -> None:
    values = read(
        "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER']",
        "Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN']",
    ).values()
    assert values["attention_backend"] == "FLASHINFER, TRITON_ATTN"


def test_sglang_server_arguments() -> None:
    reader = read(
        "[2026-03-10 09:00:02] server_args=ServerArgs(model_path='/models/q32b', tp_size=8, pp_size=2, "
        "disable_radix_cache=True, disable_cuda_graph=False, speculative_algorithm='EAGLE', mem_fraction_static=0.8)"
    )
    values = reader.values()
    assert reader.engine == "sglang"
    assert (values["tp"], values["pp"], values["prefix_caching"]) == (8, 2, False)
    assert (values["spec_decode"], values["eager"], values["memory_fraction"]) == ("eagle", False, 0.8)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (
            [
                "$ VLLM_PP_LAYER_PARTITION=23,23,18 vllm serve acme/x \\",
                "  -pp 3 --no-enable-prefix-caching \\",
                "  --enforce-eager",
            ],
            {"model": "acme/x", "partition": "23,23,18", "pp": 3, "prefix_caching": False, "eager": True},
        ),
        (
            ["python -m sglang.launch_server --model-path /m --tp-size=4 --disable-overlap-schedule"],
            {"model": "/m", "tp": 4, "async_scheduling": False},
        ),
        (
            ["llama-server -m q.gguf -ngl 99 -fa on -ctk q8_0 -c 8192 --split-mode row"],
            {
                "model": "q.gguf",
                "gpu_layers": "99",
                "kv_cache_dtype": "q8_0",
                "max_model_len": 8192,
                "split_mode": "row",
            },
        ),
        (
            ['vllm serve m --speculative-config \'{"method": "mtp", "num_speculative_tokens": 3}\''],
            {"spec_decode": "mtp", "spec_tokens": 3},
        ),
    ],
)
def test_launch_commands(command: list[str], wanted: dict[str, object]) -> None:
    values = read(*command).values()
    assert {name: values.get(name) for name in wanted} == wanted


def test_advice_of_a_traceback_sets_nothing() -> None:
    assert "launch_blocking" not in read("For debugging consider passing CUDA_LAUNCH_BLOCKING=1").values()
    assert read("export CUDA_LAUNCH_BLOCKING=1").values()["launch_blocking"] is True


@pytest.mark.parametrize(
    ("line", "engine", "version"),
    [
        ("INFO 03-11 15:40:02 [api_server.py:1034] vLLM API server version 0.8.5.post1", "vllm", "0.8.5.post1"),
        (BANNER, "vllm", "0.25.0"),
        ("[05/27/2025-21:12:01] [TRT-LLM] [I] TensorRT-LLM version: 0.20.0rc3", "tensorrt-llm", "0.20.0rc3"),
        ("build: 10525 (2cfdb5fc0) with GNU 15.2.0 for Linux x86_64", "llama.cpp", "10525"),
        ("2024-06-03T07:12:23.785971Z ERROR text_generation_launcher: Shard 0 crashed", "tgi", None),
        ("nothing of the kind", None, None),
    ],
)  # fmt: skip
def test_engine_and_release(line: str, engine: str | None, version: str | None) -> None:
    reader = read(line)
    assert (reader.engine, reader.version) == (engine, version)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1, b='x, y', c=[1, 2]) rest=2", [("a", "1"), ("b", "x, y"), ("c", "[1, 2]")]),
        ("'a': 'it\\'s', 'b': None}", [("a", "it\\'s"), ("b", "None")]),
        ("a=1, b='cut of", [("a", "1")]),
        ("a=1, b=[1, 2", [("a", "1")]),
        (", ,=,a=,=1", [("a", "")]),
        ("", []),
    ],
)  # fmt: skip
def test_pairs(text: str, found: list[tuple[str, str]]) -> None:
    assert list(pairs(text)) == found


@given(st.text(max_size=400))
def test_no_text_makes_reading_raise(text: str) -> None:
    list(pairs(text))
    reader = read(
        text,
        f"non-default args: {{{text}",
        f"Initializing a V1 LLM engine (v0.25.0) with config: {text}",
        f"vllm serve {text}",
        f"VLLM_PP_LAYER_PARTITION={text}",
    )
    assert isinstance(reader.values(), dict)
