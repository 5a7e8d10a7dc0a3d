"""Asking the shipped model without an engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import culpa_lab
from culpa_lab.model import GdnState, Tokenizer
from culpa_lab.model.arrays import Array
from culpa_lab.model.simple import PlainCache, Runner

FOLDER = Path(culpa_lab.__file__).parent / "checkpoint"
STAGES = (range(23), range(23, 46), range(46, 64))
"""The layers of three stages under the partition 23,23,18."""
PAGE = 256
FEWEST_NATS = 2.0

State = list[tuple[Array, Array]]
"""What each layer remembers: convolution and memory, or keys and values."""


@dataclass(frozen=True)
class Said:
    """An answer; `ended` if the model ended it; `margin` is the least lead of a chosen token, in nats."""

    text: str
    ended: bool
    margin: float


@cache
def tokenizer() -> Tokenizer:
    """The shipped tokenizer."""
    return Tokenizer.load(FOLDER)


@cache
def runner() -> Runner:
    """The shipped model. It is shared: reset it."""
    return Runner(FOLDER)


def chat(text: str) -> list[int]:
    """A user's message as tokens."""
    return tokenizer().apply_chat_template([{"role": "user", "content": text}])


def answer(tokens: Sequence[int], limit: int = 24, chunk: int = 2048) -> Said:
    """The greedy answer to a new prompt."""
    runner().reset()
    return go_on(tokens, limit, chunk)


def go_on(tokens: Sequence[int], limit: int = 24, chunk: int = 2048) -> Said:
    """The greedy answer after more tokens, from the state that the runner has."""
    scores = runner().prefill(tokens, chunk)
    made: list[int] = []
    margin = np.inf
    while len(made) < limit:
        second, first = np.partition(scores, -2)[-2:]
        margin = min(margin, float(first - second))
        token = int(scores.argmax())
        if token in runner().config.eos_token_ids:
            return Said(tokenizer().decode(made), True, margin)
        made.append(token)
        scores = runner().decode(token)
    return Said(tokenizer().decode(made), False, margin)


def remember() -> State:
    """A copy of what the runner has in its caches."""
    return [
        (one.conv.copy(), one.recurrent.copy()) if isinstance(one, GdnState) else (one.k.copy(), one.v.copy())
        for one in runner().caches
    ]


def recall(state: State, position: int) -> None:
    """Put a copy back."""
    runner().reset()
    runner().position = position
    for one, (first, second) in zip(runner().caches, state, strict=True):
        if isinstance(one, GdnState):
            one.conv[:], one.recurrent[:] = first, second
        else:
            one.write(first, second)


def memories(layers: Sequence[int]) -> list[tuple[int, GdnState]]:
    """The delta nets among some layers."""
    found = [(layer, runner().caches[layer]) for layer in layers]
    return [(layer, one) for layer, one in found if isinstance(one, GdnState)]


def attention_caches(layers: Sequence[int]) -> list[tuple[int, PlainCache]]:
    """The attention layers among some layers."""
    found = [(layer, runner().caches[layer]) for layer in layers]
    return [(layer, one) for layer, one in found if isinstance(one, PlainCache)]
