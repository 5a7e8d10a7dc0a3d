"""Simulated engines with known faults: the ground on which every method of the benchmark is tried.

A `Case` is one fault in one engine: the factors, the minimal failing sets, the failure rates, and whatever makes
it hard. An `Engine` answers configurations and counts what they cost. The outcome of the j-th trial of a
configuration follows from the case's seed, the configuration and j alone, so that all methods meet the same luck.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import log2
from typing import Literal

from culpa.model import Configuration, Factor, Outcome, all_suspect
from culpa.search.hypotheses import hypotheses

Kind = Literal[
    "flat", "right", "wrong", "two", "levels", "masking", "shift", "untestable", "costs", "numbers", "zoo"
]
KINDS: Mapping[Kind, str] = {
    "flat": "equal priors, two levels, every arm a relaunch",
    "right": "priors from 0.01 to 0.5, members drawn in proportion to them",
    "wrong": "the same priors, members drawn in inverse proportion",
    "two": "two causes, either of which is enough",
    "levels": "factors with two or three safe levels, one of which acts like the suspect one",
    "masking": "an instrument that keeps the failure away",
    "shift": "a factor whose safe level brings another failure instead",
    "untestable": "two pairs of levels that can't be tested together",
    "numbers": "half of the factors are numbers; a member fails from a random number on, or only within a band",
    "zoo": "the faults of the reference engine, with its factors and their priors",
    "costs": "half of the factors cost only a request (a tenth of a relaunch)",
}
FLAT_PRIOR = 0.05
RELAUNCH, REQUEST = 1.0, 0.1  # what a trial costs, in relaunches
_LEAST_PRIOR, _MOST_PRIOR = 0.01, 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """One fault in one engine.

    It fails with `rate` where all of one of `causes` is at its suspect level, with `false_rate` elsewhere.
    `alike` are (factor, safe level) pairs that act like the factor's suspect level; `masking` are instruments
    that keep the failure away at any level but the user's; the safe levels of `shifting` factors bring another
    failure; a configuration that contains all of one of `blocked` can't be tested.
    """

    kind: Kind
    factors: tuple[Factor, ...]
    causes: tuple[frozenset[str], ...]
    rate: float = 1.0
    false_rate: float = 0.0
    alike: frozenset[tuple[str, str]] = frozenset()
    masking: frozenset[str] = frozenset()
    shifting: frozenset[str] = frozenset()
    blocked: tuple[frozenset[tuple[str, str]], ...] = ()
    bands: tuple[tuple[str, int, int], ...] = ()
    seed: int = 0

    def covered(self, levels: Mapping[str, str]) -> bool:
        """Whether a cause is at work at these levels."""
        at_fault = {
            factor.name
            for factor in self.factors
            if levels[factor.name] == factor.suspect or (factor.name, levels[factor.name]) in self.alike
        }
        at_fault |= {name for name, least, most in self.bands if least <= int(levels[name]) <= most}
        return self.masking <= at_fault and any(cause <= at_fault for cause in self.causes)

    def bound(self) -> float:
        """The least number of trials in the mean, the user's launch not counted: -log2 of the prior that culpa gives
        the true set (the mean over the sets, if there are two), over the bits that a trial can tell at most."""
        varied = [factor for factor in self.factors if not factor.instrument]
        table = hypotheses(tuple(factor.prior for factor in varied))
        chance = dict(zip(table.terms.tolist(), table.prior[: table.terms.size].tolist(), strict=True))
        place = {factor.name: 1 << index for index, factor in enumerate(varied)}
        bits = [-log2(chance[sum(place[name] for name in cause)]) for cause in self.causes]
        return sum(bits) / len(bits) / capacity(self.rate, self.false_rate)

    def with_flat_priors(self) -> "Case":
        """The same fault and the same luck, with all priors equal."""
        return replace(self, factors=tuple(replace(factor, prior=FLAT_PRIOR) for factor in self.factors))


@lru_cache
def capacity(rate: float, false_rate: float = 0.0) -> float:
    """The bits that a trial can tell at most, if a covered configuration fails with one rate and any other with the
    other: the capacity of the binary asymmetric channel (Shannon 1948), here by search over the share of covered
    configurations. 1 for a deterministic fault, 0.32 for a rate of 0.5."""

    def told(share: float) -> float:
        failing = share * rate + (1.0 - share) * false_rate
        return _entropy(failing) - share * _entropy(rate) - (1.0 - share) * _entropy(false_rate)

    low, high = 0.0, 1.0  # told() is concave
    for _ in range(100):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if told(left) < told(right) else (low, right)
    return told((low + high) / 2.0)


def _entropy(chance: float) -> float:
    return 0.0 if chance in (0.0, 1.0) else -chance * log2(chance) - (1.0 - chance) * log2(1.0 - chance)


def make_case(
    kind: Kind, n: int, k: int, *, rate: float = 1.0, false_rate: float = 0.0, seed: int = 0
) -> Case:
    """A random fault of `k` factors out of `n`. The same arguments always give the same case; only the luck of
    the trials depends on the rates, so that cases with the same seed and different rates share their fault."""
    chance = random.Random(f"{kind}|{n}|{k}|{seed}")
    if kind in ("right", "wrong"):
        span = _MOST_PRIOR / _LEAST_PRIOR
        priors = [_LEAST_PRIOR * span ** chance.random() for _ in range(n)]
    else:
        priors = [FLAT_PRIOR] * n
    factors = [Factor(f"f{index}", "suspect", ("safe",), prior=prior) for index, prior in enumerate(priors)]
    members = _members(chance, factors, k, kind)
    case = Case(kind, tuple(factors), (members,), rate, false_rate, seed=seed)
    others = [factor.name for factor in factors if factor.name not in members]
    if kind == "two":
        return replace(case, causes=(members, _second(chance, factors, k, members)))
    if kind == "levels":
        levels = tuple(
            replace(factor, safe=("safe", "safe2", "safe3")[: chance.randint(2, 3)]) for factor in factors
        )
        member = chance.choice([factor for factor in levels if factor.name in members])
        return replace(case, factors=levels, alike=frozenset({(member.name, member.safe[-1])}))
    if kind == "numbers":
        return _numbers(chance, case)
    if kind == "masking":
        instrument = Factor("instrument", "off", ("on",), prior=FLAT_PRIOR, instrument=True)
        return replace(case, factors=(*factors, instrument), masking=frozenset({instrument.name}))
    if kind == "shift":
        return replace(case, shifting=frozenset({chance.choice(others)}))
    if kind == "untestable":
        return replace(case, blocked=tuple(_blocked(chance, factors, others) for _ in range(2)))
    if kind == "costs":
        request = set(chance.sample([factor.name for factor in factors], n // 2))
        scoped = tuple(
            replace(factor, scope="request") if factor.name in request else factor for factor in factors
        )
        return replace(case, factors=scoped)
    return case


def _members(chance: random.Random, factors: list[Factor], k: int, kind: Kind) -> frozenset[str]:
    """Factors drawn one after the other, in proportion to their prior odds (or inverse odds)."""
    sign = -1.0 if kind == "wrong" else 1.0
    left = list(factors)
    drawn: set[str] = set()
    for _ in range(k):
        weights = [(factor.prior / (1.0 - factor.prior)) ** sign for factor in left]
        one = chance.choices(left, weights)[0]
        left.remove(one)
        drawn.add(one.name)
    return frozenset(drawn)


def _second(chance: random.Random, factors: list[Factor], k: int, first: frozenset[str]) -> frozenset[str]:
    """Another cause of up to `k` factors; neither of the two contains the other."""
    while True:
        second = frozenset(factor.name for factor in chance.sample(factors, chance.randint(1, k)))
        if not second <= first and not first <= second:
            return second


def _numbers(chance: random.Random, case: Case) -> Case:
    """Half of the factors as numbers from a safe 16 to a suspect 1024, a member among them. In half of the cases
    what is above the suspect number passes too: a band, and no threshold."""
    (member,) = chance.sample(sorted(case.causes[0]), 1)
    others = [factor.name for factor in case.factors if factor.name != member]
    numeric = {member, *chance.sample(others, len(case.factors) // 2 - 1)}
    factors = tuple(
        replace(factor, suspect="1024", safe=("16",), numeric=True) if factor.name in numeric else factor
        for factor in case.factors
    )
    members = sorted(numeric & case.causes[0])
    bands = tuple((name, chance.randint(17, 1024), chance.choice((1024, 1 << 30))) for name in members)
    return replace(case, factors=factors, bands=bands)


def _blocked(chance: random.Random, factors: list[Factor], others: list[str]) -> frozenset[tuple[str, str]]:
    """One factor's safe level beside another's suspect one. The first is no member, so that the truth can
    still be seen with it at the user's level."""
    safe = chance.choice(others)
    suspect = chance.choice([factor.name for factor in factors if factor.name != safe])
    return frozenset({(safe, "safe"), (suspect, "suspect")})


