import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.probes.prompts import (
    BadText,
    LongPrompt,
    Question,
    Record,
    filler_sample,
    parse_question,
    parse_record,
    random_record,
)


def test_a_long_prompt_is_the_same_for_the_same_seed() -> None:
    record = random_record(3)
    assert LongPrompt(record, 500, 3).chat_text() == LongPrompt(record, 500, 3).chat_text()


def test_another_seed_begins_with_another_session() -> None:
    record = random_record(3)
    one, other = (LongPrompt(record, 500, seed).chat_text() for seed in (3, 4))
    assert one[:20] != other[:20]


@given(tokens=st.integers(100, 5000), seed=st.integers(0, 10**6), ratio=st.floats(0.15, 1.0))
def test_a_long_prompt_has_the_size_asked_for_and_holds_its_record_once(
    tokens: int, seed: int, ratio: float
) -> None:
    prompt = LongPrompt(random_record(seed), tokens, seed, ratio)
    text = prompt.chat_text()
    longest_sentence = 100
    assert len(text) * ratio <= max(tokens, prompt.minimum_tokens) + 1
    if tokens > prompt.minimum_tokens + longest_sentence * ratio:
        assert len(text) * ratio >= tokens - 2 * longest_sentence * ratio
    assert text.count(prompt.record.sentence()) == 1


def test_the_smallest_long_prompt_still_asks_for_its_record() -> None:
    prompt = LongPrompt(Record("station K7Q2", "48213"), 1, seed=0)
    assert "The access code of station K7Q2 is 48213." in prompt.chat_text()
    assert prompt.chat_text().endswith("What is the access code of station K7Q2? Answer with the code only.")


def test_filler_holds_no_digits_that_could_pass_for_the_record() -> None:
    prompt = LongPrompt(Record("gate", "48213"), 3000, seed=1)
    filler = prompt.chat_text().split("\n")[1].replace(prompt.record.sentence(), "")
    assert not any(character.isdigit() for character in filler)


def test_a_sample_of_filler_has_about_the_length_asked_for() -> None:
    assert 1800 < len(filler_sample(2000)) <= 2000


def test_a_question_splits_at_the_last_equals_sign() -> None:
    assert parse_question("1+1=2, so 2+2=?=4") == Question("1+1=2, so 2+2=?", "4", certain=True)


def test_a_record_splits_at_the_first_equals_sign() -> None:
    assert parse_record("gate 5 = a=b") == Record("gate 5", "a=b")


@pytest.mark.parametrize("text", ["", "no answer", "=4", "What is it?="])
def test_a_question_without_both_sides_is_refused(text: str) -> None:
    with pytest.raises(BadText, match="QUESTION=ANSWER"):
        parse_question(text)


@pytest.mark.parametrize("text", ["", "key", "=value", "key="])
def test_a_record_without_both_sides_is_refused(text: str) -> None:
    with pytest.raises(BadText, match="KEY=VALUE"):
        parse_record(text)


def test_a_record_of_two_lines_is_refused() -> None:
    with pytest.raises(BadText, match="one line"):
        parse_record("key=a\nb")
