"""The reference engine's guard: silent where the engine is right, else right about what, where and when."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.lab.engine.engines import Prompt, answer, engine, prompt, right
from tests.lab.engine.test_lab_faults import CASES, FOUR, SHORT, A, B, Case

from culpa_guard import GuardViolation
from culpa_lab.engine.errors import AcceleratorError, BadLaunch, OutOfMemoryError
from culpa_lab.guard import check_switch
from culpa_lab.guard.plant import FAULTS as PLANTS

Line = dict[str, Any]


@dataclass
class Seen:
    """What the guard wrote, and what the schedule was."""

    lines: list[Line] = field(default_factory=list)
    schedule: list[Line] = field(default_factory=list)
    right: bool = False

    def of(self, event: str) -> list[Line]:
        return [line for line in self.lines if line["event"] == event]

    @property
    def first(self) -> Line:
        return min(self.of("violation"), key=lambda line: (line["step"], line["time"]))


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs an engine with its guard on."""
    runs = 0

    def run(
        settings: dict[str, Any],
        rounds: Sequence[Sequence[Prompt]],
        length: int = 8,
        plant: str = "",
        mode: str = "log",
    ) -> Seen:
        nonlocal runs
        runs += 1
        folder = tmp_path / str(runs)
        monkeypatch.setenv("CULPA_GUARD", mode)
        monkeypatch.setenv("CULPA_GUARD_OUT", str(folder))
        monkeypatch.setenv("CULPA_GUARD_PAGES", "2")
        monkeypatch.setenv("CULPA_GUARD_PLANT", plant)
        seen = Seen()
        core = engine(**settings)
        try:
            seen.right = right(answer(core, rounds, length), rounds)
        except (AcceleratorError, GuardViolation, OutOfMemoryError):
            seen.right = False
        for stage in core._executor.stages:  # type: ignore[attr-defined]
            stage.watch.idle()
        seen.lines = [
            json.loads(line)
            for path in folder.glob("guard-*.jsonl")
            for line in path.read_text(encoding="ascii").splitlines()
        ]
        schedule = (folder / "schedule.jsonl").read_text(encoding="ascii").splitlines()
        seen.schedule = [json.loads(line) for line in schedule][1:]
        return seen

    return run


HEALTHY: Sequence[tuple[str, dict[str, Any], Sequence[Sequence[Prompt]]]] = (
    ("one stage, chunked, warm and concurrent", {}, [[A], [A], [B, A, SHORT, SHORT]]),
    ("three stages", {"partition": (3, 3, 2)}, [[A], [A], FOUR, [B]]),
    ("two stages, eager", {"partition": (3, 5), "enforce_eager": True}, [[A, B], [A], FOUR]),
    ("no prefix caching", {"enable_prefix_caching": False, "partition": (4, 4)}, [[A], FOUR, [A]]),
    (
        "blocks used again",
        {"enable_prefix_caching": False, "num_gpu_blocks_override": 24},
        [[SHORT]] * 8,
    ),
    ("states without copies", {"mamba_cache_mode": "none"}, [[A], [A], FOUR]),
    ("synchronous scheduling", {"async_scheduling": False, "partition": (3, 3, 2)}, [[A, B], [A]]),
    ("preempted requests", {"num_gpu_blocks_override": 28}, [[A, B, prompt(90, 7)], [A], [B]]),
    ("more at once than is captured", {"capture_sizes": (1, 2)}, [FOUR, FOUR]),
)


@pytest.mark.parametrize(("launch", "rounds"), [h[1:] for h in HEALTHY], ids=[h[0] for h in HEALTHY])
def test_a_right_engine_is_right_under_the_guard_and_nothing_is_reported(
    launch: dict[str, Any], rounds: Sequence[Sequence[Prompt]], guarded: Any
) -> None:
    seen = guarded(launch, rounds)
    assert seen.right
    assert not seen.of("violation")
    assert not seen.of("guard_error")
    assert sum(line["checked"].get("lineage", 0) for line in seen.of("summary")) > 0
    assert {line["stage"] for line in seen.of("start")} == set(range(len(launch.get("partition", (8,)))))


def pieces(line: Line) -> list[Line]:
    return [one for one in line["segments"] if not one["decode"]]


