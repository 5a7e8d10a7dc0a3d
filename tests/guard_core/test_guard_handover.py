"""Hand-overs between two stages: a checksum goes along, and is taken out before the engine sees it."""

import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.guard_core.fake_vllm import Tensor

from culpa_guard import Guard, Place, Settings
from culpa_guard.vllm.deferred import Fetcher
from culpa_guard.vllm.handover import KEY, Handover

TOKENS = 3


class Stage:
    """A pipeline group's sending and receiving, over a queue."""

    def __init__(self, wire: deque[dict[str, Any]], damage: Callable[[dict[str, Any]], None]) -> None:
        self._wire = wire
        self._damage = damage

    def isend_tensor_dict(self, tensors: dict[str, Any], all_gather_group: object = None) -> list[object]:
        self._wire.append({name: tensor.clone() for name, tensor in tensors.items()})
        return []

    def irecv_tensor_dict(
        self, all_gather_group: object = None
    ) -> tuple[dict[str, Any], list[Any], list[Any]]:
        tensors = self._wire.popleft()
        self._damage(tensors)
        return tensors, [], []


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = ModuleType("torch")
    made.uint8, made.int64 = np.uint8, np.int64
    made.tensor = lambda value, dtype: Tensor(np.array(value, dtype=dtype))
    made.zeros = lambda size, dtype, device=None: Tensor(np.zeros(size, dtype=np.int64))
    made.stack = lambda tensors: Tensor(np.stack([one.array for one in tensors]))
    made.cat = lambda tensors, dim=0: Tensor(np.concatenate([one.array for one in tensors], axis=dim))
    monkeypatch.setitem(sys.modules, "torch", made)


class Pair:
    """Two stages, each with its guard."""

    def __init__(self, folder: Path, damage: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.wire: deque[dict[str, Any]] = deque()
        self.folder = folder
        self.first, self.second = Stage(self.wire, damage), Stage(self.wire, damage)
        self.ends = [self._end(stage, rank) for rank, stage in enumerate((self.first, self.second))]

    def _end(self, stage: Stage, rank: int) -> Handover:
        guard = Guard(Settings("log", 1, self.folder), Place("vllm", "0", "worker", rank, rank))
        end = Handover(stage, Fetcher(SimpleNamespace(type="cpu")), guard)
        end.tokens = TOKENS
        return end

    def hand_over(self, tensors: dict[str, Any], **names: object) -> dict[str, Any]:
        """What the second stage's engine receives."""
        self.first.isend_tensor_dict(tensors, **names)
        received, _, postprocess = self.second.irecv_tensor_dict()
        for work in postprocess:
            work()
        return received

    def events(self, kind: str) -> list[dict[str, Any]]:
        paths = list(self.folder.glob("*.jsonl"))
        found = [json.loads(line) for path in paths for line in path.read_text("ascii").splitlines()]
        return [event for event in found if event["event"] == kind]


class Strange(Tensor):
    """Of a kind that has no bytes to be read."""

    def __getitem__(self, key: Any) -> Tensor:
        raise TypeError("no rows")


def hidden(rows: int = TOKENS, extra: float = 0.0) -> Tensor:
    values = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    values[TOKENS:] = extra
    return Tensor(values)


def test_a_right_hand_over_is_silent_and_the_engine_sees_only_its_own_tensors(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    received = pair.hand_over({"hidden": hidden(), "residual": hidden()})
    pair.ends[1].given(received)
    assert sorted(received) == ["hidden", "residual"]
    assert pair.events("violation") == pair.events("guard_error") == []


def test_what_changes_on_the_way_is_named_at_the_receiving_stage(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Any]) -> None:
        tensors["hidden"].array[1, 2] += 1

    pair = Pair(tmp_path, damage)
    pair.hand_over({"hidden": hidden(), "residual": hidden()})
    (found,) = pair.events("violation")
    assert (found["kind"], found["stage"]) == ("handover_mismatch", 1)
    assert found["detail"] == "hidden: what arrived"


def test_rows_that_change_places_are_not_the_same(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Any]) -> None:
        tensors["hidden"].array[[0, 1]] = tensors["hidden"].array[[1, 0]]

    pair = Pair(tmp_path, damage)
    pair.hand_over({"hidden": hidden()})
    assert len(pair.events("violation")) == 1


def test_what_changes_after_it_arrived_is_found_where_the_model_is_given_it(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    received = pair.hand_over({"hidden": hidden()})
    received["hidden"].array[0, 0] = -5
    pair.ends[1].given(received)
    (found,) = pair.events("violation")
    assert found["detail"] == "hidden: what the model is given"


def test_padding_may_differ_between_stages(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.hand_over({"hidden": hidden(5, extra=1.0)})
    pair.ends[1].given({"hidden": hidden(8, extra=7.0)})
    assert pair.events("violation") == []


def test_another_shape_or_a_missing_tensor_is_told_as_such(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    received = pair.hand_over({"hidden": hidden(), "residual": hidden()})
    pair.ends[1].given({"hidden": Tensor(received["hidden"].array.reshape(6, 2))})
    told = {found["detail"].partition(":")[0]: found["found"] for found in pair.events("violation")}
    assert told == {"hidden": [3, 2], "residual": "nothing"}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_checksums_are_never_shared_out_among_ranks(tmp_path: Path, size: int) -> None:
    pair = Pair(tmp_path)
    pair.first.isend_tensor_dict({"hidden": hidden()}, all_gather_group=SimpleNamespace(world_size=size))
    assert size == 1 or pair.wire[0][KEY].numel() % size


def test_a_tensor_that_can_not_be_summed_is_handed_over_all_the_same(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    for _ in range(2):
        assert list(pair.hand_over({"hidden": Strange(np.zeros(3))})) == ["hidden"]
    assert len(pair.events("guard_error")) == 1
