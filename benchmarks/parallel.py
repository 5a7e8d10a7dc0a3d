"""Trials on several machines at once: rounds and trials to the end of the search, for 1, 2, 4 and 8 machines.

    python -m benchmarks.parallel [--runs 20] [--factors 12] [--rates 1,0.5] [--json]

A round is one trial on every machine. All widths search for the same faults, random sets of 1 to 3 members.
"""

import argparse
import json
import random
from dataclasses import asdict, dataclass
from statistics import fmean

from culpa.model import Conclusion, Factor, Observation, Outcome
from culpa.search import Strategy

WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Width:
    """The means over all faults of one kind at one width."""

    rate: float
    members: int
    machines: int
    rounds: float
    trials: float
    exact: float


def search(
    members: frozenset[str], size: int, rate: float, machines: int, seed: int
) -> tuple[int, int, bool]:
    """One search to its end: rounds, trials, and whether exactly the true set was found."""
    factors = [Factor(f"f{index}", "on", ("off",)) for index in range(size)]
    strategy, chance = Strategy(factors, seed=seed), random.Random(seed)
    history: list[Observation] = []
    rounds = 0
    while True:
        step = strategy.next_batch(history, machines)
        if isinstance(step, Conclusion):
            found = [{member.name for member in finding.members} for finding in step.findings]
            return rounds, len(history), found == [members]
        rounds += 1
        for proposal in step:
            covered = all(proposal.configuration[name] == "on" for name in members)
            failed = chance.random() < (rate if covered else 0.0)
            outcome = Outcome.FAIL if failed else Outcome.PASS
            history.append(Observation(proposal.configuration, outcome, proposal.purpose))


def measure(runs: int, size: int, rates: list[float]) -> list[Width]:
    rows = []
    for rate in rates:
        for count in (1, 2, 3):
            for machines in WIDTHS:
                done = []
                for seed in range(runs):
                    names = random.Random(f"{count}|{seed}").sample(range(size), count)
                    members = frozenset(f"f{index}" for index in names)
                    done.append(search(members, size, rate, machines, seed))
                rows.append(
                    Width(
                        rate,
                        count,
                        machines,
                        fmean(rounds for rounds, _, _ in done),
                        fmean(trials for _, trials, _ in done),
                        fmean(exact for _, _, exact in done),
                    )
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--factors", type=int, default=12)
    parser.add_argument(
        "--rates", type=lambda text: [float(part) for part in text.split(",")], default=[1.0, 0.5]
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = measure(asked.runs, asked.factors, asked.rates)
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    print(f"{asked.factors} factors, {asked.runs} faults of each kind\n")
    print("| rate | members | machines | rounds | trials | exact |")
    print("| ---: | ------: | -------: | -----: | -----: | ----: |")
    for row in rows:
        print(
            f"| {row.rate:4g} | {row.members:7d} | {row.machines:8d} | {row.rounds:6.1f} | {row.trials:6.1f} | "
            f"{row.exact:5.0%} |"
        )


if __name__ == "__main__":
    main()
