"""experiment.json: the agreed keys, a schema that is kept, nothing that is no JSON."""

import json
import os
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from tests.report.cases import CASES, incident, isolated, no_failure

import culpa.report
from culpa.model import Outcome
from culpa.report.json_report import experiment_json
from culpa.report.schema import ExperimentDocument, json_schema

AGREED = [
    "schema",
    "outcome",
    "signature",
    "baseline",
    "factors",
    "findings",
    "other_failures",
    "trials",
    "not_excluded",
    "commands",
    "elapsed_seconds",
]
SCHEMA_FILE = Path(culpa.report.__file__).parent / "experiment.schema.json"


@pytest.mark.parametrize("case", CASES)
def test_document_has_the_agreed_keys_first_and_validates(case: str) -> None:
    document = json.loads(experiment_json(CASES[case]()))
    assert list(document)[: len(AGREED)] == AGREED
    assert document["schema"] == "culpa.experiment/1"
    ExperimentDocument.model_validate(document)


def test_schema_file_is_the_one_generated_from_the_models() -> None:
    text = json.dumps(json_schema(), indent=2) + "\n"
    if os.environ.get("CULPA_UPDATE_GOLDEN") == "1":
        SCHEMA_FILE.write_text(text, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("case", CASES)
def test_same_experiment_gives_the_same_bytes(case: str) -> None:
    assert experiment_json(CASES[case]()) == experiment_json(CASES[case]())


def test_finding_carries_counts_by_factor_name() -> None:
    (finding,) = json.loads(experiment_json(isolated()))["findings"]
    assert finding["level"] == "isolated"
    assert finding["probability"] == 0.9791
    assert finding["sufficient"] == {"failed": 2, "trials": 2}
    assert finding["necessary"] == {
        "execution": {"failed": 0, "trials": 1},
        "pipeline_parallel_size": {"failed": 0, "trials": 1},
    }
    assert [member["name"] for member in finding["factors"]] == ["execution", "pipeline_parallel_size"]


def test_left_out_factors_are_untested_without_levels() -> None:
    factors = {part["name"]: part for part in json.loads(experiment_json(isolated()))["factors"]}
    assert factors["cuda_graph_mode"] == {
        "name": "cuda_graph_mode",
        "suspect": None,
        "safe": None,
        "status": "untested",
        "reason": "this build has no CUDA graphs",
    }


def test_factors_that_the_search_never_judged_are_untested() -> None:
    factors = json.loads(experiment_json(no_failure()))["factors"]
    assert {part["status"] for part in factors} == {"untested"}
    assert "execution" in {part["name"] for part in factors}


def test_without_commands_both_are_null() -> None:
    commands = json.loads(experiment_json(no_failure()))["commands"]
    assert commands["failing"] is None
    assert commands["passing"] is None


@pytest.mark.parametrize("number", [nan, inf, -inf])
def test_numbers_that_are_not_finite_become_null(number: float) -> None:
    base = isolated()
    broken = replace(base.trials[0], seconds=number, start_seconds=number, verdict_delay_seconds=number)
    text = experiment_json(replace(base, elapsed_seconds=number, trials=(broken, *base.trials[1:])))
    assert "NaN" not in text
    assert "Infinity" not in text
    document = json.loads(text)
    assert document["elapsed_seconds"] is None
    assert document["trials"][0]["seconds"] is None


def test_secrets_in_launch_and_commands_are_redacted() -> None:
    text = experiment_json(incident())
    assert "sk-abcdefgh12345678" not in text
    assert "hf_abcdefghijklmnop" not in text
    assert json.loads(text)["launch"]["env"]["HF_TOKEN"] == "[redacted]"


def test_name_of_a_variable_alone_makes_its_value_a_secret() -> None:
    base = isolated()
    launch = base.launch.with_variable("SERVICE_PASSWORD", "correct horse")
    assert "correct" not in experiment_json(replace(base, launch=launch))


def test_text_is_plain_ascii_whatever_a_log_holds() -> None:
    base = isolated()
    hostile = replace(base, notes=("\x1b[31m\x9b2J\u202e\ud800 \u4f60\u597d",))
    assert experiment_json(hostile).isascii()


def test_every_arm_that_passed_says_what_it_ran_and_which_rates_that_excludes() -> None:
    experiment = isolated()
    document = json.loads(experiment_json(experiment))
    trials = {trial["id"]: trial for trial in document["trials"]}
    failed = [trial["levels"] for trial in document["trials"] if trial["outcome"] == "fail"]
    assert document["passing_arms"]
    for arm in document["passing_arms"]:
        own = [trials[number] for number in arm["trials"]]
        assert {trial["outcome"] for trial in own} == {"pass"}
        assert arm["levels"] not in failed
        assert arm["requests"] == sum(trial["requests"] for trial in own)
        assert arm["excluded_launch_rate_95"] == pytest.approx(1 - 0.05 ** (1 / len(own)), abs=1e-6)
        assert arm["excluded_request_rate_95"] == pytest.approx(1 - 0.05 ** (1 / arm["requests"]), abs=1e-6)


def test_an_arm_that_failed_once_excludes_nothing() -> None:
    experiment = isolated()
    again = [replace(trial, id=trial.id + 100, outcome=Outcome.FAIL) for trial in experiment.trials]
    document = json.loads(experiment_json(replace(experiment, trials=(*experiment.trials, *again))))
    assert document["passing_arms"] == []
