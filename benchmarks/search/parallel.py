"""What several machines save: rounds of trials to a verdict, with batches chosen by `Strategy.next_batch`.

In each round every machine runs one trial, and the outcomes come in together. The rounds are the time that the search
takes, in launches; the trials are what it costs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.search.own import observed
from benchmarks.search.simulate import RELAUNCH, REQUEST, Case, Engine, make_case
from culpa.model import Conclusion, Level, Observation
from culpa.search import Strategy

MACHINES = (1, 2, 4, 8)
SIZE = 12
_MOST_TRIALS = 400


@dataclass(frozen=True, slots=True)
class ParallelRun:
    """Rounds and trials until the first set was claimed (until the end, if none was), and whether it is right."""

    rounds: int
    trials: int
    exact: bool


def run_parallel(case: Case, machines: int, *, confidence: float = 0.95) -> ParallelRun:
    """One search with so many machines, up to its first claim."""
    engine = Engine(case)
    strategy = Strategy(
        case.factors,
        confidence=confidence,
        max_trials=_MOST_TRIALS,
        seed=case.seed,
        relaunch_cost=RELAUNCH,
        request_cost=REQUEST,
    )
    history: list[Observation] = []
    rounds = 0
    while True:
        batch = strategy.next_batch(history, machines)
        if isinstance(batch, Conclusion):
            conclusion = batch
            break
        history += [observed(engine, step) for step in batch]
        rounds += 1
        conclusion = strategy.conclude(history, "the first claim ended the search")
        if any(finding.level is Level.ISOLATED for finding in conclusion.findings):
            break
    claimed = [finding for finding in conclusion.findings if finding.level is Level.ISOLATED]
    found = frozenset(member.name for member in claimed[0].members) if claimed else None
    return ParallelRun(rounds, len(history), found in case.causes)


def report(runs: int, rates: Sequence[float], size: int = SIZE) -> Iterator[str]:
    """A line for each number of machines, on the same faults."""
    yield f"rounds and trials to a verdict with several machines, {size} factors, sets of one to three"
    yield ""
    yield "| fault         | machines | faults | rounds | trials | times as quick | trials more |  exact |"
    yield "| ------------- | -------: | -----: | -----: | -----: | -------------: | ----------: | -----: |"
    for rate in rates:
        alone: list[ParallelRun] = []
        for machines in MACHINES:
            cases = (make_case("flat", size, 1 + seed % 3, rate=rate, seed=seed) for seed in range(runs))
            found = [run_parallel(case, machines) for case in cases]
            alone = alone or found
            rounds, trials = fmean(one.rounds for one in found), fmean(one.trials for one in found)
            name = "deterministic" if rate == 1.0 else f"rate {rate:g}"
            quicker = fmean(one.rounds for one in alone) / rounds
            dearer = trials / fmean(one.trials for one in alone) - 1.0
            yield (
                f"| {name:13s} | {machines:8d} | {runs:6d} | {rounds:6.1f} | {trials:6.1f} | {quicker:14.2f} "
                f"| {dearer:11.0%} | {fmean(one.exact for one in found):6.1%} |"
            )
