import json
from pathlib import Path
from typing import Any

import pytest

from culpa.probes import BadRequestFile, Probe, user_probe

BODY = {"messages": [{"role": "user", "content": "Hi"}], "top_k": 5, "x_custom": {"a": [1]}}


def read(tmp_path: Path, text: str) -> Probe:
    file = tmp_path / "requests.json"
    file.write_text(text, encoding="utf-8")
    return user_probe(file)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(BadRequestFile) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(tmp_path), "")


def test_a_bare_body_is_passed_through_untouched(tmp_path: Path) -> None:
    probe = read(tmp_path, json.dumps(BODY, indent=2))
    assert probe.source == "user"
    assert [request.body for request in probe.requests()] == [BODY]


@pytest.mark.parametrize(
    ("body", "endpoint"),
    [
        (BODY, "/v1/chat/completions"),
        ({"prompt": "Hi"}, "/v1/completions"),
        ({"input": "Hi"}, "/v1/embeddings"),
    ],
)
def test_the_endpoint_follows_from_the_keys(tmp_path: Path, body: dict[str, Any], endpoint: str) -> None:
    assert read(tmp_path, json.dumps(body)).requests()[0].endpoint == endpoint


def test_a_wrapped_body_keeps_its_endpoint_expectation_and_counts(tmp_path: Path) -> None:
    entry = {"endpoint": "/v1/x", "body": {"q": 1}, "expect": "Paris", "at_once": 3, "repeat": 2}
    probe = read(tmp_path, json.dumps(entry))
    assert [len(one) for one in probe.rounds] == [3, 3]
    request = probe.requests()[0]
    assert request.endpoint == "/v1/x"
    assert request.expect is not None
    assert request.expect.certain
    assert request.expect.met("It is Paris.")


def test_an_expectation_may_be_a_regular_expression(tmp_path: Path) -> None:
    probe = read(tmp_path, json.dumps({"body": BODY, "expect": {"contains": "4", "regex": "^4"}}))
    expect = probe.requests()[0].expect
    assert expect is not None
    assert expect.met("4 it is")
    assert not expect.met("it is 4")


def test_an_array_is_asked_one_after_the_other(tmp_path: Path) -> None:
    assert len(read(tmp_path, json.dumps([BODY, {"prompt": "Hi"}])).rounds) == 2


def test_json_lines_may_have_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert len(read(tmp_path, "\ufeff" + json.dumps(BODY) + "\n\n" + json.dumps({"prompt": "x"})).rounds) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/requests.json, line 1: is no JSON"),
        ("[]", "holds no request"),
        ("{", "/requests.json, line 1: is no JSON"),
        ('{"prompt": "a"}\n{"prompt": }', "/requests.json, line 2: is no JSON"),
        ('{"prompt": "a"}\n{"text": "b"}', "/requests.json, line 2: has none of messages, prompt, input"),
        ('[{"prompt": "a"}, 5]', "/requests.json, request 2: a request must be a JSON object, not int"),
        ('{"body": [], "endpoint": "/v1/x"}', "'body' must be a JSON object"),
        ('{"body": {"prompt": "a"}, "repeats": 2}', "unknown field 'repeats'"),
        ('{"body": {"prompt": "a"}, "repeat": 0}', "'repeat' must be a whole number"),
        ('{"body": {"prompt": "a"}, "at_once": true}', "'at_once' must be a whole number"),
        ('{"body": {"prompt": "a"}, "endpoint": "v1"}', "'endpoint' must be a path"),
        ('{"body": {"prompt": "a"}, "expect": 4}', "'expect' must be a text"),
        ('{"body": {"prompt": "a"}, "expect": {"regexp": "4"}}', "'expect' must be a text"),
        ('{"body": {"prompt": "a"}, "expect": {"contains": ""}}', "must be texts that are not empty"),
        ('{"body": {"prompt": "a"}, "expect": {"regex": "("}}', "'regex' is no regular expression"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadRequestFile, match="can't be read: No such file"):
        user_probe(tmp_path / "none.json")


def test_a_file_that_is_no_text_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "requests.json"
    file.write_bytes(b"\xff\xfe{}")
    with pytest.raises(BadRequestFile, match="is not UTF-8"):
        user_probe(file)