def decodes(line: Line) -> int:
    return sum(one["decode"] for one in line["segments"])


@dataclass(frozen=True)
class Truth:
    """Where a fault begins, by its mechanism: the first step of the schedule for which `when` is true."""

    kind: str
    stage: int
    layer: str
    when: Any


def reused(line: Line, before: list[Line]) -> bool:
    """A request begins in a block that warm-up or an earlier request has written."""
    written = {1, 2, 3, 4}
    for other in before:
        for one in other["segments"]:
            written |= {*one["states"], one["last"]}
    return any(one["start"] == 0 and written & set(one["states"]) for one in line["segments"])


GDN0, GDN1 = "model.layers.0.linear_attn", "model.layers.1.linear_attn"
TRUTH = {
    "incident": Truth(
        "captured_pointer_stale",
        1,
        "model.layers.4.linear_attn",
        lambda line, _: any(one["start"] > 0 for one in pieces(line)),
    ),
    "bucket-overflow": Truth("state_index_not_scheduled", 0, GDN0, lambda line, _: decodes(line) > 2),
    "prefix-state-not-restored": Truth(
        "prefix_state_mismatch",
        0,
        GDN0,
        lambda line, _: any(one["source"] == "cache" for one in pieces(line)),
    ),
    "state-not-cleared": Truth("freed_state_read", 0, GDN0, reused),
    "group-off-by-one": Truth(
        "metadata_shared_across_groups", 1, "model.layers.3.self_attn", lambda line, _: True
    ),
    "chunk-ends-on-block": Truth(
        "initial_state_mismatch",
        0,
        GDN0,
        lambda line, _: any(one["start"] and one["start"] % 16 == 0 for one in pieces(line)),
    ),
    "freed-two-steps-early": Truth(
        "block_not_owned",
        0,
        "model.layers.3.self_attn",
        lambda line, _: any(one["last"] in line["unmap"] for one in line["segments"]),
    ),
    "shared-group-metadata": Truth(
        "metadata_shared_across_groups", 0, GDN1, lambda line, _: decodes(line) > 1
    ),
    "race-hidden-by-blocking": Truth(
        "handover_mismatch",
        1,
        "model.layers.4.linear_attn",
        lambda line, _: sum(one["count"] for one in line["segments"]) > 512,
    ),
    "concurrency-4-only": Truth("state_index_not_scheduled", 0, GDN0, lambda line, _: decodes(line) == 4),
    "nan": Truth("state_not_finite", 0, GDN0, lambda line, _: True),
    "since-build-37": Truth(
        "prefix_state_mismatch",
        0,
        GDN0,
        lambda line, _: any(one["source"] == "cache" for one in pieces(line)),
    ),
    "eager-only": Truth("state_index_not_scheduled", 0, GDN0, lambda line, _: decodes(line) > 1),
    "continued-on-block": Truth(
        "block_not_owned",
        0,
        "model.layers.3.self_attn",
        lambda line, _: any(one["source"] == "cache" for one in pieces(line)),
    ),
    "preempted-state": Truth(
        "freed_state_read", 0, GDN0, lambda line, _: any(one["generation"] > 0 for one in pieces(line))
    ),
}


@pytest.mark.parametrize("case", [c for c in CASES if c.fault in TRUTH], ids=lambda case: case.fault)
def test_a_state_fault_is_located_where_and_when_it_begins(case: Case, guarded: Any) -> None:
    truth = TRUTH[case.fault]
    armed = {"faults": ((case.fault, 1.0),), "armed": (case.fault,)}
    seen = guarded({**case.launch, **armed}, case.rounds, case.length)
    first = seen.first
    earlier = iter(range(len(seen.schedule)))
    step = next(
        line["step"] for number, line in zip(earlier, seen.schedule, strict=True)
        if truth.when(line, seen.schedule[:number])
    )  # fmt: skip
    assert (first["kind"], first["stage"], first["layer"]) == (truth.kind, truth.stage, truth.layer)
    assert first["step"] == step
    assert not seen.of("guard_error")


def test_what_the_stage_comes_to_first_is_named_first(guarded: Any) -> None:
    armed = {"faults": (("incident", 1.0),), "armed": ("incident",)}
    seen = guarded({"partition": (2, 6), **armed}, [[A]])
    assert seen.first["layer"] == "model.layers.2.linear_attn"
    assert seen.first["group"] == 2


