"""Checks on a device: a step's numbers arrive later, nothing waits for them, and they are judged by their own step."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.guard_core import fake_vllm as fake
from tests.guard_core.fake_vllm import Tensor, Worker, cache_config, metadata, output

from culpa_guard import GuardViolation, Settings
from culpa_guard.vllm.attach import wrap_worker
from culpa_guard.vllm.deferred import DEPTH, Fetcher


class Device:
    """Events that are reached when the test says so. Whoever waits for the device fails the test."""

    def __init__(self) -> None:
        self.reached = 0
        self.recorded = 0

    def event(self) -> Any:
        device = self

        class Event:
            def record(self, stream: object) -> None:
                device.recorded += 1
                self.number = device.recorded

            def query(self) -> bool:
                return self.number <= device.reached

            def synchronize(self) -> None:
                pytest.fail("the guard waits for the device")

        return Event()


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    stream = SimpleNamespace(wait_stream=lambda other: None)
    cuda = SimpleNamespace(
        Stream=lambda: stream, current_stream=lambda: stream, stream=lambda _: nullcontext(), Event=made.event
    )
    torch = ModuleType("torch")
    torch.cuda = cuda  # type: ignore[attr-defined]
    torch.empty = lambda shape, dtype, device, pin_memory: Tensor(  # type: ignore[attr-defined]
        np.zeros(shape, dtype.removeprefix("torch."))
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    return made


def whole(*numbers: int) -> Tensor:
    return Tensor(np.array(numbers, dtype=np.int32))


def test_numbers_are_handed_over_when_they_have_arrived_and_in_order(device: Device) -> None:
    fetcher, got = Fetcher(SimpleNamespace(type="cuda")), []
    for number in (1, 2):
        fetcher.fetch([whole(number)], lambda contents: got.append(list(contents[0])))
    fetcher.poll()
    assert got == []
    device.reached = 2
    fetcher.poll()
    assert got == [[1], [2]]


def test_what_is_overwritten_later_was_copied_before(device: Device) -> None:
    fetcher, got, tensor = Fetcher(SimpleNamespace(type="cuda")), [], whole(1)
    fetcher.fetch([tensor], lambda contents: got.append(list(contents[0])))
    tensor.array[0] = 9
    device.reached = 1
    fetcher.poll()
    assert got == [[1]]


def test_copies_that_never_arrive_are_given_up(device: Device) -> None:
    fetcher = Fetcher(SimpleNamespace(type="cuda"))
    for number in range(DEPTH + 3):
        fetcher.fetch([whole(number)], lambda contents: None)
        fetcher.poll()
    assert fetcher.given_up == 3


@pytest.mark.parametrize("mode", ["log", "raise"])
def test_a_late_violation_names_the_step_that_was_looked_at(
    device: Device, mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    worker = Worker(second=True)
    worker.device = SimpleNamespace(type="cuda")
    fake.install(monkeypatch, worker)
    wrap_worker(worker, Settings(mode, 1, tmp_path))
    worker.initialize_from_config(cache_config())
    worker.given = metadata((1, 9), [3, 4], list(range(12, 20)), fresh=True)
    worker.execute_model(output("r", [[0, 1], [0, 2], [3, 4]], 0, 8, new=True))
    device.reached = device.recorded
    worker.given = metadata((5, 6), [3, 4, 7], [28], fresh=False)
    later = output("r", [[5], [6], [7]], 8, 1, new=False)
    if mode == "raise":
        with pytest.raises(GuardViolation):
            worker.execute_model(later)
        assert worker.ran == 1
    else:
        worker.execute_model(later)
    (path,) = tmp_path.glob("*.jsonl")
    events = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert [event for event in events if event["event"] == "guard_error"] == []
    (found,) = [event for event in events if event["event"] == "violation"]
    assert (found["kind"], found["step"], found["layer"]) == ("state_index_not_scheduled", 1, "s1")
    assert (found["expected"], found["found"]) == (2, 9)
