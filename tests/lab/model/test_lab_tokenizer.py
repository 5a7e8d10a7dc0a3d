"""Text to ids and back, streams that never split a character, chat templates."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa_lab.model import BadCheckpoint, BadTemplate, Tokenizer, write_byte_level_tokenizer

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "2+2=?"}]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("bytes")
    write_byte_level_tokenizer(folder)
    return Tokenizer.load(folder)


def with_template(folder: Path, template: str) -> Tokenizer:
    write_byte_level_tokenizer(folder, template)
    return Tokenizer.load(folder)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_a_byte_is_a_token_and_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    if "<|end|>" in text or "<|pad|>" in text:
        return
    assert tokenizer.encode(text) == list(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_stream_gives_whole_characters_only(tokenizer: Tokenizer, text: str) -> None:
    stream = tokenizer.stream()
    pieces = [stream.push(token) for token in text.encode()]
    # U+FFFD may stand in the text itself; then it is held back until something follows.
    assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in text
    assert "".join(pieces) + stream.finish() == text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 257), max_size=24))
def test_a_stream_of_any_tokens_adds_up_to_their_text(tokenizer: Tokenizer, ids: list[int]) -> None:
    stream = tokenizer.stream()
    assert "".join(stream.push(token) for token in ids) + stream.finish() == tokenizer.decode(ids)


def test_a_character_comes_with_its_last_byte(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream()
    assert [stream.push(token) for token in "é€".encode()] == ["", "é", "", "", "€"]
    assert stream.finish() == ""


def test_special_tokens_are_not_text_but_have_a_name(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a<|end|>") == [97, 256]
    assert tokenizer.decode([97, 256, 98]) == "ab"
    assert tokenizer.token(256) == "<|end|>"
    assert tokenizer.size == 258


def test_messages_go_through_the_template(tokenizer: Tokenizer) -> None:
    assert tokenizer.render(HELLO) == "user: 2+2=?\nassistant: "
    assert tokenizer.render(HELLO, add_generation_prompt=False) == "user: 2+2=?\n"
    assert tokenizer.decode(tokenizer.apply_chat_template(HELLO)) == "user: 2+2=?\nassistant: "


def test_content_may_come_in_text_parts(tokenizer: Tokenizer) -> None:
    parts = [{"type": "text", "text": "2+2"}, {"type": "text", "text": "=?"}]
    assert tokenizer.render([{"role": "user", "content": parts}]) == tokenizer.render(HELLO)
    with pytest.raises(BadTemplate, match="must be a string or a list of text parts"):
        tokenizer.render([{"role": "user", "content": [{"type": "image_url"}]}])


def test_a_template_knows_the_special_tokens_and_may_refuse(tmp_path: Path) -> None:
    tokenizer = with_template(
        tmp_path, "{{ eos_token }}{{ raise_exception('no system') if messages[0].role == 'system' }}"
    )
    with pytest.raises(BadTemplate, match="no system"):
        tokenizer.render([{"role": "system", "content": ""}])
    assert tokenizer.render(HELLO).startswith("<|end|>")


@pytest.mark.parametrize(
    "template", ["{{ messages.__class__.__mro__ }}", "{% for x in %}", "{{ messages[9].role }}"]
)
def test_a_template_that_is_wrong_or_hostile_is_refused(tmp_path: Path, template: str) -> None:
    with pytest.raises(BadTemplate) as caught:
        with_template(tmp_path, template).render(HELLO)
    assert "\n" not in str(caught.value)


def test_a_template_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    write_byte_level_tokenizer(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("[{{ messages[0].content }}]")
    assert Tokenizer.load(tmp_path).render(HELLO) == "[2+2=?]"


def test_without_a_template_chat_is_refused(tmp_path: Path) -> None:
    write_byte_level_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({}))
    with pytest.raises(BadTemplate, match="no chat template"):
        Tokenizer.load(tmp_path).render(HELLO)


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_damaged_files_are_said_in_one_line(tmp_path: Path, file: str) -> None:
    write_byte_level_tokenizer(tmp_path)
    (tmp_path / file).write_text("{")
    with pytest.raises(BadCheckpoint, match=file) as caught:
        Tokenizer.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_tokenizer_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"has no tokenizer\.json"):
        Tokenizer.load(tmp_path)
