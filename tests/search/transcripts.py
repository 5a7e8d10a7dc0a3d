"""Golden transcripts: a header that sets up a simulated engine, and the whole search that follows from it.

Header lines, in any order: `fault: EXPRESSION`, `factor: NAME=SUSPECT safe=LEVEL[,LEVEL] [prior=P] [numeric]
[minimum=N] [instrument] [request]`, `factors: COUNT` (f0, f1, ... on/off), `rate: R`, `false-rate: R`, `other:
EXPRESSION -> SYMPTOM`, `untestable: EXPRESSION -> REASON`, `forbidden: EXPRESSION -> REASON`, `arm: NAME: A=X,
B=Y`, `seed: N`, `confidence: P`, `max-trials: N`, `repeat: N`, `alive: yes` (an engine lives on after a pass).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.faults import parse_fault
from tests.search.simulated import SimulatedEngine, flat, suspects

from culpa.model import Arm, Conclusion, Configuration, Factor, Observation, Outcome
from culpa.search import Proposal, Strategy

SEPARATOR = "----"


@dataclass
class Scenario:
    """What a header asks for."""

    fault: str = ""
    factors: list[Factor] = field(default_factory=list)
    rate: float = 1.0
    false_rate: float = 0.0
    others: list[tuple[str, str]] = field(default_factory=list)
    untestables: list[tuple[str, str]] = field(default_factory=list)
    forbidden: list[tuple[str, str]] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    seed: int = 0
    confidence: float = 0.95
    max_trials: int | None = None
    repeat: int = 1
    alive: bool = False

    def engine(self) -> SimulatedEngine:
        levels = suspects(self.factors)
        return SimulatedEngine(
            parse_fault(self.fault, levels),
            self.rate,
            self.false_rate,
            [(parse_fault(condition, levels), text) for condition, text in self.others],
            [(parse_fault(condition, levels), text) for condition, text in self.untestables],
            self.seed,
        )

    def strategy(self) -> Strategy:
        levels = suspects(self.factors)
        rules = [(parse_fault(condition, levels), text) for condition, text in self.forbidden]

        def can_run(configuration: Configuration) -> str | None:
            return next((text for rule, text in rules if rule(configuration.as_dict())), None)

        return Strategy(
            self.factors,
            confidence=self.confidence,
            max_trials=self.max_trials,
            repeat=self.repeat,
            arms=self.arms,
            seed=self.seed,
            can_run=can_run,
        )


def read_header(text: str) -> Scenario:
    """The scenario of a golden file's header. Raises ValueError for a line that it does not know."""
    scenario = Scenario()
    setters: dict[str, Callable[[str], None]] = {
        "fault": lambda value: setattr(scenario, "fault", value),
        "factor": lambda value: scenario.factors.append(_factor(value)),
        "factors": lambda value: scenario.factors.extend(flat(int(value))),
        "rate": lambda value: setattr(scenario, "rate", float(value)),
        "false-rate": lambda value: setattr(scenario, "false_rate", float(value)),
        "other": lambda value: scenario.others.append(_rule(value)),
        "untestable": lambda value: scenario.untestables.append(_rule(value)),
        "forbidden": lambda value: scenario.forbidden.append(_rule(value)),
        "arm": lambda value: scenario.arms.append(_arm(value)),
        "seed": lambda value: setattr(scenario, "seed", int(value)),
        "confidence": lambda value: setattr(scenario, "confidence", float(value)),
        "max-trials": lambda value: setattr(scenario, "max_trials", int(value)),
        "repeat": lambda value: setattr(scenario, "repeat", int(value)),
        "alive": lambda value: setattr(scenario, "alive", value == "yes"),
    }
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition(":")
            if key not in setters:
                raise ValueError(f"unknown header line: {line}")
            setters[key](value.strip())
    return scenario


def _factor(text: str) -> Factor:
    name_and_level, *rest = text.split()
    name, _, suspect = name_and_level.partition("=")
    values = dict(word.split("=", 1) for word in rest if "=" in word)
    return Factor(
        name,
        suspect,
        tuple(values["safe"].split(",")),
        scope="request" if "request" in rest else "launch",
        prior=float(values.get("prior", "0.05")),
        instrument="instrument" in rest,
        numeric="numeric" in rest,
        minimum=int(values.get("minimum", "1")),
    )


def _rule(text: str) -> tuple[str, str]:
    condition, _, reason = text.partition(" -> ")
    return condition, reason


def _arm(text: str) -> Arm:
    name, _, levels = text.partition(":")
    pairs = [pair.strip().partition("=") for pair in levels.split(",")]
    return Arm(name, tuple((factor, level) for factor, _, level in pairs))


def transcript(scenario: Scenario, most: int = 300) -> str:
    """The whole search: one line a trial and its reason, then the conclusion."""
    strategy, engine = scenario.strategy(), scenario.engine()
    history: list[Observation] = []
    lines: list[str] = []
    alive: Configuration | None = None
    while len(history) <= most:
        step = strategy.next(history, alive)
        if isinstance(step, Conclusion):
            return "\n".join([*lines, "", *_conclusion(step)]) + "\n"
        observation = engine.run(step.configuration, step.purpose)
        history.append(observation)
        lives = scenario.alive and observation.outcome is Outcome.PASS
        alive = step.configuration if lives else None
        lines += _trial(len(history), step, observation)
    raise AssertionError(f"no conclusion after {most} trials")


def _trial(number: int, step: Proposal, observation: Observation) -> Iterator[str]:
    yield f"{number:3} {step.purpose:10} {observation.outcome.value:10} {step.arm}"
    yield f"      {step.reason}"


def _conclusion(conclusion: Conclusion) -> Iterator[str]:
    yield f"outcome: {conclusion.outcome.value}"
    for finding in conclusion.findings:
        names = ", ".join(f"{member.name}={member.suspect}" for member in finding.members)
        yield f"finding: {{{names}}} {finding.level.value}, probability {finding.probability:.3f}"
        yield f"  sufficient: failed {finding.sufficient.failed} of {finding.sufficient.trials}"
        for name, count in finding.necessary:
            yield f"  without {name}: failed {count.failed} of {count.trials}"
        yield from (f"  condition: {sentence}" for sentence in finding.conditions)
    for row in conclusion.statuses:
        yield f"{row.status} {row.name} ({row.suspect} -> {row.safe}): {row.reason}"
    yield from (f"open: {sentence}" for sentence in conclusion.not_excluded)
