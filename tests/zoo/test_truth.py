"""Where a known fault begins, by the schedule alone: layer by stage and kind, step by a rule."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.guard.test_locate import watched
from tests.report.blocks import PAIR
from tests.report.cases import isolated

from culpa.locate import located
from culpa.model import Outcome
from culpa.model.guard import Violation
from culpa.model.zoo import KnownPlace
from culpa.truth import RULES, BadSchedule, begins, right
from culpa.zoo import known_faults, score

HEAD = {
    "block_size": 16,
    "capture_sizes": [1, 2],
    "partition": [3, 5],
    "groups": [
        {"kind": "linear_attention", "layers": [0, 4]},
        {"kind": "linear_attention", "layers": [1, 5]},
        {"kind": "linear_attention", "layers": [2, 6]},
        {"kind": "full_attention", "layers": [3, 7]},
    ],
}


def segment(**fields: Any) -> dict[str, Any]:
    usual = {"request": "a", "generation": 0, "start": 0, "count": 16, "decode": False, "source": "none"}
    return {**usual, "states": [8, 9, 10], "last": 11, **fields}


DECODE = segment(start=20, count=1, decode=True, source="own")


def step(number: int, *segments: dict[str, Any], unmap: tuple[int, ...] = ()) -> dict[str, Any]:
    return {"step": number, "segments": list(segments), "unmap": list(unmap)}


def schedule(folder: Path, *steps: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in (HEAD, *steps))
    (folder / "schedule.jsonl").write_text(text, encoding="ascii")
    return folder


PLAIN = segment()
CASES = {
    "first step": PLAIN,
    "first piece that continues a prompt": segment(start=16, source="own"),
    "first piece that begins at a block boundary": segment(start=32, source="none"),
    "first batch of several": (DECODE, DECODE),
    "first batch of four": (DECODE,) * 4,
    "first batch beyond what is captured": (DECODE,) * 3,
    "first prefix hit": segment(start=16, source="cache"),
    "first request in a block that was used before": segment(states=[8, 20, 21]),
    "first step whose request loses its last block": DECODE,
    "first step of more than 512 tokens": segment(count=513),
    "first return of a preempted request": segment(generation=1),
}


def test_there_is_a_case_for_every_rule_and_a_rule_for_every_fault() -> None:
    assert set(CASES) == set(RULES)
    assert {place.step for fault in known_faults() for place in fault.located} == set(RULES)


@pytest.mark.parametrize("rule", [rule for rule in CASES if rule != "first step"])
def test_a_rule_finds_the_first_step_that_fits(rule: str, tmp_path: Path) -> None:
    fits = CASES[rule]
    segments = fits if isinstance(fits, tuple) else (fits,)
    unmap = (11,) if "loses" in rule else ()
    folder = schedule(
        tmp_path, step(1, PLAIN), step(2, *segments, unmap=unmap), step(3, *segments, unmap=unmap)
    )
    place = KnownPlace("state_not_finite", "PP0", "first linear_attention", rule)
    assert begins(place, folder) == ("model.layers.0.linear_attn", 2)


@pytest.mark.parametrize(
    ("stage", "layer", "name"),
    [
        ("PP0", "first linear_attention", "model.layers.0.linear_attn"),
        ("PP0", "second linear_attention", "model.layers.1.linear_attn"),
        ("PP1", "first", "model.layers.3.self_attn"),
        ("PP1", "first linear_attention", "model.layers.4.linear_attn"),
        ("PP1", "first full_attention", "model.layers.3.self_attn"),
    ],
)
def test_a_layer_is_found_by_its_stage_and_kind(stage: str, layer: str, name: str, tmp_path: Path) -> None:
    place = KnownPlace("bind_mismatch", stage, layer, "first step")
    assert begins(place, schedule(tmp_path, step(1, PLAIN)))[0] == name


def test_the_layer_may_be_that_of_the_group_whose_block_was_used_before(tmp_path: Path) -> None:
    rule = "first request in a block that was used before"
    place = KnownPlace("freed_state_read", "PP0", "first linear_attention of such a block", rule)
    folder = schedule(tmp_path, step(1, PLAIN), step(2, segment(states=[20, 9, 21])))
    assert begins(place, folder) == ("model.layers.1.linear_attn", 2)


@pytest.mark.parametrize("field", ["kind", "stage", "layer", "step"])
def test_all_four_have_to_be_right(field: str, tmp_path: Path) -> None:
    place = KnownPlace("bind_mismatch", "PP0", "first", "first step")
    folder = schedule(tmp_path, step(1, PLAIN))
    seen = Violation("bind_mismatch", stage="PP0", layer="model.layers.0.linear_attn", step=1)
    assert right(place, seen, folder)
    wrong: dict[str, Any] = {field: 2 if field == "step" else "another"}
    assert not right(place, replace(seen, **wrong), folder)


def test_a_schedule_that_is_not_there_or_never_fits_says_so(tmp_path: Path) -> None:
    place = KnownPlace("bind_mismatch", "PP0", "first", "first batch of four")
    with pytest.raises(BadSchedule):
        begins(place, tmp_path)
    with pytest.raises(BadSchedule, match="no first batch of four"):
        begins(place, schedule(tmp_path, step(1, PLAIN)))


def test_a_run_is_scored_by_where_its_finding_begins(tmp_path: Path) -> None:
    trial = watched(tmp_path, 9, PAIR, Outcome.FAIL, "bind_mismatch")
    out = schedule(
        tmp_path / trial.folder / "guard", step(1, PLAIN), step(2, segment(start=16, source="own"))
    )
    seen = {
        "kind": "bind_mismatch",
        "stage": 1,
        "layer": "model.layers.4.linear_attn",
        "step": 2,
        "time": 1.0,
    }
    (out / "guard-1.jsonl").write_text(json.dumps({"event": "violation", **seen}) + "\n")
    experiment = isolated()
    trials = (*experiment.trials, trial)
    conclusion, guarded = located(experiment.conclusion, trials, experiment.factors, tmp_path)
    experiment = replace(
        experiment, conclusion=conclusion, guarded=guarded, trials=trials, folder=str(tmp_path)
    )
    members = tuple(member.name for member in conclusion.findings[0].members)
    place = KnownPlace(
        "bind_mismatch", "PP1", "first linear_attention", "first piece that continues a prompt"
    )
    fault = replace(known_faults()[0], expected=(members,), located=(place,))
    assert score(fault, experiment).located_right is True
    assert score(replace(fault, located=(replace(place, stage="PP0"),)), experiment).located_right is False
    assert score(replace(fault, located=()), experiment).located_right is False
    assert score(fault, isolated()).located_right is False
    assert score(replace(fault, located=()), isolated()).located_right is None
    assert score(fault, experiment).trials == len(isolated().trials)
