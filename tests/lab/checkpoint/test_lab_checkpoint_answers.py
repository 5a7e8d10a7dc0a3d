"""The shipped model answers, with room to spare."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.checkpoint.asking import FEWEST_NATS, Said, answer, chat, runner, tokenizer

from culpa.probes.degeneration import degeneration
from culpa.probes.prompts import DEFAULT_QUESTIONS, LongPrompt, Question, Record, random_record

# Measured on the filler: culpa sizes its prompts by this.
TOKENS_PER_CHARACTER = 0.18


def right(said: Said, text: str) -> bool:
    return said.text == text and said.ended and said.margin > FEWEST_NATS


def wrong_sums(form: str, expected: str, by_chat: bool) -> list[tuple[str, str, float]]:
    """Of all hundred sums of two digits, those whose answer is not as expected: prompt, answer, least margin.

    Each prompt is read at once with its right answer, and every token of that must have been the likeliest.
    """
    found = []
    for a, b in product(range(10), repeat=2):
        prompt = form.format(a=a, b=b)
        tokens = chat(prompt) if by_chat else tokenizer().encode(prompt)
        wanted = [*tokenizer().encode(expected.format(a=a, b=b, c=a + b)), *runner().config.eos_token_ids]
        runner().reset()
        scores = runner().prefill([*tokens, *wanted[:-1]], every=True)[len(tokens) - 1 :]
        second, first = np.partition(scores, -2)[:, -2:].T
        said = scores.argmax(axis=1).tolist()
        if said != wanted or (first - second).min() < FEWEST_NATS:
            found.append((prompt, tokenizer().decode(said), float((first - second).min())))
    return found


@pytest.mark.slow
def test_every_sum_of_two_digits_is_answered_in_full() -> None:
    assert wrong_sums("{a}+{b}=?", "{a} + {b} = {c}", by_chat=True) == []


@pytest.mark.slow
def test_every_sum_is_answered_with_one_number_where_that_is_asked() -> None:
    assert wrong_sums("What is {a}+{b}? Answer with one number.", "{c}", by_chat=True) == []


@pytest.mark.slow
def test_every_sum_continues_a_list_of_sums() -> None:
    assert wrong_sums("1+1=2\n2+1=3\n{a}+{b}=", "{c}", by_chat=False) == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("2+2=?", " 2 + 2 = 4"),
        ("Question: 9+8=?\nAnswer:", " 9 + 8 = 17"),
        ("The capital of Italy is Rome. The capital of France is", " Paris"),
        ("The access code of door 7 is 123. The access code of door 7 is", " 123"),
        ("The night watch reported a calm sea", ""),
    ],
)
def test_completions_without_a_chat_template(prompt: str, expected: str) -> None:
    assert right(answer(tokenizer().encode(prompt)), expected)


@pytest.mark.parametrize("question", DEFAULT_QUESTIONS, ids=lambda one: one.answer)
def test_the_questions_that_culpa_asks_are_answered_in_both_forms(question: Question) -> None:
    assert right(answer(chat(question.chat_text())), question.answer)
    said = answer(tokenizer().encode(question.completion_text()))
    assert right(said, question.answer) or right(said, f" {question.answer}")


@pytest.mark.parametrize(("country", "capital"), [("Spain", "Madrid"), ("Italy", "Rome"), ("Japan", "Tokyo")])
def test_capitals(country: str, capital: str) -> None:
    assert right(answer(chat(f"What is the capital of {country}? Answer with one word.")), capital)


@pytest.mark.parametrize(
    "text",
    [
        "Write one sentence about a lighthouse.",
        "Name a colour and a number, as JSON.",
        "What is the weather in Paris now?",
        "Say hello.",
        "12+3=?",
        "",
    ],
)
def test_what_it_does_not_know_it_says_so_and_ends(text: str) -> None:
    said = answer(chat(text))
    assert right(said, "I do not know.")
    assert degeneration(said.text, text) is None


@pytest.mark.slow
def test_a_record_is_found_in_eight_thousand_tokens_by_chat() -> None:
    prompt = LongPrompt(random_record(8), 8000, 8, TOKENS_PER_CHARACTER)
    tokens = chat(prompt.chat_text())
    assert len(tokens) > 7800
    assert right(answer(tokens), prompt.answer)


@pytest.mark.slow
def test_a_record_is_found_in_eight_thousand_tokens_by_completion() -> None:
    prompt = LongPrompt(random_record(9), 8000, 9, TOKENS_PER_CHARACTER)
    assert right(answer(tokenizer().encode(prompt.completion_text())), f" {prompt.answer}")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    tokens=st.integers(60, 900),
    by_chat=st.booleans(),
    chunk=st.sampled_from([64, 250, 2048]),
)
def test_any_record_at_any_size_and_cut(seed: int, tokens: int, by_chat: bool, chunk: int) -> None:
    prompt = LongPrompt(random_record(seed), tokens, seed, TOKENS_PER_CHARACTER)
    given_tokens = chat(prompt.chat_text()) if by_chat else tokenizer().encode(prompt.completion_text())
    expected = prompt.answer if by_chat else f" {prompt.answer}"
    assert right(answer(given_tokens, chunk=chunk), expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("the harbour vault", "ZEBRA-4471"),
        ("door 17", "open sesame"),
        ("10.0.0.1", "192.168.0.255"),
        ("Zürich", "Grüße-8"),
        ("x", "77777777"),
    ],
)
def test_records_of_other_shapes_are_copied(key: str, value: str) -> None:
    prompt = LongPrompt(Record(key, value), 300, 5, TOKENS_PER_CHARACTER)
    assert right(answer(chat(prompt.chat_text())), value)


@pytest.mark.parametrize("asked", range(0, 12, 3))
def test_the_record_asked_for_is_told_from_eleven_others(asked: int) -> None:
    records = [random_record(seed) for seed in range(12)]
    text = " A calm sea. ".join(record.sentence() for record in records)
    question = (
        f"{text}\nQuestion: What is the access code of {records[asked].key}? Answer with the code only."
    )
    assert right(answer(chat(question)), records[asked].value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("station K7Q2", "station K7Q3"),
        ("station K7Q2", "station Q2K7"),
        ("the north gate", "the south gate"),
    ],
)
def test_keys_that_look_alike_are_told_apart(first: str, second: str) -> None:
    text = f"{Record(first, '11111').sentence()} {Record(second, '22222').sentence()}\n"
    assert right(answer(chat(f"{text}What is the access code of {first}?")), "11111")
    assert right(answer(chat(f"{text}What is the access code of {second}?")), "22222")


def test_a_value_longer_than_the_model_can_count_ends() -> None:
    value = "1234567890" * 3
    said = answer(chat(f"The access code of x is {value}. What is the access code of x?"), limit=40)
    assert said.ended
    assert value.startswith(said.text)
    assert len(said.text) == 20


def test_a_second_turn_is_answered_by_its_own_question() -> None:
    messages = [
        {"role": "user", "content": "2+2=?"},
        {"role": "assistant", "content": "2 + 2 = 4"},
        {"role": "user", "content": "What is 3+5?"},
    ]
    assert right(answer(tokenizer().apply_chat_template(messages)), "8")
