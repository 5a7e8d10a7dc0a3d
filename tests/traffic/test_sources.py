"""Crash dumps, benchmark files and folders of others, read without running anything that is in them."""

import builtins
import json
import os
import pickle
import subprocess
import sys
from collections import OrderedDict, deque
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.traffic import BadRecording, answer_then, read_traffic, request_probe
from culpa.traffic.inert import Record, read_pickle

START = 1_750_000_000.0


class GenerateReqInput:
    """Pickled under the name that SGLang's class has."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


GenerateReqInput.__module__ = "sglang.srt.managers.io_struct"


class Evil:
    """Runs a command where it is unpickled by the usual means."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def pickled(content: Any, protocol: int = 4) -> bytes:
    """A pickle of classes that are there while it is made, and not when it is read."""
    parts = GenerateReqInput.__module__.split(".")
    modules = {".".join(parts[: end + 1]): ModuleType(parts[end]) for end in range(len(parts))}
    modules[GenerateReqInput.__module__].GenerateReqInput = GenerateReqInput  # type: ignore[attr-defined]
    with patch.dict(sys.modules, modules):
        return pickle.dumps(content, protocol)


def entry(number: int, *, finished: bool = True, **fields: Any) -> tuple[Any, ...]:
    request = GenerateReqInput(
        text=f"prompt {number}",
        sampling_params={"temperature": 0, "max_new_tokens": 8},
        stream=False,
        rid=f"id-{number}",
        return_logprob=False,
        image_data=None,
        **fields,
    )
    meta = {
        "prompt_tokens": 4,
        "completion_tokens": 2,
        "finish_reason": {"type": "length"} if finished else None,
    }
    return (request, {"text": " a b", "meta_info": meta}, START + number, START + number + 0.5)


