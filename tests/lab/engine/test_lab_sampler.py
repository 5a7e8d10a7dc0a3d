"""The choice of tokens."""

import numpy as np
import pytest

from culpa_lab.engine.sampler import choose, report
from culpa_lab.engine.steps import Sampling

LOGITS = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))


def draws(**fields: float) -> set[int]:
    return {choose(LOGITS, Sampling(**fields), output) for output in range(300)}  # type: ignore[arg-type]


def test_temperature_zero_takes_the_likeliest() -> None:
    assert choose(LOGITS, Sampling(temperature=0), 0) == 0


def test_draws_follow_the_probabilities() -> None:
    found = [choose(LOGITS, Sampling(seed=3), output) for output in range(4000)]
    assert np.bincount(found) / 4000 == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)


@pytest.mark.parametrize(
    ("fields", "possible"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.6}, {0, 1}),
        ({"top_p": 0.5}, {0}),
        ({"top_k": 1}, {0}),
        ({}, {0, 1, 2, 3}),
    ],
)
def test_unlikely_tokens_are_cut_off(fields: dict[str, float], possible: set[int]) -> None:
    assert draws(**fields) == possible


def test_a_draw_depends_on_seed_and_place_alone() -> None:
    assert choose(LOGITS, Sampling(seed=1), 5) == choose(LOGITS, Sampling(seed=1), 5)
    assert len({choose(LOGITS, Sampling(seed=seed), 0) for seed in range(50)}) > 1


def test_log_probabilities_are_of_the_model_and_not_of_the_temperature() -> None:
    found = report(LOGITS, 2, 2)
    assert found.logprob == pytest.approx(np.log(0.15), abs=1e-6)
    assert [token for token, _ in found.top] == [0, 1]
