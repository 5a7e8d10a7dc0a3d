import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.probes.degeneration import degeneration, flipped

PROSE = (
    "The lighthouse at the end of the pier was painted white and red long before the harbour was built. "
    "Its keeper wrote down every ship that passed, the weather of each night, and what the gulls were doing. "
    "When the lamp was replaced, nobody remembered how to read those books, and they went to the museum."
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("!" * 40, "'!' repeated 40 times"),
        ("The answer is !!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", "'!' repeated"),
        ("care" * 12, "'care' repeated 12 times"),
        ("claus claus claus claus claus claus claus claus", "repeated"),
        ("I am sorry. " * 10, "repeated"),
        ("The ship sails. " + "#- " * 30, "repeated"),
        ("一" * 30, "'一' repeated"),
    ],
)
def test_a_text_that_repeats_itself_is_degenerate(text: str, named: str) -> None:
    assert named in (degeneration(text, "What is 2+2?") or "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "Paris.",
        "The answer is 4.",
        PROSE,
        '{"colour": "blue", "number": 12}',
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16",
        "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
        "ha ha ha",
        "----",
    ],
)
def test_ordinary_answers_are_not_degenerate(text: str) -> None:
    assert degeneration(text, "Tell me something about numbers, ships and code.") is None


def test_letters_of_a_script_that_the_prompt_lacks_are_named() -> None:
    reason = degeneration("Ответ: четыре и ещё раз четыре", "What is 2+2?")
    assert reason is not None
    assert "cyrillic" in reason


def test_letters_of_the_prompts_own_scripts_are_fine() -> None:
    assert degeneration("Столица России — Москва.", "Какая столица России?") is None


def test_a_foreign_word_or_two_in_a_text_are_fine() -> None:
    assert degeneration(PROSE + " Привет мир", "Tell me about lighthouses.") is None


def test_one_token_only_is_degenerate_even_where_its_text_is_empty() -> None:
    assert degeneration("", "Hello", tokens=("",) * 12) is not None


def test_long_text_that_compresses_too_well_is_degenerate() -> None:
    # Long units that repeat are beyond the search for repeated units, but not beyond the compressor.
    sentence = PROSE[:100]
    assert "compress" in (degeneration((sentence + " ") * 12, "Tell me.") or "")


@pytest.mark.parametrize(
    ("reason", "expected", "flips"),
    [
        ("length", ["stop", "stop"], True),
        ("length", ["stop", "length"], False),
        ("stop", ["stop"], False),
        ("length", [], False),
    ],
)
def test_a_finish_reason_flips_only_from_a_sure_stop_to_length(
    reason: str, expected: list[str], flips: bool
) -> None:
    assert flipped(reason, expected) is flips


@given(st.text(max_size=400), st.text(max_size=40))
def test_any_text_can_be_looked_at(text: str, prompt: str) -> None:
    reason = degeneration(text, prompt)
    assert reason is None or reason


@given(st.text(min_size=1, max_size=12).filter(lambda unit: unit.strip()), st.integers(30, 60))
def test_any_unit_repeated_often_enough_is_found(unit: str, times: int) -> None:
    assert degeneration((unit + "x") * times) is not None
