"""A whole worker under watch, with either runner, without torch: what it is given is checked before it is used."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.guard_core import fake_vllm as fake
from tests.guard_core.fake_vllm import Worker, cache_config, metadata, output

from culpa_guard import GuardViolation, Settings
from culpa_guard.vllm.attach import wrap_worker

RIGHT = metadata((1, 2), [3, 4], list(range(12, 20)), fresh=True)
FIRST = output("r", [[0, 1], [0, 2], [3, 4]], 0, 8, new=True)


@pytest.fixture(params=[False, True], ids=["first runner", "second runner"])
def worker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Worker:
    made = Worker(second=request.param)
    fake.install(monkeypatch, made)
    return made


def watch(worker: Worker, folder: Path, mode: str = "log", pages: int = 0) -> Worker:
    wrap_worker(worker, Settings(mode, 1, folder, pages))
    assert worker.initialize_from_config(cache_config()) == "bound"
    return worker


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.jsonl")
    return [
        event for event in map(json.loads, path.read_text("ascii").splitlines()) if event["event"] == kind
    ]


def test_a_right_step_is_silent_and_the_answer_is_the_workers(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path).given = RIGHT
    assert worker.execute_model(FIRST) == "answer"
    worker.given = metadata((5, 6), [3, 4, 7], [28], fresh=False)
    assert worker.execute_model(output("r", [[5], [6], [7]], 8, 1, new=False)) == "answer"
    assert events(tmp_path, "violation") == events(tmp_path, "guard_error") == []
    (start,) = events(tmp_path, "start")
    assert {"block_tables", "slot_mappings", "state_indices", "bindings"} <= set(start["checks"])


def test_wrong_numbers_are_named(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path).given = metadata((1, 9), [3, 5], [*range(12, 19), 21], fresh=True)
    worker.execute_model(FIRST)
    found = {(one["kind"], one["layer"], one["group"], one["step"]) for one in events(tmp_path, "violation")}
    assert found == {
        ("state_index_not_scheduled", "s1", 1, 1),
        ("block_not_owned", "f", 2, 1),
        ("slot_mapping_mismatch", "f", 2, 1),
    }


def test_raise_mode_stops_before_the_model_runs(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path, "raise").given = metadata((1, 1 << 20), [3, 4], list(range(12, 20)), fresh=True)
    with pytest.raises(GuardViolation, match="state_index_out_of_range"):
        worker.execute_model(FIRST)
    assert worker.ran == 0


def test_layers_bound_to_each_others_place_stop_the_start_in_raise_mode(
    worker: Worker, tmp_path: Path
) -> None:
    part = worker.layers["s0"].kv_cache[0]
    worker.layers["s0"].kv_cache = (part[1:],)
    wrap_worker(worker, Settings("raise", 1, tmp_path))
    with pytest.raises(GuardViolation, match="bind_mismatch"):
        worker.initialize_from_config(cache_config())


def test_metadata_of_an_unknown_class_are_left_out_and_the_rest_goes_on(
    worker: Worker, tmp_path: Path
) -> None:
    watch(worker, tmp_path).given = {**metadata((1, 9), [3, 4], [], fresh=True), "f": SimpleNamespace(page=1)}
    assert worker.execute_model(FIRST) == "answer"
    assert [one["kind"] for one in events(tmp_path, "violation")] == ["state_index_not_scheduled"]
    assert {one["check"] for one in events(tmp_path, "left_out")} == {
        "block_tables:group_2",
        "slot_mappings:group_2",
    }


def test_an_output_of_an_unknown_form_never_reaches_the_engine_as_an_error(
    worker: Worker, tmp_path: Path
) -> None:
    watch(worker, tmp_path).given = RIGHT
    strange = output("r", [[0, 1], [0, 2], [3, 4]], 0, 8, new=True)
    del strange.scheduled_cached_reqs
    for _ in range(2):
        assert worker.execute_model(strange) == "answer"
    assert len(events(tmp_path, "guard_error")) == 1
    assert events(tmp_path, "violation") == []


def test_a_cache_that_is_bound_anew_is_told_once(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path).given = RIGHT
    layer = worker.layers["s1"]
    layer.kv_cache = tuple(fake.Tensor(part.array.copy()) for part in layer.kv_cache)
    worker.execute_model(FIRST)
    told = events(tmp_path, "violation")
    assert {(one["kind"], one["layer"]) for one in told} == {("captured_pointer_stale", "s1")}
    worker.execute_model(FIRST)
    assert len(events(tmp_path, "violation")) == len(told)


def test_a_byte_that_nobody_should_have_written_is_found(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path, pages=2 * fake.BLOCKS).given = RIGHT
    worker.execute_model(FIRST)

    def scribble() -> None:
        worker.layers["f"].kv_cache.array[9, 3] = 1.0

    worker.work = scribble
    worker.execute_model(FIRST)
    worker.work = lambda: None
    worker.execute_model(FIRST)
    assert {(one["kind"], one["block"]) for one in events(tmp_path, "violation")} == {
        ("page_changed_without_write", 9)
    }


def test_a_page_of_a_waiting_request_is_named_with_its_owner(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path, pages=fake.BLOCKS).given = RIGHT
    worker.execute_model(FIRST)
    worker.given = metadata((5, 6), [7], [28, 29], fresh=True)
    worker.work = lambda: np.put(worker.layers["f"].kv_cache.array[3], 5, 1.0)
    worker.execute_model(output("q", [[5], [6], [7]], 0, 2, new=True))
    worker.work = lambda: None
    worker.given = metadata((5, 6), [7], [30], fresh=False)
    worker.execute_model(output("q", None, 2, 1, new=False))
    (found,) = events(tmp_path, "violation")
    assert (found["kind"], found["block"], found["request"]) == ("page_changed_without_write", 3, "r")
    assert (found["layer"], found["layer_type"], found["group"]) == ("f", "full_attention", 2)
    assert "s0, s1, f" in found["detail"]


def test_a_call_without_tokens_is_no_step(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path).given = RIGHT
    worker.execute_model(FIRST)
    news = output("r", None, 8, 0, new=False)
    news.num_scheduled_tokens, news.finished_req_ids = {}, {"r"}
    worker.execute_model(news)
    worker.given = metadata((3, 9), [1, 2], list(range(4, 12)), fresh=True)
    worker.execute_model(output("q", [[0, 3], [0, 4], [1, 2]], 0, 8, new=True))
    (found,) = [one for one in events(tmp_path, "violation") if one["request"] == "q"]
    assert (found["kind"], found["step"], found["layer"]) == ("state_index_not_scheduled", 2, "s1")


def test_what_lies_behind_a_state_in_its_page_must_not_change(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path, pages=1).given = metadata((1, 2), [3, 4], list(range(12, 20)), fresh=True)
    worker.execute_model(FIRST)
    worker.work = lambda: np.put(worker.layers["f"].kv_cache.array[2], 13, 1.0)
    worker.execute_model(FIRST)
    (found,) = events(tmp_path, "violation")
    assert (found["kind"], found["layer"], found["block"], found["request"]) == (
        "red_zone_changed",
        "s1",
        2,
        "r",
    )


def test_addresses_that_kernels_captured_are_compared_with_what_is_bound(
    worker: Worker, tmp_path: Path
) -> None:
    watch(worker, tmp_path).given = RIGHT
    bound = [worker.layers[name].kv_cache[0].data_ptr() for name in ("s0", "s1")]
    captured = fake.Tensor(np.array([bound[0], bound[1] + 64]))
    worker.model_runner._mamba_bufs = SimpleNamespace(
        postprocess_align=SimpleNamespace(
            state_base_addrs=captured, is_initialized=True, mamba_group_ids=[0, 1]
        )
    )
    worker.execute_model(FIRST)
    (found,) = events(tmp_path, "violation")
    assert (found["kind"], found["layer"], found["found"]) == ("captured_pointer_stale", "s1", hex(bound[1]))
    assert "kernels" in found["detail"]


@pytest.mark.parametrize("setting", ["kv_transfer_config", "speculative_config"])
def test_contents_are_left_out_where_others_write_pages(worker: Worker, tmp_path: Path, setting: str) -> None:
    setattr(worker.vllm_config, setting, object())
    watch(worker, tmp_path, pages=4)
    (start,) = events(tmp_path, "start")
    assert {"pages", "prefix_states", "finite", "red_zones"} <= {one["check"] for one in start["left_out"]}


def test_the_last_summary_is_written_when_the_worker_shuts_down(worker: Worker, tmp_path: Path) -> None:
    watch(worker, tmp_path).given = RIGHT
    worker.execute_model(FIRST)
    assert worker.shutdown() == "down"
    last = events(tmp_path, "summary")[-1]
    assert (last["steps"], last["requests"], last["violations"]) == (1, 1, 0)