def dump(path: Path, entries: list[Any], protocol: int = 4) -> Path:
    path.write_bytes(pickled({"server_args": {"model_path": "m"}, "requests": entries}, protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_crash_dump_of_sglang_is_read(tmp_path: Path, protocol: int) -> None:
    found = read_traffic(
        dump(tmp_path / "crash.pkl", [entry(1), entry(0), entry(2, finished=False)], protocol)
    )
    assert [one.at for one in found.requests] == [0.0, 1.0, 2.0]
    assert [one.outcome for one in found.requests] == ["answered", "answered", "unanswered"]
    assert {one.path for one in found.requests} == {"/generate"}
    assert found.died
    body = found.requests[0].body()
    assert body == {
        "text": "prompt 0",
        "sampling_params": {"temperature": 0, "max_new_tokens": 8},
        "return_logprob": False,
        "stream": False,
    }
    before = answer_then(found.requests[0])
    assert before is not None
    assert (before.text, before.completion_tokens, before.finish_reason) == (" a b", 2, "length")


def test_a_folder_of_dumps_is_one_recording(tmp_path: Path) -> None:
    dump(tmp_path / "b.pkl", [entry(0)])
    (tmp_path / "host").mkdir()
    dump(tmp_path / "host" / "a.pkl", [entry(5)])
    assert [one.at for one in read_traffic(tmp_path).requests] == [0.0, 5.0]


def test_a_dump_becomes_a_workload_for_isolate(tmp_path: Path) -> None:
    probe = request_probe(dump(tmp_path / "crash.pkl", [entry(0), entry(1, finished=False)]))
    assert [request.endpoint for request in probe.requests()] == ["/generate", "/generate"]
    assert not probe.contents


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "evil",
    [
        lambda mark: Evil(os.system, f"touch {mark}"),
        lambda mark: Evil(subprocess.check_output, ["touch", mark]),
        lambda mark: Evil(builtins.exec, f"open({mark!r}, 'w').close()"),
        lambda mark: Evil(builtins.eval, f"open({mark!r}, 'w').close()"),
        lambda mark: Evil(builtins.open, mark, "w"),
        lambda mark: Evil(getattr, Path(mark), "touch"),
    ],
)
def test_nothing_in_a_pickle_is_ever_run(tmp_path: Path, evil: Any, protocol: int) -> None:
    mark = tmp_path / "ran"
    request, output, start, end = entry(0)
    content = {
        "requests": [(request, output, start, end), evil(str(mark)), (evil(str(mark)), {}, start, end)]
    }
    path = tmp_path / "crash.pkl"
    path.write_bytes(pickled(content, protocol))
    found = read_traffic(path)
    assert len(found.requests) == 1
    assert not mark.exists()
    assert found.notes


@pytest.mark.parametrize(
    "text",
    [
        b"cos\nsystem\n(S'touch ran'\ntR.",
        b"\x80\x04cbuiltins\n__import__\n(S'os'\ntR.",
        b"\x80\x04cculpa.traffic.inert\nRecord\n)R}b.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"\x80\x04ccollections\ndeque\n(I1\nI2\ntR.",
        b"\x80\x02(ios\nsystem\n.",
        b"\x80\x04Pthing\n.",
    ],
)
def test_programs_written_by_hand_do_nothing_either(
    tmp_path: Path, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pkl").write_bytes(text)
    try:
        found = read_pickle(tmp_path / "x.pkl")
    except BadRecording:
        found = Record()
    assert isinstance(found, Record | deque)
    assert [path.name for path in tmp_path.iterdir()] == ["x.pkl"]


def test_an_index_without_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl"
    path.write_bytes(b"\x80\x04]r\xff\xff\xff\x7f.")  # puts a list at place 2**31 of the memo
    assert read_pickle(path) == []


def test_plain_containers_come_as_they_are(tmp_path: Path) -> None:
    content = {
        "a": [1, 2.5, None, True],
        "b": (1,),
        "c": {1, 2},
        "d": deque([1]),
        "e": OrderedDict(x=1),
        "f": b"x",
    }
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(content))
    assert read_pickle(path) == content


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.pkl"
    path.write_bytes(b"\x80\x04" + data)
    with suppress(BadRecording):
        read_traffic(path)


@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_a_damaged_dump_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    path = dump(tmp_path_factory.mktemp("damaged") / "x.pkl", [entry(0), entry(1)])
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    with suppress(BadRecording):
        read_traffic(path)


def lines(path: Path, *entries: Any) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")
    return path


def test_json_lines_of_vllms_benchmark_are_read(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "x.jsonl",
        {"prompt": "What is the capital of France?", "output_tokens": 10},
        {"prompt": "And of India?"},
        {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3},
        {"custom_id": "1", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x"}},
    )
    found = read_traffic(path).requests
    assert [one.path for one in found] == [
        "/v1/completions",
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/embeddings",
    ]
    assert found[0].body() == {"prompt": "What is the capital of France?", "max_tokens": 10}
    assert {one.outcome for one in found} == {"unknown"}


def test_conversations_of_sharegpt_are_read(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "Tell me"}, {"from": "gpt", "value": "x" * 40}]
    path = tmp_path / "sharegpt.json"
    path.write_text(json.dumps([{"conversations": turns}, {"conversations": turns[:1]}]))
    (one,) = read_traffic(path).requests
    assert one.body() == {"prompt": "Tell me", "max_tokens": 10, "temperature": 0}


def test_a_detailed_result_of_vllms_benchmark_gives_lengths_and_times(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(
        json.dumps(
            {
                "backend": "openai-chat",
                "model_id": "m",
                "start_times": [101.0, 100.0, 102.5],
                "input_lens": [10, 20, 30],
                "output_lens": [1, 2, 3],
                "latencies": [0.5, 0.25, 0.0],
                "errors": ["", "", "Traceback ... ClientPayloadError"],
            }
        )
    )
    found = read_traffic(path)
    assert found.shapes
    assert [one.at for one in found.requests] == [0.0, 1.0, 2.5]
    assert [one.ended for one in found.requests] == [0.25, 1.5, None]
    assert [one.outcome for one in found.requests] == ["answered", "answered", "lost"]
    body = found.requests[0].body()
    assert body is not None
    assert len(body["messages"][0]["content"].split()) in (18, 19, 20)
    assert (body["max_tokens"], body["model"], body["ignore_eos"]) == (2, "m", True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no request|no JSON"),
        (b"no json\n", "line 1: is no JSON"),
        (b'{"prompt": "x"}\n{"prompt": \n', "line 2: is no JSON"),
        (b"[1, 2]", "entry 1: a request must be a JSON object"),
        (b'{"colour": "red"}', "what it asks is unknown"),
        (b"\xff\xfe\x00", "neither a recording nor UTF-8"),
        (b'{"input_lens": [1], "output_lens": [1, 2], "start_times": [1]}', "of one length"),
        (b'{"input_lens": [1e11], "output_lens": [1], "start_times": [1]}', "at most are made up"),
        (b'{"input_lens": ["x"], "output_lens": [1], "start_times": [1]}', "must be numbers"),
        (b"\x80\x04K\x01.", "no dump of SGLang"),
    ],
)
def test_what_can_not_be_read_is_told_in_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadRecording, match=says) as raised:
        read_traffic(path)
    assert "\n" not in str(raised.value)


def test_a_folder_without_traffic_and_a_path_without_anything_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="neither a recording of culpa record nor crash dumps"):
        read_traffic(tmp_path)
    with pytest.raises(BadRecording, match="no such file or folder"):
        read_traffic(tmp_path / "none")
