"""What holds for every fault, every set of factors and every engine."""

import random
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.search.simulated import HUNTED, engine, search

from culpa.model import Conclusion, Configuration, ExperimentOutcome, Factor, Observation, Outcome
from culpa.search import Proposal, Strategy

PATIENT = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def some_factors(draw: st.DrawFn, least: int = 3, most: int = 9) -> list[Factor]:
    count = draw(st.integers(least, most))
    factors = []
    for index in range(count):
        levels = draw(st.integers(1, 3))
        factors.append(
            Factor(
                f"f{index}",
                "suspect",
                tuple(f"safe{level}" for level in range(levels)),
                scope=draw(st.sampled_from(["launch", "request"])),
                prior=draw(st.floats(0.01, 0.5)),
            )
        )
    return factors


@st.composite
def conjunctions(draw: st.DrawFn) -> tuple[list[Factor], set[str], int]:
    factors = draw(some_factors())
    names = [factor.name for factor in factors]
    members = draw(st.sets(st.sampled_from(names), min_size=1, max_size=3))
    return factors, members, draw(st.integers(0, 1000))


@given(conjunctions())
@PATIENT
def test_a_deterministic_conjunction_is_found_exactly(case: tuple[list[Factor], set[str], int]) -> None:
    factors, members, seed = case
    run = search(Strategy(factors, seed=seed), engine(factors, " && ".join(sorted(members))))
    assert run.conclusion.outcome is ExperimentOutcome.ISOLATED
    assert run.found == [members]
    assert all(run.status(factor.name) == ("in" if factor.name in members else "out") for factor in factors)


@given(conjunctions(), st.floats(0.4, 1.0), st.data())
@PATIENT
def test_a_resumed_search_goes_on_as_if_it_had_never_stopped(
    case: tuple[list[Factor], set[str], int], rate: float, data: st.DataObject
) -> None:
    factors, members, seed = case
    simulated = engine(factors, " && ".join(sorted(members)), rate=rate, seed=seed)
    run = search(Strategy(factors, seed=seed, max_trials=40), simulated)
    place = data.draw(st.integers(0, len(run.proposals) - 1))
    again = Strategy(factors, seed=seed, max_trials=40).next(run.history[:place])
    assert again == run.proposals[place]


def _rule(factors: list[Factor], seed: int) -> Callable[[Configuration], str | None]:
    """Forbids a random pair of levels, and a random factor's safe levels. The user's launch can run."""
    chance = random.Random(seed)
    one, two, three = chance.sample(factors, 3)
    safe = chance.choice(one.safe)
    other = chance.choice([two.suspect, *two.safe])

    def can_run(levels: Configuration) -> str | None:
        if levels[three.name] in three.safe:
            return f"{three.name} can only be as it is"
        return "no such pair" if levels[one.name] == safe and levels[two.name] == other else None

    return can_run


@given(conjunctions(), st.floats(0.3, 1.0), st.integers(0, 10_000))
@PATIENT
def test_nothing_forbidden_and_no_unknown_level_is_ever_proposed(
    case: tuple[list[Factor], set[str], int], rate: float, rule_seed: int
) -> None:
    factors, members, seed = case
    can_run = _rule(factors, rule_seed)
    strategy = Strategy(factors, seed=seed, can_run=can_run, max_trials=60)
    run = search(strategy, engine(factors, " && ".join(sorted(members)), rate=rate, seed=seed))
    for step in run.proposals:
        assert can_run(step.configuration) is None
        assert list(step.configuration) == sorted(factor.name for factor in factors)
        assert all(step.configuration[item.name] in (item.suspect, *item.safe) for item in factors)


@given(some_factors(most=7), st.integers(0, 10_000))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_every_search_ends_and_no_claim_is_certain(factors: list[Factor], seed: int) -> None:
    """Outcomes by lot: no hypothesis is right, and the search must still end, without certainty."""
    chance = random.Random(seed)
    strategy = Strategy(factors, seed=seed, max_trials=80)
    history: list[Observation] = []
    while isinstance(step := strategy.next(history), Proposal):
        outcome = chance.choices(list(Outcome), weights=[5, 5, 1, 1])[0]
        signature = HUNTED if outcome is Outcome.FAIL else None
        history.append(Observation(step.configuration, outcome, step.purpose, signature, "by lot"))
        assert len(history) <= 80
    assert isinstance(step, Conclusion)
    assert {row.name for row in step.statuses} == {factor.name for factor in factors}
    assert all(0.0 < finding.probability < 1.0 for finding in step.findings)


@given(conjunctions(), st.integers(0, 10_000))
@PATIENT
def test_trials_that_say_nothing_accuse_nobody(case: tuple[list[Factor], set[str], int], pick: int) -> None:
    """One factor's safe levels always shift the symptom: whatever is found, it is right apart from that factor,
    which is never called a member."""
    factors, members, seed = case
    shifting = random.Random(pick).choice(factors).name
    simulated = engine(factors, " && ".join(sorted(members)), others={f"!{shifting}": "another failure"})
    run = search(Strategy(factors, seed=seed), simulated)
    if members == {shifting}:
        assert run.found == []
    else:
        assert run.found == [members - {shifting}]
    assert run.status(shifting) == "untested"