@dataclass
class Engine:
    """A simulated engine: answers configurations, counts trials and what they cost.

    A trial costs a relaunch, unless the last engine passed, only request levels differ from it, and it is no
    repetition of the same configuration: then it costs a request.
    """

    case: Case
    trials: int = 0
    cost: float = 0.0
    alive: Configuration | None = None
    _tried: dict[Configuration, int] = field(default_factory=dict)
    _launch: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._launch = tuple(factor.name for factor in self.case.factors if factor.scope == "launch")

    @property
    def baseline(self) -> Configuration:
        return all_suspect(self.case.factors)

    def run(self, configuration: Configuration) -> Outcome:
        """One trial."""
        self.trials += 1
        self.cost += self._price(configuration)
        times = self._tried[configuration] = self._tried.get(configuration, 0) + 1
        outcome = self._outcome(configuration, times)
        self.alive = configuration if outcome is Outcome.PASS else None
        return outcome

    def _price(self, configuration: Configuration) -> float:
        if self.alive is None or configuration == self.alive:
            return RELAUNCH
        levels, living = configuration.as_dict(), self.alive.as_dict()
        same = all(levels[name] == living[name] for name in self._launch)
        return REQUEST if same else RELAUNCH

    def _outcome(self, configuration: Configuration, times: int) -> Outcome:
        case, levels = self.case, configuration.as_dict()
        if any(all(levels[name] == level for name, level in pair) for pair in case.blocked):
            return Outcome.UNTESTABLE
        if any(levels[name] != "suspect" for name in case.shifting):
            return Outcome.OTHER
        rate = case.rate if case.covered(levels) else case.false_rate
        if rate in (0.0, 1.0):
            return Outcome.FAIL if rate else Outcome.PASS
        luck = random.Random(f"{case.seed}|{configuration.levels}|{times}").random()
        return Outcome.FAIL if luck < rate else Outcome.PASS
