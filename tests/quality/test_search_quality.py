"""How good a search is and how many trials it takes, measured over many random faults."""

import random
import time
from statistics import mean

import pytest
from tests.search.simulated import Run, engine, flat, search

from culpa.model import Conclusion, ExperimentOutcome, Observation
from culpa.search import Proposal, Strategy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def measured(count: int, runs: int, rate: float) -> list[tuple[int, Run, bool]]:
    """Searches for random conjunctions of one to three of `count` factors: size, run, found exactly."""
    results = []
    for seed in range(runs):
        chance = random.Random(10_000 + seed)
        size = chance.choice([1, 2, 3])
        members = set(chance.sample([f"f{index}" for index in range(count)], size))
        factors = flat(count)
        simulated = engine(factors, " && ".join(sorted(members)), rate=rate, seed=seed)
        run = search(Strategy(factors, seed=seed), simulated)
        exact = run.conclusion.outcome is ExperimentOutcome.ISOLATED and run.found == [members]
        results.append((size, run, exact))
    return results


def means(results: list[tuple[int, Run, bool]]) -> dict[int, float]:
    """Mean number of trials by the size of the set."""
    return {size: mean(len(run.history) for other, run, _ in results if other == size) for size in (1, 2, 3)}


def test_deterministic_conjunctions_are_all_found_with_few_trials() -> None:
    results = measured(12, 200, 1.0)
    found = means(results)
    print(f"trials by size of the set, baseline to conclusion: {found}")
    assert all(exact for _, _, exact in results)
    # Baseline, all safe, confirming arms and workaround included; log2 of the prior takes 4.8, 7.4 and 10.6.
    assert found[1] <= 9
    assert found[2] <= 14
    assert found[3] <= 20.5


def test_intermittent_conjunctions_are_found_as_surely_as_claimed() -> None:
    results = measured(12, 60, 0.5)
    accuracy = mean(exact for _, _, exact in results)
    claimed = mean(run.conclusion.findings[0].probability for _, run, _ in results)
    print(f"right in {accuracy:.3f} of the runs, claimed {claimed:.3f}, trials {means(results)}")
    assert accuracy >= 0.95
    assert abs(accuracy - claimed) < 0.04


@pytest.mark.parametrize(("count", "seconds"), [(20, 0.1), (32, 0.3)])
def test_choosing_the_next_trial_takes_no_time_that_anyone_notices(count: int, seconds: float) -> None:
    factors = flat(count)
    strategy, simulated = Strategy(factors), engine(factors, "f1 && f7 && f11")
    history: list[Observation] = []
    spent: list[float] = []
    while True:
        began = time.process_time()
        step = strategy.next(history)
        spent.append(time.process_time() - began)
        if isinstance(step, Conclusion):
            break
        assert isinstance(step, Proposal)
        history.append(simulated.run(step.configuration, step.purpose))
    print(f"{count} factors: {mean(spent):.3f} s in the mean, {max(spent):.3f} s at most")
    assert mean(spent) < seconds