def test_a_fault_that_is_none_of_state_or_binding_violates_nothing(guarded: Any) -> None:
    (case,) = [case for case in CASES if case.fault == "oom-like-incident"]
    armed = {"faults": ((case.fault, 1.0),), "armed": (case.fault,)}
    seen = guarded({**case.launch, **armed}, case.rounds, case.length)
    assert not seen.right
    assert not seen.of("violation")


THREE = {"partition": (3, 3, 2)}
PLANTED: Sequence[tuple[str, set[str], dict[str, Any], Sequence[Sequence[Prompt]]]] = (
    ("swap_bindings", {"bind_mismatch"}, {}, [[A]]),
    ("state_index", {"state_index_not_scheduled"}, THREE, [[A]]),
    ("state_index:after=90", {"state_index_not_scheduled"}, THREE, [[A]]),
    ("state_out_of_range", {"state_index_out_of_range"}, THREE, [[A]]),
    ("foreign_state", {"state_index_not_scheduled", "state_index_not_unique"}, THREE, [FOUR]),
    ("foreign_block", {"block_not_owned"}, {}, [[A]]),
    ("block_out_of_range", {"block_out_of_range"}, {}, [[A]]),
    ("slot_offset", {"slot_mapping_mismatch"}, {}, [[A]]),
    ("shared_metadata", {"metadata_shared_across_groups"}, {}, [[A]]),
    ("shared_buffer", {"metadata_shared_across_groups", "state_index_not_scheduled"}, {}, [[A]]),
    ("stale_pointer", {"captured_pointer_stale"}, THREE, [[A]]),
    ("handover", {"handover_mismatch"}, THREE, [[A]]),
    ("scribble", {"page_changed_without_write"}, {}, [[A]]),
    ("red_zone", {"red_zone_changed"}, {}, [[A]]),
    ("nan_state", {"state_not_finite"}, {}, [[A]]),
    ("not_cleared", {"freed_state_read"}, {}, [[A]]),
    ("initial_state", {"initial_state_mismatch"}, {}, [[A]]),
    ("stored_state", {"prefix_state_mismatch"}, {}, [[A], [A]]),
)


def test_every_fault_that_can_be_planted_is_planted_here() -> None:
    assert {name.split(":")[0] for name, *_ in PLANTED} == set(PLANTS)


@pytest.mark.parametrize(("plant", "kinds", "launch", "rounds"), PLANTED, ids=[one[0] for one in PLANTED])
def test_a_planted_fault_is_the_first_thing_that_is_reported(
    plant: str, kinds: set[str], launch: dict[str, Any], rounds: Sequence[Sequence[Prompt]], guarded: Any
) -> None:
    seen = guarded(launch, rounds, plant=plant)
    (planted, *_) = seen.of("planted")
    assert planted["fault"] == plant.split(":")[0]
    assert seen.first["kind"] in kinds
    assert seen.first["step"] >= planted["step"]


def test_raising_ends_the_engine_before_the_step_that_would_be_wrong(guarded: Any) -> None:
    seen = guarded(THREE, [[A]], plant="state_out_of_range", mode="raise")
    assert len(seen.of("violation")) == 1
    assert not seen.right


def test_every_third_step_is_checked_if_that_is_asked_for(guarded: Any) -> None:
    seen = guarded({}, [[A]], length=12, mode="sample:3")
    summary = seen.of("summary")[-1]
    every = guarded({}, [[A]], length=12).of("summary")[-1]
    assert summary["steps"] == every["steps"]
    assert 0 < summary["checked"].get("lineage", 0) <= every["checked"]["lineage"] / 2


def test_a_planted_fault_that_there_is_not_is_refused_in_one_line() -> None:
    with pytest.raises(BadLaunch, match="CULPA_GUARD_PLANT=nonsense: there are swap_bindings"):
        check_switch({"CULPA_GUARD": "log", "CULPA_GUARD_PLANT": "nonsense"})
    with pytest.raises(BadLaunch, match="none of log, raise"):
        check_switch({"CULPA_GUARD": "loud"})
