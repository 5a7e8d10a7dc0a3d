"""The adapter of the reference engine: what it reads out of a launch, and how it starts a trial."""

import json
from pathlib import Path

import pytest
from tests.engines.adapters import NO_GPU

from culpa.engines import BadLaunch, Reading
from culpa.engines.catalogue import embedded_catalogue
from culpa.engines.lab import LabAdapter
from culpa.model import Configuration, Launch

PYTHON = ("python3", "-m", "culpa_lab", "serve")


@pytest.fixture
def model(tmp_path: Path) -> str:
    config = {
        "architectures": ["Qwen3NextForCausalLM"],
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    return str(tmp_path)


def lab() -> LabAdapter:
    return LabAdapter(embedded_catalogue("lab"), {"PATH": "/usr/bin:/bin"})


def read(*words: str, partition: str | None = None) -> tuple[LabAdapter, Reading]:
    adapter = lab()
    env = (("VLLM_PP_LAYER_PARTITION", partition),) if partition else ()
    return adapter, adapter.read(Launch((*PYTHON, *words), env), NO_GPU)


@pytest.mark.parametrize(
    ("argv", "known"),
    [
        (("culpa-lab", "serve"), True),
        (("/opt/venv/bin/culpa-lab", "serve", "-pp", "3"), True),
        (("python3.11", "-m", "culpa_lab", "serve"), True),
        (("culpa-lab",), False),
        (("culpa-lab", "faults"), False),
        (("vllm", "serve", "m"), False),
    ],
)
def test_only_a_launch_that_serves_is_recognised(argv: tuple[str, ...], known: bool) -> None:
    assert lab().recognises(Launch(argv)) is known


def test_an_uneven_partition_can_be_aligned_with_the_period_of_the_model(model: str) -> None:
    _, reading = read(model, "-pp", "3", partition="23,23,18")
    factors = {factor.name: factor for factor in reading.factors}
    assert factors["pipeline_partition"].suspect == "23,23,18"
    assert factors["pipeline_partition"].safe == ("default", "24,24,16")


def test_a_single_stage_has_no_partition_to_vary(model: str) -> None:
    _, reading = read(model)
    assert "pipeline_partition" not in [factor.name for factor in reading.factors]


def test_what_is_not_set_and_the_engine_chooses_is_left_alone(model: str) -> None:
    _, plain = read(model)
    _, given = read(model, "--block-size", "128")
    reasons = {left.name: left.reason for left in plain.left_out}
    assert reasons["block_size"] == "not set: the engine chooses it"
    assert "block_size" in [factor.name for factor in given.factors]


def test_a_single_stage_takes_the_partition_away(model: str) -> None:
    adapter, _ = read(model, "-pp", "3", partition="23,23,18")
    launch = Launch((*PYTHON, model, "-pp", "3"), (("VLLM_PP_LAYER_PARTITION", "23,23,18"),))
    plain = adapter.apply(launch, Configuration.of({"pipeline_parallel_size": "1"}))
    assert plain.argv == (*PYTHON, model, "-pp", "1")
    assert plain.variable("VLLM_PP_LAYER_PARTITION") is None


def test_messages_of_its_devices_go_to_a_file_of_the_run_whatever_the_launch_says(
    model: str, tmp_path: Path
) -> None:
    adapter, _ = read(model)
    given = Launch((*PYTHON, model, "--kernel-log", "/var/log/kern.log", "--port", "80"))
    prepared = adapter.prepare(given, 8123, tmp_path / "scratch")
    file = str(tmp_path / "scratch" / "kernel.log")
    assert prepared.launch.argv.count("--kernel-log") == 1
    assert prepared.launch.argv[prepared.launch.argv.index("--kernel-log") + 1] == file
    assert adapter.kernel_log(tmp_path / "scratch") == Path(file)
    assert prepared.base_url == "http://127.0.0.1:8123"
    assert adapter.wanted_port(given) == 80


def test_a_model_folder_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadLaunch, match="model folder nowhere does not exist"):
        read("nowhere")


def test_an_older_build_is_tried_only_where_the_launch_names_its_own(model: str) -> None:
    _, plain = read(model)
    _, given = read(model, "--build", "64")
    assert "engine_build" not in [factor.name for factor in plain.factors]
    build = next(factor for factor in given.factors if factor.name == "engine_build")
    assert (build.suspect, build.safe, build.numeric) == ("64", ("1",), True)
