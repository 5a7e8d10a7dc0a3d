"""The server from outside: OpenAI's API, its errors, and its end."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.lab.engine.engines import answer, engine, prompt
from tests.lab.engine.servers import Server, gone, server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab() -> Iterator[Server]:
    with server("-pp", "3", env={"VLLM_PP_LAYER_PARTITION": "3,4,1"}) as running:
        yield running


def chat(lab: Server, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 12}
    found: dict[str, Any] = lab.client.post("/v1/chat/completions", json={**body, **fields}).json()
    return found


def events(lab: Server, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    with lab.client.stream("POST", path, json={**body, "stream": True}) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_it_says_what_it_is(lab: Server) -> None:
    assert lab.client.get("/health").status_code == 200
    assert lab.client.get("/version").json() == {"version": "0.64.0"}
    model = lab.client.get("/v1/models").json()["data"][0]
    assert (model["id"], model["max_model_len"]) == ("small", 512)


def test_workers_answer_as_the_engine_in_one_process_does(lab: Server) -> None:
    found = lab.complete(list(prompt(100)), logprobs=1)
    [alone] = answer(engine(max_model_len=512), [[prompt(100)]])
    values = [one.logprobs.logprob for one in alone.sampled if one.logprobs is not None]
    assert found["choices"][0]["logprobs"]["token_logprobs"] == pytest.approx(values, abs=2e-3)


def test_requests_at_once_answer_as_alone(lab: Server) -> None:
    asked = [list(prompt(length, seed=length)) for length in (3, 20, 70, 71, 130, 200)]
    alone = [lab.complete(one)["choices"][0]["text"] for one in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        together = [found["choices"][0]["text"] for found in pool.map(lab.complete, asked)]
    assert together == alone


def test_usage_tells_cached_tokens(lab: Server) -> None:
    asked = list(prompt(120, seed=77))
    first, second = (lab.complete(asked)["usage"] for _ in range(2))
    assert first["prompt_tokens_details"] == {"cached_tokens": 0}
    assert second["prompt_tokens_details"] == {"cached_tokens": 112}
    assert (second["prompt_tokens"], second["completion_tokens"], second["total_tokens"]) == (120, 8, 128)


def test_a_stream_carries_the_same_text_and_tells_usage_if_asked(lab: Server) -> None:
    whole = chat(lab)
    body = {"messages": [{"role": "user", "content": "Hello there"}], "temperature": 0, "max_tokens": 12}
    found = events(lab, "/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})
    text = "".join(one["choices"][0]["delta"]["content"] for one in found[:-1])
    assert text == whole["choices"][0]["message"]["content"]
    assert found[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert found[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


def test_log_probabilities_come_on_both_endpoints(lab: Server) -> None:
    entries = chat(lab, logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"]
    assert all(len(entry["top_logprobs"]) == 3 for entry in entries)
    # At temperature 0 the chosen token is the likeliest.
    assert all(entry["logprob"] == entry["top_logprobs"][0]["logprob"] for entry in entries)
    found = lab.complete("Hello", 4, logprobs=2)["choices"][0]["logprobs"]
    assert [len(found[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [4] * 4


def test_the_same_seed_draws_the_same_and_another_does_not(lab: Server) -> None:
    texts = [
        lab.complete("Hello", 24, temperature=1.5, seed=seed)["choices"][0]["text"] for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_stop_text_ends_the_answer_before_it(lab: Server) -> None:
    whole = lab.complete("abc", 12)["choices"][0]["text"]
    mark = whole[3:5]
    found = lab.complete("abc", 12, stop=[mark])["choices"][0]
    assert found["finish_reason"] == "stop"
    assert found["text"] == whole[: whole.index(mark)]


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/v1/completions", {"prompt": [1] * 600}, 400, "maximum context length is 512 tokens"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 600}, 400, "is too large: 600"),
        ("/v1/completions", {"prompt": [999]}, 400, "token ids must be between 0 and 257"),
        ("/v1/completions", {"prompt": []}, 400, "prompt"),
        ("/v1/completions", {}, 400, "prompt"),
        ("/v1/completions", {"prompt": "a", "temperature": -1}, 400, "temperature"),
        ("/v1/completions", {"prompt": "a", "model": "other"}, 404, "`other` does not exist"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "json_object"}},
            400,
            "structured output",
        ),
    ],
)
def test_a_request_that_can_not_be_served_is_told_why(
    lab: Server, path: str, body: dict[str, Any], status: int, says: str
) -> None:
    response = lab.client.post(path, json=body)
    assert response.status_code == status
    assert says in response.json()["error"]["message"]


def test_there_are_no_embeddings(lab: Server) -> None:
    assert lab.client.post("/v1/embeddings", json={"input": "a"}).status_code == 404


def test_counters_move_and_a_request_that_nobody_waits_for_is_dropped(lab: Server) -> None:
    def running() -> float:
        page = lab.client.get("/metrics").text
        [line] = [line for line in page.splitlines() if line.startswith("vllm:num_requests_running{")]
        return float(line.rsplit(" ", 1)[1])

    body = {"prompt": "a", "max_tokens": 500, "ignore_eos": True, "stream": True}
    with lab.client.stream("POST", "/v1/completions", json=body) as response:
        next(response.iter_lines())
        assert running() == 1
    deadline = time.monotonic() + 20
    while running() > 0:
        assert time.monotonic() < deadline
        # A step is needed for the gauge to move.
        lab.complete("b", 1)
    page = lab.client.get("/metrics").text
    assert 'finished_reason="abort"} 1.0' in page
    assert 'vllm:cache_config_info{engine="0",block_size="16"' in page


def test_the_end_is_quick_and_leaves_nothing_behind() -> None:
    with server("-pp", "2") as running:
        assert len(running.workers) == 3
        with running.client.stream(
            "POST",
            "/v1/completions",
            json={"prompt": "a", "max_tokens": 500, "ignore_eos": True, "stream": True},
        ) as response:
            next(response.iter_lines())
            began = time.monotonic()
            assert running.end() == 0
        assert time.monotonic() - began < 5
        assert all(gone(pid) for pid in running.workers)


def test_a_server_that_is_killed_takes_its_children_along() -> None:
    with server("-pp", "2") as running:
        running.end(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not all(gone(pid) for pid in running.workers):
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model", "/no/such/folder"], "no config.json"),
        (["--fault", "gremlins"], "no such fault"),
        (["--fault", "nan:2"], "between 0 and 1"),
        (["--block-size", "17"], "multiple of 16"),
        (["--block-size", "7x"], "invalid int value: '7x'"),
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--mamba-cache-mode", "align", "--no-enable-prefix-caching"], "--enable-prefix-caching"),
        (["-cc", "{"], "no JSON"),
        (["--kernel-log", "/no/such/folder/kernel.log"], "can't be written"),
        (["-cc", '{"cudagraph_mode": "MAYBE"}'], "cudagraph_mode must be one of"),
        (["--no-enable-chunked-prefill", "--max-num-batched-tokens", "64"], "without chunked prefill"),
        (["-pp", "2", "--num-gpu-blocks-override", "10"], "cache blocks are needed"),
    ],
)
def test_what_can_not_start_says_so_in_one_line(arguments: list[str], says: str) -> None:
    command = [sys.executable, "-m", "culpa_lab", "serve", "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize("partition", ["5,4", "8", "8,0", "a,b", "4,5"])
def test_a_partition_that_does_not_fit_is_refused(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.lab.engine.engines import checkpoint

    from culpa_lab.cli import main

    monkeypatch.setenv("VLLM_PP_LAYER_PARTITION", partition)
    assert main(["serve", str(checkpoint()), "-pp", "2"]) == 2


def test_a_port_that_is_taken_is_told(lab: Server) -> None:
    port = lab.url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "culpa_lab", "serve", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Address already in use" in done.stderr
