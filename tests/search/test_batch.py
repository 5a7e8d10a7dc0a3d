"""Several trials at once."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.simulated import engine, flat

from culpa.model import Conclusion, Configuration, Observation, Outcome, all_suspect
from culpa.search import Strategy
from culpa.search.batch import Batch
from culpa.search.choose import Predictor, entropy, sampled
from culpa.search.evidence import Evidence
from culpa.search.hypotheses import hypotheses
from culpa.search.posterior import posterior
from culpa.search.space import Space

SPACE = Space(flat(5))
FAILED = Observation(SPACE.configuration(SPACE.full), Outcome.FAIL, "baseline")
PASSED = Observation(SPACE.configuration(0), Outcome.PASS, "all_safe")


def predictor() -> Predictor:
    evidence = Evidence(SPACE, [FAILED, PASSED])
    return Predictor(posterior(hypotheses((0.05,) * 5), evidence), evidence)


def joint_bits(masks: list[int]) -> float:
    """The information of all outcomes together, from the definition."""
    source = predictor()
    rates, weights = source.rates(masks), source.weights
    chances = []
    for outcomes in product((True, False), repeat=len(masks)):
        each = [rates[:, place] if failed else 1.0 - rates[:, place] for place, failed in enumerate(outcomes)]
        chances.append(float(weights @ np.prod(each, axis=0)))
    whole = -sum(chance * np.log2(chance) for chance in chances if chance > 0.0)
    return float(whole - weights @ entropy(rates).sum(axis=1))


@given(st.lists(st.integers(0, 31), min_size=1, max_size=4))
@settings(deadline=None, max_examples=30)
def test_what_each_trial_adds_comes_to_what_all_tell_together(masks: list[int]) -> None:
    batch, told = Batch(predictor()), 0.0
    for mask in masks:
        told += float(batch.predict([mask])[1][0])
        batch.add(mask)
    assert told == pytest.approx(joint_bits(masks), abs=1e-9)


def test_the_same_deterministic_trial_again_adds_next_to_nothing() -> None:
    batch = Batch(predictor())
    once = float(batch.predict([0b00111])[1][0])
    batch.add(0b00111)
    assert float(batch.predict([0b00111])[1][0]) < 0.3 * once
    assert float(batch.predict([0b11001])[1][0]) > 0.5 * once


def run_in_batches(count: int, fault: str, size: int = 9) -> tuple[int, list[Observation], Conclusion]:
    factors = flat(size)
    strategy, simulated = Strategy(factors), engine(factors, fault)
    history: list[Observation] = []
    rounds = 0
    while True:
        step = strategy.next_batch(history, count)
        if isinstance(step, Conclusion):
            return rounds, history, step
        assert 0 < len(step) <= count
        rounds += 1
        history += [simulated.run(proposal.configuration, proposal.purpose) for proposal in step]
        assert rounds < 60


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_batches_find_what_single_trials_find(count: int) -> None:
    rounds, history, conclusion = run_in_batches(count, "f1 && f5")
    assert [{member.name for member in finding.members} for finding in conclusion.findings] == [{"f1", "f5"}]
    assert rounds <= len(history)
    if count >= 4:
        assert rounds < len(run_in_batches(1, "f1 && f5")[1]) / 2


def test_what_is_pending_is_not_proposed_again() -> None:
    strategy = Strategy(flat(9))
    history = [FAILED_OF_NINE, PASSED_OF_NINE]
    first = strategy.next_batch(history, 3)
    assert not isinstance(first, Conclusion)
    pending = [step.configuration for step in first]
    second = strategy.next_batch(history, 3, pending)
    assert not isinstance(second, Conclusion)
    assert not {step.configuration for step in second} & set(pending)


FAILED_OF_NINE = Observation(all_suspect(flat(9)), Outcome.FAIL, "baseline")
PASSED_OF_NINE = Observation(Configuration.of({f"f{i}": "off" for i in range(9)}), Outcome.PASS, "all_safe")


def test_more_at_once_than_can_be_weighed_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 10 trials at once"):
        Strategy(flat(4)).next_batch([], 11)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=400), st.integers(5, 60))
@settings(deadline=None)
def test_a_sample_of_hypotheses_holds_all_of_the_weight(weights: list[float], most: int) -> None:
    weight = np.array(weights)
    kept, held, error = sampled(weight, most)
    assert kept.size <= most or weight.size <= most
    assert held.sum() == pytest.approx(weight.sum(), rel=0.1 if error else 1e-12)
    assert (error == 0.0) is (weight.size <= most)
    assert (held > 0.0).all()
    assert (np.diff(kept) > 0).all()


def test_the_error_of_a_sample_is_as_stated() -> None:
    chance = np.random.default_rng(1)
    weight = chance.random(20_000) ** 4
    weight /= weight.sum()
    kept, held, error = sampled(weight, 1000)
    misses = []
    for _ in range(200):
        inside = chance.random(weight.size) < 0.3
        misses.append(float(held @ inside[kept] - weight @ inside))
    assert np.std(misses) <= error
    assert abs(np.mean(misses)) < error / 3
