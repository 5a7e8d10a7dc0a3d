"""llama.cpp's adapter: which launches it takes, what it refuses, what it reads out of a log."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.engines.adapters import NO_GPU, TWO_GPUS, launch

from culpa.engines import BadLaunch, find_adapter
from culpa.engines.catalogue import embedded_catalogue
from culpa.engines.llamacpp import LlamaCppAdapter
from culpa.model import Configuration, Launch, all_safe, all_suspect

ALL_OPTIONS = " ".join(
    word
    for factor in embedded_catalogue("llamacpp").factors
    for word in (factor.flag or "", *factor.flag_aliases, *factor.on, *factor.off)
)


def llama(
    help_text: str | None = ALL_OPTIONS, surrounding: Mapping[str, str] | None = None
) -> LlamaCppAdapter:
    return LlamaCppAdapter(embedded_catalogue("llamacpp"), surrounding or {}, lambda *_: help_text)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a `llama-server` that can be executed and a model file."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF....")
    (tmp_path / "llama-server").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "llama-server").chmod(0o755)
    return tmp_path


def start(place: Path, options: str = "", **env: str | None) -> Launch:
    words = ("./llama-server", "-m", "model.gguf", *options.split())
    return Launch(words, tuple(env.items()), str(place))


@pytest.mark.parametrize(
    ("line", "recognised"),
    [
        ("llama-server -m x", True),
        ("/opt/llama.cpp/build/bin/llama-server", True),
        ("numactl -N 0 llama-server", True),
        ("culpa-llamacpp -c 1024", True),
        ("python3.11 -m culpa_llamacpp", True),
        ("python -m llama_cpp.server --model x", False),
        ("llama-cli -m x", False),
        ("vllm serve x", False),
    ],
)
def test_it_takes_launches_of_the_server_only(line: str, recognised: bool) -> None:
    assert llama().recognises(launch(line)) == recognised


def test_the_pair_of_a_quantised_v_cache_without_flash_attention_is_read(place: Path) -> None:
    reading = llama().read(start(place, "-c 1024 -ctv q4_0 -fa off"), NO_GPU)
    factors = {factor.name: factor for factor in reading.factors}
    assert (factors["cache_type_v"].suspect, factors["cache_type_v"].safe) == ("q4_0", ("f16",))
    assert (factors["flash_attn"].suspect, factors["flash_attn"].safe) == ("off", ("auto",))
    assert len(factors) >= 8


def test_batch_and_slots_are_numbers(place: Path) -> None:
    reading = llama().read(start(place, "-b 2 -np 4"), NO_GPU)
    numeric = {factor.name: (factor.suspect, factor.safe) for factor in reading.factors if factor.numeric}
    assert numeric["batch_size"] == ("2", ("2048",))
    assert numeric["parallel"] == ("4", ("1",))


def test_applying_every_safe_level_and_going_back(place: Path) -> None:
    adapter, given = llama(), start(place, "-c 1024 -ctv q4_0 -fa off --alias -b", LLAMA_ARG_UBATCH="64")
    reading = adapter.read(given, NO_GPU)
    safe = all_safe(reading.factors)
    changed = adapter.apply(given, safe)
    levels = adapter.levels(changed)
    assert {name: levels[name] for name in safe} == safe.as_dict()
    assert changed.argv[:7] == ("./llama-server", "-m", "model.gguf", "-c", "4096", "-ctv", "f16")
    assert changed.variable("LLAMA_ARG_UBATCH") == "512"
    assert adapter.apply(given, all_suspect(reading.factors)) == given


def test_slots_share_a_buffer_where_their_number_is_automatic(place: Path) -> None:
    adapter = llama()
    assert adapter.levels(start(place))["kv_unified"] == "on"
    assert adapter.levels(start(place, "-np 4"))["kv_unified"] == "off"
    assert adapter.levels(start(place, "-np 4 -kvu"))["kv_unified"] == "on"
    one_slot = adapter.apply(start(place), Configuration.of({"parallel": "1", "kv_unified": "on"}))
    assert one_slot == start(place, "-np 1 -kvu")


def test_automatic_slots_without_a_shared_buffer_cannot_run() -> None:
    reason = llama().can_run(Configuration.of({"parallel": "auto", "kv_unified": "off"}))
    assert reason is not None
    assert "always shares" in reason


def test_options_that_the_build_does_not_list_are_left_out(place: Path) -> None:
    old = llama(ALL_OPTIONS.replace("-cram", "").replace("--no-repack", "").replace("-nr ", ""))
    left_out = {out.name: out.reason for out in old.read(start(place), NO_GPU).left_out}
    assert left_out["cache_ram"] == "this build does not list -cram"
    assert "repack" in left_out


def test_a_build_that_does_not_answer_is_noted_and_nothing_is_left_out_for_it(place: Path) -> None:
    reading = llama(None).read(start(place), NO_GPU)
    assert "cache_ram" in {factor.name for factor in reading.factors}
    assert "--help gave no answer" in reading.notes[-1]


def test_gpus_bring_their_factors(place: Path) -> None:
    names = {factor.name for factor in llama().read(start(place, "-sm row"), TWO_GPUS).factors}
    assert {"gpu_layers", "split_mode", "cuda_graphs", "launch_blocking"} <= names


REFUSED = [
    ("-m gone.gguf", "model file gone.gguf does not exist"),
    ("-m .", "model file . is a folder"),
    ("-m llama-server", "model file llama-server is no GGUF file"),
    ("-m model.gguf -md gone.gguf", "model file gone.gguf does not exist"),
    ("", "no model: the launch needs -m FILE"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_a_model_that_is_not_there_is_told_before_anything_starts(
    place: Path, options: str, message: str
) -> None:
    with pytest.raises(BadLaunch, match=message):
        llama().read(Launch(("./llama-server", *options.split()), (), str(place)), NO_GPU)


def test_a_model_may_come_from_a_variable_or_a_repository(place: Path) -> None:
    with pytest.raises(BadLaunch, match="model file gone does not exist"):
        llama().read(Launch(("./llama-server",), (("LLAMA_ARG_MODEL", "gone"),), str(place)), NO_GPU)
    llama().read(Launch(("./llama-server", "-hf", "a/b"), (), str(place)), NO_GPU)


def test_a_launch_is_prepared_with_a_log_that_tells(place: Path) -> None:
    prepared = llama().prepare(start(place, "--host 0.0.0.0 --port 80"), 9, place)
    assert prepared.launch == start(place, "--host 127.0.0.1 --port 9 --metrics -lv 4")
    assert (prepared.base_url, prepared.health_path) == ("http://127.0.0.1:9", "/health")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("-lv 5", "-lv 5 --port 9 --host 127.0.0.1 --metrics"),
        ("-lv 1", "-lv 4 --port 9 --host 127.0.0.1 --metrics"),
        ("-v --metrics", "-v --metrics --port 9 --host 127.0.0.1"),
    ],
)
def test_a_log_that_tells_enough_is_left_alone(place: Path, given: str, expected: str) -> None:
    assert llama().prepare(start(place, given), 9, place).launch == start(place, expected)


def test_the_port_of_the_launch_is_wanted(place: Path) -> None:
    assert llama().wanted_port(start(place, "--port 80")) == 80
    assert llama().wanted_port(start(place, LLAMA_ARG_PORT="81")) == 81
    assert llama().wanted_port(start(place)) is None


def test_the_key_that_requests_must_carry_is_found(place: Path) -> None:
    (place / "keys").write_text("# comment\n\nsecret\n")
    assert llama().prepare(start(place, "--api-key a,b"), 9, place).api_key == "a"
    assert llama().prepare(start(place, LLAMA_API_KEY="c"), 9, place).api_key == "c"
    assert llama().prepare(start(place, f"--api-key-file {place}/keys"), 9, place).api_key == "secret"


def test_prefix_and_tls_shape_the_address(place: Path) -> None:
    prepared = llama().prepare(start(place, "--api-prefix /x/ --ssl-key-file k"), 9, place)
    assert prepared.base_url == "https://127.0.0.1:9/x"


LOG = """\
0.00.002.934 I srv          init: build_info: b9321-4d5e2bc1a
0.00.309.504 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.00.593.179 I llama_init_from_model: enabling flash_attn since it is required for quantized V cache
0.00.392.700 I llama_context: n_seq_max             = 4
0.00.392.714 I llama_context: n_ctx                 = 1024
0.00.392.727 I llama_context: n_ctx_seq             = 256
0.00.392.739 I llama_context: n_batch               = 1024
0.00.392.752 I llama_context: n_ubatch              = 512
0.00.392.779 I llama_context: flash_attn            = auto
0.00.407.741 I llama_kv_cache: size =   14.41 MiB (  1024 cells,  30 layers,  1/1 seqs), K (f16):   11.25 MiB, V (q4_0):    3.16 MiB
0.00.408.878 I resolve_fused_ops: Flash Attention enabled
0.00.411.874 I cmn  common_init_: warming up the model with an empty run - please wait ... (--no-warmup to disable)
0.00.494.110 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 256, kv_unified = 'false'
0.00.495.261 I spec common_specu: no implementations specified for speculative decoding
0.00.495.308 I srv    load_model: prompt cache is enabled, size limit: 8192 MiB
0.00.495.349 I srv    load_model: context checkpoints enabled, max = 32, min spacing = 8192
0.00.692.714 I llama_context: n_ctx                 = 512
""".splitlines()  # noqa: E501


def test_the_log_says_what_was_chosen() -> None:
    props = {"total_slots": 4, "default_generation_settings": {"n_ctx": 256, "params": {}}}
    assert llama().effective(LOG, {"/props": props}) == {
        "engine_version": "b9321-4d5e2bc1a",
        "load_mode": "mmap",
        "ctx_size": "1024",
        "batch_size": "1024",
        "ubatch_size": "512",
        "flash_attn": "on",
        "cache_type_k": "f16",
        "cache_type_v": "q4_0",
        "warmup": "on",
        "parallel": "4",
        "kv_unified": "off",
        "speculative": "off",
        "cache_ram": "8192",
        "ctx_checkpoints": "32",
        "context_tokens": "256",
        "batch_tokens": "1024",
    }


def test_an_arm_that_fell_back_is_told() -> None:
    adapter = llama()
    said = adapter.effective([*LOG, "x W sched_reserve: Flash Attention was auto, set to disabled"], {})
    assert adapter.mismatches(Configuration.of({"flash_attn": "on"}), said) == (
        "flash_attn was to be on, but the engine says that it is off",
    )
    asked = Configuration.of(
        {"flash_attn": "auto", "ctx_size": "1000", "batch_size": "2048", "parallel": "auto"}
    )
    assert adapter.mismatches(asked, said) == ()


def test_an_older_log_says_it_too() -> None:
    old = [
        "llama_new_context_with_model: n_ctx      = 2048",
        "llama_new_context_with_model: flash_attn = 1",
        "llama_kv_cache_unified: size =  256.00 MiB, K (q8_0):  128.00 MiB, V (q8_0):  128.00 MiB",
    ]
    said = llama().effective(old, {})
    assert said == {"ctx_size": "2048", "flash_attn": "on", "cache_type_k": "q8_0", "cache_type_v": "q8_0"}


def test_limits_are_those_of_one_slot() -> None:
    adapter = llama()
    api = {
        "/v1/models": {"data": [{"id": "m"}]},
        "/props": {"total_slots": 4, "default_generation_settings": {"n_ctx": 256}},
    }
    limits = adapter.limits(api, adapter.effective(LOG, api))
    assert (limits.model, limits.context_tokens, limits.batch_tokens, limits.parallel) == ("m", 256, 1024, 4)


def test_it_is_found_for_a_launch() -> None:
    assert find_adapter(launch("llama-server -m x"), None, {}).name == "llama.cpp"
    assert find_adapter(launch("llama-server -m x"), None, {}).dialect == "llamacpp"
