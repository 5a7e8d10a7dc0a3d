"""How long the choice of the next trial takes for 32 factors.

Processor time of every `Strategy.next` of whole searches, what the last outcome means included.
Processor time and not the clock, so that other work on the machine does not count; it adds up what several cores did.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.search.own import observed
from benchmarks.search.simulate import Engine, make_case
from culpa.model import Conclusion, Observation
from culpa.search import Strategy

FACTORS = 32
GOAL = 0.100  # seconds
_MOST_TRIALS = 80


def choice_seconds(runs: int, rate: float, factors: int = FACTORS) -> list[float]:
    """Processor seconds of every choice in `runs` searches for sets of one to three factors."""
    found: list[float] = []
    for seed in range(runs):
        case = make_case("flat", factors, 1 + seed % 3, rate=rate, seed=seed)
        engine, strategy = Engine(case), Strategy(case.factors, max_trials=_MOST_TRIALS, seed=seed)
        history: list[Observation] = []
        while True:
            began = time.process_time()
            step = strategy.next(history, engine.alive)
            found.append(time.process_time() - began)
            if isinstance(step, Conclusion):
                break
            history.append(observed(engine, step))
    return found


def report(runs: int, rates: Sequence[float]) -> Iterator[str]:
    """A line for each rate, and whether the goal is met."""
    yield f"choosing the next of the trials, {FACTORS} factors, processor time in milliseconds"
    yield ""
    yield "| fault             | searches | choices | median |  95th |   most |"
    yield "| ----------------- | -------: | ------: | -----: | ----: | -----: |"
    slowest = 0.0
    for rate in rates:
        seconds = choice_seconds(runs, rate)
        middle, high = np.percentile(seconds, [50, 95])
        slowest = max(slowest, float(high))
        name = "deterministic" if rate == 1.0 else f"rate {rate:g}"
        yield (
            f"| {name:17s} | {runs:8d} | {len(seconds):7d} | {1e3 * middle:6.0f} | {1e3 * high:5.0f} "
            f"| {1e3 * max(seconds):6.0f} |"
        )
    yield ""
    met = "met    " if slowest < GOAL else "NOT MET"
    yield f"{met}  a choice takes under {1e3 * GOAL:.0f} ms in 95 of 100 cases: {1e3 * slowest:.0f} ms"
