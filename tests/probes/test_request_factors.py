from typing import Any

import pytest
from tests.probes.answers import COMPLETIONS, chat, probe

from culpa.model import Factor
from culpa.probes import Limits, Probe, Request, builtin_probes, request_factors


def factors(asked: Probe) -> dict[str, Factor]:
    return {factor.name: factor for factor in request_factors(asked)}


def completion(prompt: Any, **fields: Any) -> Request:
    return Request(COMPLETIONS, {"prompt": prompt, "temperature": 0, "max_tokens": 16, **fields})


@pytest.mark.parametrize(
    ("request_", "name", "suspect", "safe"),
    [
        (chat(temperature=0.8), "temperature", "0.8", "0"),
        (chat(temperature=None), "temperature", "default", "0"),
        (chat(top_k=20), "top_k", "20", "absent"),
        (chat(top_p=0.9), "top_p", "0.9", "absent"),
        (chat(response_format={"type": "json_schema"}), "structured_output", "json_schema", "absent"),
        (chat(guided_json={"type": "object"}), "structured_output", "object", "absent"),
        (chat(tools=[{}], tool_choice="auto"), "tools", "present", "absent"),
        (chat(stream=True, stream_options={}), "stream", "true", "absent"),
        (chat(logprobs=True, top_logprobs=5), "logprobs", "true", "absent"),
        (chat(ignore_eos=True), "ignore_eos", "true", "absent"),
        (chat(n=2), "n", "2", "absent"),
        (chat(stop=["\n"]), "stop", "present", "absent"),
        (chat(seed=7), "seed", "7", "absent"),
        (chat(my_field="absent"), "my_field", "'absent'", "absent"),
        (chat(max_tokens=None), "max_tokens", "absent", "16"),
        (chat(max_tokens=500), "max_tokens", "500", "16"),
        (chat(max_tokens=None, max_completion_tokens=500), "max_tokens", "500", "16"),
        (chat(), "endpoint", "chat", "completions"),
        (completion("Hi"), "endpoint", "completions", "chat"),
        (chat("word " * 400), "prompt_tokens", "1000", "16"),
        (completion([5] * 300), "prompt_tokens", "300", "16"),
    ],
)
def test_what_can_be_plainer_is_a_factor(request_: Request, name: str, suspect: str, safe: str) -> None:
    factor = factors(probe(request_))[name]
    assert (factor.suspect, factor.safe, factor.scope) == (suspect, (safe,), "request")


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (chat(), "temperature"),
        (chat(stream=False), "stream"),
        (chat(), "max_tokens"),
        (chat(), "prompt_tokens"),
        (chat(model="m"), "model"),
        (completion([1, 2, 3]), "endpoint"),
        (Request("/v1/embeddings", {"input": "Hi"}), "temperature"),
        (Request("/v1/embeddings", {"input": "Hi"}), "max_tokens"),
        (Request("/v1/embeddings", {"input": "Hi"}), "endpoint"),
    ],
)
def test_what_is_plain_already_is_no_factor(request_: Request, name: str) -> None:
    assert name not in factors(probe(request_))


def test_requests_at_once_are_a_number_that_goes_down_to_one() -> None:
    factor = factors(Probe("test", ((chat(),) * 8,)))["concurrency"]
    assert (factor.suspect, factor.safe, factor.numeric) == ("8", ("1",), True)
    assert factor.prior == pytest.approx(16 / 166)


def test_the_same_again_is_repeats_and_not_an_order() -> None:
    found = factors(probe(chat(), chat(), chat()))
    assert found["repeats"].suspect == "3"
    assert "order" not in found
    assert "preceding_requests" not in found


def test_prompts_in_turns_are_an_order() -> None:
    found = factors(probe(chat("one"), chat("two"), chat("one")))
    assert (found["order"].suspect, found["order"].safe) == ("A,B,A", ("A",))
    assert "preceding_requests" not in found


def test_what_was_asked_before_is_counted() -> None:
    earlier = Probe("earlier", ((chat("x"), chat("y")),))
    factor = factors(probe(chat()).after([earlier]))["preceding_requests"]
    assert (factor.suspect, factor.safe, factor.minimum) == ("2", ("0",), 0)


def test_different_requests_before_the_last_count_as_preceding() -> None:
    assert factors(probe(chat("one"), chat("two"), chat("three")))["preceding_requests"].suspect == "2"


def test_log_probabilities_that_only_the_comparison_needs_are_an_instrument() -> None:
    request = Request(chat().endpoint, chat().body, measured=True)
    assert factors(probe(request))["logprobs"].instrument
    assert not factors(probe(chat(logprobs=True)))["logprobs"].instrument


def test_parts_that_are_no_text_are_a_factor() -> None:
    content = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    request = Request(chat().endpoint, {"messages": [{"role": "user", "content": content}]})
    assert factors(probe(request))["media"].safe == ("absent",)


def test_every_factor_of_every_built_in_probe_is_valid_and_named_once() -> None:
    for asked in builtin_probes(Limits("m", 4096, 512, 4)):
        names = [factor.name for factor in request_factors(asked)]
        assert len(names) == len(set(names))
