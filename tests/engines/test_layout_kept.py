"""What a run keeps, so that its layout can be drawn later without the model."""

import json
from pathlib import Path

from culpa.engines import find_adapter, parse_command
from culpa.engines.layout_kept import FILE, keep_layout
from culpa.report.html.planned import stored_plan

LAB = ("VLLM_PP_LAYER_PARTITION=23,23,18", "python3", "-m", "culpa_lab", "serve", "-pp", "3")
MODEL = Path(__file__).parents[2] / "examples/incident-model"


def _keep(folder: Path, *words: str) -> None:
    launch = parse_command(words)
    keep_layout(folder, find_adapter(launch, None), launch)


def test_the_reference_engine_keeps_what_its_layout_is_computed_from(tmp_path: Path) -> None:
    _keep(tmp_path, *LAB)
    plan = stored_plan(json.loads((tmp_path / FILE).read_text()), {})
    assert plan is not None
    assert plan.partition == (23, 23, 18)
    assert plan.capacity_tokens is None


def test_what_the_engine_tells_of_its_blocks_completes_the_plan(tmp_path: Path) -> None:
    _keep(tmp_path, *LAB)
    told = {"block_size": "256", "kv_blocks": "1848", "context_tokens": "32768"}
    plan = stored_plan(json.loads((tmp_path / FILE).read_text()), told)
    assert plan is not None
    assert plan.capacity_tokens == 451_904  # what culpa-lab itself prints for this launch


def test_blocks_of_unknown_size_are_left_out(tmp_path: Path) -> None:
    _keep(tmp_path, *LAB)
    plan = stored_plan(json.loads((tmp_path / FILE).read_text()), {"kv_blocks": "1848"})
    assert plan is not None
    assert plan.num_blocks is None


def test_a_launch_of_vllm_keeps_its_layout(tmp_path: Path) -> None:
    _keep(tmp_path, "vllm", "serve", str(MODEL), "-pp", "3")
    plan = stored_plan(json.loads((tmp_path / FILE).read_text()), {})
    assert plan is not None
    assert len(plan.stages) == 3


def test_an_engine_without_a_known_layout_keeps_nothing(tmp_path: Path) -> None:
    _keep(tmp_path, "culpa-llamacpp", "--ctx-size", "1024")
    assert not (tmp_path / FILE).exists()


def test_a_model_that_is_not_here_keeps_nothing(tmp_path: Path) -> None:
    _keep(tmp_path, "vllm", "serve", "no-such/model", "-pp", "3")
    assert not (tmp_path / FILE).exists()


def test_what_is_kept_already_stays(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    _keep(tmp_path, *LAB)
    assert (tmp_path / FILE).read_text() == "{}"
