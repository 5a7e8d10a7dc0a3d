"""Faults with a known answer: how the table is read, and how a run is compared with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.cases import isolated

from culpa.cli.app import _run
from culpa.model import Conclusion, ExperimentOutcome, Signature
from culpa.model.options import IsolateOptions
from culpa.model.zoo import KnownFault, ZooResult
from culpa.store import BadRunFolder
from culpa.zoo import asked, check_room, command, parse_faults, score

TABLE = """
[[fault]]
name = "stale"
title = "a stale binding"
mechanism = "a captured call keeps its buffer"
condition = "execution == eager and pipeline_parallel_size > 1"
expected = [["execution", "pipeline_parallel_size"]]
symptom = "assertion"
rank = "PP1"
argv = ["-pp", "3"]
env = { VLLM_PP_LAYER_PARTITION = "23,23,18" }
rate = 0.5
probe_tokens = 9000
arms = ["eager"]
reports = ["https://example.org/1"]
"""


def fault() -> KnownFault:
    return parse_faults(TABLE)[0]


def test_the_launch_has_the_environment_in_front_and_the_fault_with_its_rate_behind() -> None:
    words = command(fault())
    assert words[0] == "VLLM_PP_LAYER_PARTITION=23,23,18"
    assert words[2:] == ("-m", "culpa_lab", "serve", "-pp", "3", "--fault", "stale:0.5")


def test_the_arms_of_the_table_are_left_out_where_only_the_search_is_measured() -> None:
    options = IsolateOptions(probe_tokens=None)
    assert asked(fault(), options).arms == ("eager",)
    assert asked(fault(), options, with_arms=False).arms == ()
    assert asked(fault(), options).options.probe_tokens == 9000
    assert asked(fault(), replace(options, probe_tokens=500)).options.probe_tokens == 500


def test_an_unknown_key_of_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="fault stale: unknown key colour"):
        parse_faults(TABLE + 'colour = "red"\n')


def test_a_run_that_found_the_expected_set_and_rank_is_exact() -> None:
    experiment = isolated()
    assert experiment.hunted is not None
    result = score(replace(fault(), symptom=experiment.hunted.symptom), experiment)
    assert result.exact
    assert result.symptom_right
    assert result.rank_right
    assert result.found == (("execution", "pipeline_parallel_size"),)
    assert result.bound is not None
    assert 4 < result.bound < 14


def test_a_set_with_one_factor_too_many_is_not_exact() -> None:
    experiment = isolated()
    wider = replace(fault(), expected=(("execution",),))
    assert not score(wider, experiment).exact


def test_a_run_without_a_finding_is_not_exact() -> None:
    conclusion = Conclusion(ExperimentOutcome.INCONCLUSIVE)
    result = score(fault(), replace(isolated(), conclusion=conclusion))
    assert not result.exact
    assert result.found == ()


def test_another_rank_than_that_of_the_table_is_wrong_and_no_rank_in_the_table_is_no_question() -> None:
    other = replace(isolated(), hunted=Signature("assertion", "worker", "PP2"))
    assert score(fault(), other).rank_right is False
    assert score(replace(fault(), rank=None), other).rank_right is None


def test_a_factor_that_is_not_varied_leaves_the_bound_open() -> None:
    unknown = replace(fault(), expected=(("nowhere",),))
    assert score(unknown, isolated()).bound is None


def test_an_interrupted_zoo_ends_with_what_was_found_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked_for: list[str] = []

    def isolate_one(known: KnownFault, _out: Path | None, **_: object) -> ZooResult | None:
        asked_for.append(known.name)
        return score(known, isolated()) if len(asked_for) == 1 else None

    monkeypatch.setattr("culpa.zoo.isolate_fault", isolate_one)
    assert _run(["bench", "zoo", "--json"]) == 130
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert len(asked_for) == 2


def test_a_folder_that_holds_a_run_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    (tmp_path / "stale").mkdir()
    check_room((fault(),), tmp_path)
    (tmp_path / "stale" / "journal.jsonl").touch()
    with pytest.raises(BadRunFolder, match="already holds a run of stale"):
        check_room((fault(),), tmp_path)
