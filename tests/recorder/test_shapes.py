"""Shapes: lengths, fields and shared beginnings stay, and nothing of what people wrote."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.recorder import Shaper

PATH, JSON = "/v1/chat/completions", "application/json"


def shaped(body: Any, shaper: Shaper | None = None) -> Any:
    made = (shaper or Shaper()).shape(PATH, JSON, json.dumps(body).encode())
    return json.loads(made)


def chat(*contents: str, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text} for text in contents], **fields}


LONG = "My name is Zacharias Quuxington and my account is 4471-9983. " * 40


def test_fields_that_say_how_it_is_asked_stay() -> None:
    body = chat(
        "secret", temperature=0.7, top_p=0.9, max_tokens=12, stream=True, seed=7, stop=["\n"], n=2,
        stream_options={"include_usage": True}, tool_choice="auto", logit_bias={"50256": -100},
        chat_template_kwargs={"enable_thinking": False},
    )  # fmt: skip
    found = shaped(body)
    assert {**found, "messages": 0} == {**body, "messages": 0}
    assert found["messages"][0]["role"] == "user"


def test_nothing_of_the_words_is_left() -> None:
    body = chat(
        LONG,
        "Quuxington",
        user="zacharias",
        metadata={"Quuxington": "4471"},
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "find_Zacharias",
                    "description": LONG,
                    "parameters": {
                        "type": "object",
                        "properties": {"Quuxington_id": {"type": "string", "enum": ["Quuxington", "4471"]}},
                        "required": ["Quuxington_id"],
                    },
                },
            }
        ],
        guided_regex="Zacharias|Quuxington",
        grammar='root ::= "Quuxington"',
    )
    text = Shaper().shape(PATH, JSON, json.dumps(body).encode()).decode().lower()
    assert not [word for word in ("zacharias", "quux", "4471", "9983") if word in text]


def test_names_in_a_schema_still_fit_each_other() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/place"}, "day": {"type": "string"}},
        "required": ["city", "day"],
        "$defs": {"place": {"type": "string"}},
    }
    found = shaped(
        chat("x", response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    )
    made = found["response_format"]["json_schema"]["schema"]
    assert sorted(made["required"]) == sorted(made["properties"])
    (place,) = made["$defs"]
    assert [one["$ref"] for one in made["properties"].values() if "$ref" in one] == [f"#/$defs/{place}"]


def test_prompts_that_begin_alike_still_begin_alike() -> None:
    shaper = Shaper()
    one, other = (
        shaped({"prompt": LONG + tail, "max_tokens": 4}, shaper)["prompt"] for tail in ("and then", "or else")
    )
    shared = len(LONG) // 64 * 64 // 4
    assert one.split()[:shared] == other.split()[:shared]
    assert one != other


def test_a_conversation_that_goes_on_keeps_its_beginning() -> None:
    shaper = Shaper()
    first = shaped(chat(LONG, "a question"), shaper)["messages"]
    second = shaped(chat(LONG, "a question", "an answer", "one more"), shaper)["messages"]
    assert second[:2] == first


def test_equal_texts_in_different_places_are_not_equal_any_more() -> None:
    found = shaped(chat("yes, that is my name", "yes, that is my name"))["messages"]
    assert found[0]["content"] != found[1]["content"]


def test_lengths_stay() -> None:
    found = shaped({"prompt": LONG})["prompt"]
    assert len(found.split()) == -(-len(LONG) // 4)


def test_token_ids_become_other_ids_that_share_what_was_shared() -> None:
    shaper = Shaper()
    ids = [7 * n % 30_000 for n in range(200)]
    one = shaped({"prompt": ids}, shaper)["prompt"]
    other = shaped({"prompt": [*ids[:160], *range(40)]}, shaper)["prompt"]
    assert len(one) == len(other) == 200
    assert one[:160] == other[:160]
    assert one[160:176] != other[160:176]
    assert all(100 <= token < 1000 for token in one)


def test_another_recording_has_another_key() -> None:
    assert shaped({"prompt": LONG}) != shaped({"prompt": LONG})


def test_pictures_become_one_pixel() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUUX" * 50}}
    found = shaped({"messages": [{"role": "user", "content": [part]}]})
    assert found["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


def test_what_is_no_json_is_only_as_long_as_it_was() -> None:
    assert Shaper().shape("/v1/audio", "multipart/form-data", b"secret bytes") == b"x" * 12


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(values)
@settings(max_examples=80, deadline=None)
def test_any_json_can_be_shaped_and_is_json_again(value: Any) -> None:
    made = Shaper(b"k" * 32).shape(PATH, JSON, json.dumps(value).encode())
    assert isinstance(json.loads(made), type(value)) or value is None
