"""vLLM's own planning code, asked for the same numbers: one process, hundreds of random models, no difference."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.layout.random_models import FAMILIES, random_plans
from tests.layout.shapes import incident_plan

from culpa.engines import vllm_planner
from culpa.engines.vllm_planner import NoEngine, case_of, choose_python, differences, verify

CHILD = Path(vllm_planner.__file__).parent / "vllm_planner_child.py"


@pytest.mark.engine
def test_no_difference_from_the_engine_for_random_models_partitions_and_memories(vllm_python: str) -> None:
    special = [
        incident_plan((23, 23, 18), blocks=492),
        incident_plan((24, 24, 16), blocks=452),
        incident_plan((23, 23, 18), gpu_memory=(32 << 30,)),
        incident_plan((2, 60, 2), blocks=492),
        incident_plan((64, 0, 0), blocks=492),
        incident_plan((1, 1, 62), kv_memory=(1 << 34,), speculative_tokens=3, speculative_method="mtp"),
        incident_plan(None, kv_memory=(1 << 33, 1 << 34, 1 << 35), max_model_len=-1, tensor_parallel_size=4),
    ]
    plans = [*special, *random_plans(300, seed=20261201)]
    assert {plan.shape.model_type for plan in plans} >= set(FAMILIES)
    assert sum(plan.refusal is None for plan in plans) >= 150
    answers = verify(plans, vllm_python)
    different = {index: answer.differences for index, answer in enumerate(answers) if answer.differences}
    assert different == {}
    assert answers[0].engine_version.startswith("0.32")


@pytest.mark.engine
def test_a_plan_that_is_wrong_differs_from_the_engine(vllm_python: str) -> None:
    """The check must be able to fail: the engine's answer for one split, held against the plan of another."""
    right, wrong = incident_plan((23, 23, 18), blocks=492), incident_plan((24, 24, 16), blocks=493)
    result = vllm_planner.ask([case_of(right, 0)], vllm_python)["results"][0]
    assert differences(right, result) == []
    told = " ".join(differences(wrong, result))
    assert all(word in told for word in ("stages:", "groups:", "blocks:", "capacity:", "storage:"))


def test_a_refusal_on_one_side_only_is_a_difference() -> None:
    good, bad = incident_plan(blocks=492), incident_plan(blocks=5)
    assert "the plan does not" in differences(good, {"id": 0, "error": "ValueError: too little"})[0]
    assert differences(bad, {"id": 0, "error": "ValueError: too little"}) == []
    assert "the engine takes it" in differences(bad, {"id": 0, "num_blocks": 5})[0]


def test_a_python_without_vllm_is_one_clear_line() -> None:
    with pytest.raises(NoEngine, match="vLLM can't be imported there"):
        verify([incident_plan(blocks=492)], sys.executable)


def test_a_program_that_is_no_python_is_one_clear_line() -> None:
    with pytest.raises(NoEngine, match="no such program"):
        choose_python("/nowhere/python", None)


def test_the_child_imports_nothing_of_culpa() -> None:
    text = CHILD.read_text(encoding="utf-8")
    assert "culpa" not in [
        line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import", "from"))
    ]
    done = subprocess.run(
        [sys.executable, "-P", str(CHILD)], input="[]", capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert "No module named 'vllm'" in done.stderr


def test_a_case_is_plain_json() -> None:
    for plan in random_plans(20, seed=3):
        case = case_of(plan, 7)
        assert json.loads(json.dumps(case))["id"] == 7
