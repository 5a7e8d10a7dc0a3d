"""A simulated engine: a fault as an expression over the factors, and a search run against it to its end."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.faults import Fault, parse_fault

from culpa.model import Conclusion, Configuration, Factor, Observation, Outcome, Signature
from culpa.search import Proposal, Strategy

HUNTED = Signature(symptom="cuda_illegal_access", process="worker", rank="PP1")


@dataclass
class SimulatedEngine:
    """Answers a configuration with an outcome.

    `fault` decides FAIL (with the rate `rate`), `other` decides OTHER with the signature named in it, and
    `untestable` UNTESTABLE; both come before the fault. `false_rate` is that of failures with the hunted
    signature that have nothing to do with the fault.
    """

    fault: Fault
    rate: float = 1.0
    false_rate: float = 0.0
    others: Sequence[tuple[Fault, str]] = ()
    untestables: Sequence[tuple[Fault, str]] = ()
    seed: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def run(self, configuration: Configuration, purpose: str) -> Observation:
        levels = configuration.as_dict()
        for condition, reason in self.untestables:
            if condition(levels):
                return Observation(configuration, Outcome.UNTESTABLE, purpose, None, reason)
        for condition, symptom in self.others:
            if condition(levels):
                return Observation(configuration, Outcome.OTHER, purpose, Signature(symptom=symptom), symptom)
        rate = self.rate if self.fault(levels) else self.false_rate
        failed = self._random.random() < rate
        outcome = Outcome.FAIL if failed else Outcome.PASS
        return Observation(configuration, outcome, purpose, HUNTED if failed else None)


@dataclass(frozen=True)
class Run:
    """A finished search."""

    proposals: tuple[Proposal, ...]
    history: tuple[Observation, ...]
    conclusion: Conclusion

    @property
    def found(self) -> list[set[str]]:
        """The names of each finding's members."""
        return [{member.name for member in finding.members} for finding in self.conclusion.findings]

    def status(self, name: str) -> str:
        return next(row.status for row in self.conclusion.statuses if row.name == name)

    def reason(self, name: str) -> str:
        return next(row.reason for row in self.conclusion.statuses if row.name == name)

    def purposes(self) -> list[str]:
        return [proposal.purpose for proposal in self.proposals]


def search(strategy: Strategy, engine: SimulatedEngine, most: int = 500) -> Run:
    """Run a strategy against a simulated engine until it concludes."""
    proposals: list[Proposal] = []
    history: list[Observation] = []
    while len(history) <= most:
        step = strategy.next(history)
        if isinstance(step, Conclusion):
            return Run(tuple(proposals), tuple(history), step)
        proposals.append(step)
        history.append(engine.run(step.configuration, step.purpose))
    raise AssertionError(f"no conclusion after {most} trials")


def flat(count: int) -> list[Factor]:
    """Factors f0, f1, ... with two levels and equal priors."""
    return [Factor(f"f{index}", "on", ("off",)) for index in range(count)]


def suspects(factors: Sequence[Factor]) -> dict[str, str]:
    return {factor.name: factor.suspect for factor in factors}


def engine(
    factors: Sequence[Factor],
    fault: str,
    *,
    rate: float = 1.0,
    false_rate: float = 0.0,
    others: Mapping[str, str] | None = None,
    untestables: Mapping[str, str] | None = None,
    seed: int = 0,
) -> SimulatedEngine:
    """A simulated engine for these factors; `others` and `untestables` map an expression to its text."""
    levels = suspects(factors)
    return SimulatedEngine(
        parse_fault(fault, levels),
        rate,
        false_rate,
        [(parse_fault(condition, levels), text) for condition, text in (others or {}).items()],
        [(parse_fault(condition, levels), text) for condition, text in (untestables or {}).items()],
        seed,
    )


def solve(
    factors: Sequence[Factor],
    fault: str,
    *,
    rate: float = 1.0,
    false_rate: float = 0.0,
    others: Mapping[str, str] | None = None,
    untestables: Mapping[str, str] | None = None,
    seed: int = 0,
    can_run: Callable[[Configuration], str | None] = lambda configuration: None,
    max_trials: int | None = None,
    repeat: int = 1,
    confidence: float = 0.95,
    thresholds: bool = True,
) -> Run:
    """Search for the fault of a simulated engine with these factors, to the end."""
    strategy = Strategy(
        factors,
        seed=seed,
        can_run=can_run,
        max_trials=max_trials,
        repeat=repeat,
        confidence=confidence,
        thresholds=thresholds,
    )
    simulated = engine(
        factors,
        fault,
        rate=rate,
        false_rate=false_rate,
        others=others,
        untestables=untestables,
        seed=seed,
    )
    return search(strategy, simulated)
