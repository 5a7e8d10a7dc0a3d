"""The arithmetic of the guard's benchmark; what it measures needs a real engine."""

import pytest
from benchmarks.guard import prompt_of, ratio


def test_ratios_are_of_speeds_and_paired() -> None:
    found = ratio([1.0, 2.0, 4.0, 8.0], [2.0, 4.0, 8.0, 16.0])
    assert (found["low"], found["median"], found["high"]) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("length", [20, 2000])
def test_prompts_have_their_length_and_no_common_beginning(length: int) -> None:
    prompts = [prompt_of(number, length) for number in range(60)]
    assert {len(prompt) for prompt in prompts} == {length}
    assert len({prompt[:4] for prompt in prompts}) == 60
    assert prompt_of(7, length) == prompts[7]
