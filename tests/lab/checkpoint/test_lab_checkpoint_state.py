"""Wrong state shows as wrong answers: recurrent memory and cache, on every stage, far from the answer and near it."""

from functools import cache

import numpy as np
import pytest
from tests.lab.checkpoint.asking import (
    PAGE,
    STAGES,
    State,
    answer,
    attention_caches,
    chat,
    go_on,
    memories,
    recall,
    remember,
    runner,
    tokenizer,
)

from culpa.probes.degeneration import degeneration
from culpa.probes.prompts import LongPrompt, random_record

KINDS = ("zeroed", "foreign", "random")
ON_EACH_STAGE = pytest.mark.parametrize("stage", STAGES, ids=("first", "second", "third"))
# From here on each layer has a veto; the first attention layer too.
CHAIN = (3, *range(15, 64))
_BEFORE_THE_QUESTION = 60


@cache
def long_text(seed: int) -> tuple[str, tuple[int, ...]]:
    """The answer and the tokens of a long prompt of about a thousand tokens."""
    prompt = LongPrompt(random_record(seed), 1000, seed, tokens_per_character=0.18)
    return prompt.answer, tuple(chat(prompt.chat_text()))


@cache
def halfway(seed: int) -> State:
    """What the model remembers of a long prompt when its question is about to come."""
    runner().reset()
    runner().prefill(long_text(seed)[1][:-_BEFORE_THE_QUESTION])
    return remember()


def page_of_the_record() -> slice:
    """The page of the cache that holds the anchor, the `is` of the record."""
    anchor = [tokenizer().token(one) for one in long_text(1)[1]].index(" is")
    return slice(anchor // PAGE * PAGE, (anchor // PAGE + 1) * PAGE)


def spoil(layers: range | tuple[int, ...], kind: str, memory: bool = False, page: bool = False) -> None:
    """Make memories, or one page of each cache, wrong."""
    other = halfway(2)
    where = page_of_the_record()
    generator = np.random.RandomState(0)
    for layer, state in memories(layers) if memory else ():
        if kind == "zeroed":
            state.recurrent[:] = 0
        else:
            noise = generator.standard_normal(state.recurrent.shape)
            state.recurrent[:] = other[layer][1] if kind == "foreign" else noise
    for layer, held in attention_caches(layers) if page else ():
        for array, theirs in zip((held.k, held.v), other[layer], strict=True):
            if kind == "zeroed":
                array[where] = 0
            else:
                noise = generator.standard_normal(array[where].shape)
                array[where] = theirs[where] if kind == "foreign" else noise


def answered(limit: int = 24) -> str:
    return go_on(long_text(1)[1][-_BEFORE_THE_QUESTION:], limit).text


def resume() -> None:
    """Read on from before the question of the first prompt."""
    recall(halfway(1), len(long_text(1)[1]) - _BEFORE_THE_QUESTION)


def test_untouched_state_gives_the_right_answer() -> None:
    resume()
    assert answered() == long_text(1)[0]


@ON_EACH_STAGE
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_recurrent_state_after_the_record_shows(stage: range, kind: str) -> None:
    resume()
    spoil(stage, kind, memory=True)
    text = answered()
    assert long_text(1)[0] not in text
    assert degeneration(text) is not None


@ON_EACH_STAGE
@pytest.mark.parametrize("kind", KINDS)
def test_one_wrong_page_of_the_cache_shows(stage: range, kind: str) -> None:
    resume()
    spoil(stage, kind, page=True)
    text = answered()
    assert long_text(1)[0] not in text
    assert degeneration(text) is not None


@ON_EACH_STAGE
def test_memory_and_page_of_the_same_other_request_show(stage: range) -> None:
    resume()
    spoil(stage, "foreign", memory=True, page=True)
    assert long_text(1)[0] not in answered()


@pytest.mark.slow
def test_each_single_layer_of_the_chain_has_a_veto() -> None:
    outvoted = []
    for layer in CHAIN:
        resume()
        spoil((layer,), "zeroed", memory=True, page=True)
        if answered(limit=6) == long_text(1)[0]:
            outvoted.append(layer)
    assert outvoted == []


@ON_EACH_STAGE
def test_state_of_a_chunk_before_the_record_shows(stage: range) -> None:
    tokens = long_text(1)[1]
    runner().reset()
    runner().prefill(tokens[:PAGE])
    stale = remember()
    resume()
    for layer, state in memories(stage):
        state.conv[:], state.recurrent[:] = stale[layer]
    assert long_text(1)[0] not in answered()


@ON_EACH_STAGE
def test_state_that_another_request_left_behind_shows(stage: range) -> None:
    left = halfway(2)
    runner().reset()
    for layer, state in memories(stage):
        state.conv[:], state.recurrent[:] = left[layer]
    assert long_text(1)[0] not in go_on(long_text(1)[1]).text


@ON_EACH_STAGE
@pytest.mark.parametrize("what", ["memory", "page"])
def test_state_lost_after_a_short_prompt_shows(stage: range, what: str) -> None:
    assert answer(chat("2+2=?")).text == "2 + 2 = 4"
    runner().reset()
    first, *rest = chat("2+2=?")[::-1]
    runner().prefill(rest[::-1])
    for _, state in memories(stage) if what == "memory" else ():
        state.recurrent[:] = 0
    for _, held in attention_caches(stage) if what == "page" else ():
        held.k[:] = 0
        held.v[:] = 0
    text = go_on([first]).text
    assert "4" not in text
    assert degeneration(text) is not None
