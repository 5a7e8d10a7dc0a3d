import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.probes.responses import Collector, error_text, event_data, read_body, read_error


def body(**choice: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", **choice}]})


def entry(token: str, logprob: float | None, **top: float) -> dict[str, Any]:
    tops = [{"token": name, "logprob": value} for name, value in top.items()]
    return {"token": token, "logprob": logprob, "top_logprobs": tops}


def test_a_chat_answer_is_read_with_its_counts() -> None:
    text = json.dumps(
        {
            "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 42,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 26},
            },
        }
    )
    answer = read_body(200, text, 0.5)
    assert (answer.text, answer.finish_reason, answer.failed) == ("4", "stop", False)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (42, 2, 26)


def test_usage_may_be_silent() -> None:
    answer = read_body(200, json.dumps({"choices": [], "usage": {"prompt_tokens_details": None}}), 0)
    assert (answer.prompt_tokens, answer.cached_tokens, answer.failed) == (None, None, False)


def test_log_probabilities_of_chat_are_read_likeliest_first() -> None:
    answer = read_body(200, body(logprobs={"content": [entry("b", -1.5, b=-1.5, a=-0.3)]}), 0)
    assert (answer.tokens, answer.logprobs) == (("b",), (-1.5,))
    assert answer.top_logprobs == ((("a", -0.3), ("b", -1.5)),)


def test_log_probabilities_of_completions_are_read_too() -> None:
    logprobs = {"tokens": ["a", "b"], "token_logprobs": [-0.1, -0.2], "top_logprobs": [{"a": -0.1}, None]}
    answer = read_body(200, body(text="ab", logprobs=logprobs), 0)
    assert (answer.tokens, answer.logprobs) == (("a", "b"), (-0.1, -0.2))


def test_an_echoed_prompts_first_token_has_no_log_probability_and_that_is_no_nan() -> None:
    answer = read_body(200, body(text="ab", logprobs={"tokens": ["a", "b"], "token_logprobs": [None, -1]}), 0)
    assert (answer.tokens, answer.nan) == (("b",), None)


@pytest.mark.parametrize(
    "text",
    [
        body(text="x", logprobs={"content": [entry("x", None)]}),
        body(text="x", logprobs={"content": [entry("x", float("nan"))]}),
        body(text="x", logprobs={"content": [entry("x", -1.0, y=float("nan"))]}),
        body(text="x", logprobs={"tokens": ["w", "x"], "token_logprobs": [-1.0, None]}),
        body(text="x", logprobs={"content": [entry("x", float("inf"))]}),
        '{"data": [{"embedding": [0.1, NaN]}]}',
        '{"data": [{"embedding": [0.1, null]}]}',
    ],
)
def test_numbers_that_are_none_are_noticed(text: str) -> None:
    answer = read_body(200, text, 0)
    assert answer.nan is not None
    assert answer.failed
    assert all(number == number for number in answer.logprobs)


def test_minus_infinity_is_a_log_probability_like_another() -> None:
    answer = read_body(200, body(logprobs={"content": [entry("x", float("-inf"))]}), 0)
    assert (answer.logprobs, answer.nan) == ((-9999.0,), None)


@pytest.mark.parametrize(
    ("status", "text", "nan"),
    [
        (500, '{"error": {"message": "Out of range float values are not JSON compliant: nan"}}', True),
        (500, "probability tensor contains either `inf`, `nan` or element < 0", True),
        (500, '{"error": {"message": "banana split"}}', False),
        (400, '{"error": {"message": "temperature must not be nan"}}', False),
    ],
)
def test_an_error_of_the_server_may_speak_of_nan(status: int, text: str, nan: bool) -> None:
    answer = read_error(status, text, 0)
    assert answer.failure == "http_error"
    assert (answer.nan is not None) is nan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"error": {"code": 400, "message": "too long"}}', "too long"),
        ('{"error": "gone"}', "gone"),
        ('{"object": "error", "message": "no template"}', "no template"),
        ('{"detail": [{"loc": ["body"], "msg": "bad"}]}', '[{"loc": ["body"], "msg": "bad"}]'),
        ("<h1>Bad\n Gateway</h1>", "<h1>Bad Gateway</h1>"),
        ("", ""),
    ],
)
def test_an_error_is_quoted_in_the_engines_words_on_one_line(text: str, said: str) -> None:
    assert error_text(text) == said


def test_an_error_of_a_megabyte_is_cut() -> None:
    assert len(error_text("x" * 10**6)) < 600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, "nonsense", '{"choices": [5]}', '{"choices": 5}']
)
def test_a_body_that_is_no_answer_is_malformed(text: str) -> None:
    assert read_body(200, text, 0).failure == "malformed"


def test_an_endpoint_of_its_own_answers_with_its_body_as_text() -> None:
    assert read_body(200, '{"results": [1]}', 0).text == '{"results": [1]}'


def test_tool_calls_in_pieces_are_put_together() -> None:
    collector = Collector()
    for index, name, arguments in [
        (0, "weather", ""),
        (0, None, '{"city":'),
        (0, None, '"Paris"}'),
        (1, "now", "{}"),
    ]:
        call = {"index": index, "function": {"name": name, "arguments": arguments}}
        collector.feed(json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}), "an event")
    assert collector.answer(200, 0).tool_calls == ('weather({"city":"Paris"})', "now({})")


def test_whole_tool_calls_without_an_index_stay_apart() -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    assert read_body(200, body(message={"tool_calls": calls}), 0).tool_calls == ("a({})", "b({})")


def test_thoughts_count_as_text_and_are_marked() -> None:
    answer = read_body(200, body(message={"reasoning_content": "Hm. ", "content": "4"}), 0)
    assert (answer.text, answer.thinking) == ("Hm. 4", True)
    assert read_body(200, body(message={"content": "<think>Hm"}), 0).thinking


def test_only_the_first_of_several_choices_is_the_text() -> None:
    text = json.dumps({"choices": [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]})
    assert read_body(200, text, 0).text == "a"


@pytest.mark.parametrize(
    ("line", "data"),
    [
        ('data: {"a": 1}', '{"a": 1}'),
        ("data:[DONE]", "[DONE]"),
        ('error: {"code": 500}', '{"code": 500}'),
        (": keep-alive", None),
        ("event: message", None),
        ("", None),
        ("data", None),
    ],
)
def test_the_data_of_an_event_is_found(line: str, data: str | None) -> None:
    assert event_data(line) == data


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "logprobs",
                    "usage",
                    "data",
                    "embedding",
                    "error",
                    "index",
                    "tokens",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_no_json_whatever_breaks_the_reader(value: Any) -> None:
    read_body(200, json.dumps(value), 0)
    error_text(json.dumps(value))
