"""The simulated engines: what they answer, what they charge, and that luck follows from the seed."""

from typing import get_args

import pytest
from benchmarks.search.own import run_culpa
from benchmarks.search.simulate import KINDS, Case, Engine, Kind, capacity, make_case
from benchmarks.search.zoo import zoo_cases

from culpa.model import Configuration, Outcome, all_safe, all_suspect


def configuration(case: Case, *suspect: str) -> Configuration:
    """The named factors at their suspect level, all else at the preferred safe one."""
    return Configuration.of(
        {item.name: item.suspect if item.name in suspect else item.safe[0] for item in case.factors}
    )


def outcomes(case: Case, levels: Configuration, count: int) -> list[Outcome]:
    engine = Engine(case)
    return [engine.run(levels) for _ in range(count)]


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "zoo"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_users_launch_fails_and_all_safe_does_not(kind: Kind, k: int) -> None:
    for seed in range(5):
        case = make_case(kind, 8, k, seed=seed)
        assert outcomes(case, all_suspect(case.factors), 1) == [Outcome.FAIL]
        assert outcomes(case, all_safe(case.factors), 1) != [Outcome.FAIL]


@pytest.mark.parametrize("kind", ["flat", "right", "wrong", "two", "levels", "costs", "numbers"])
def test_each_cause_fails_alone_and_passes_without_any_member(kind: Kind) -> None:
    for seed in range(10):
        case = make_case(kind, 12, 3, seed=seed)
        for cause in case.causes:
            assert outcomes(case, configuration(case, *cause), 1) == [Outcome.FAIL]
            for member in cause:
                assert outcomes(case, configuration(case, *(cause - {member})), 1) == [Outcome.PASS]


def test_the_zoo_has_the_incident_with_its_factors_and_its_truth() -> None:
    cases = {case.causes[0]: case for case in zoo_cases()}
    assert len(zoo_cases()) >= 12
    incident = cases[frozenset({"execution", "pipeline_parallel_size", "prompt_tokens"})]
    scopes = {factor.name: factor.scope for factor in incident.factors}
    assert scopes["execution"] == "launch"
    assert scopes["prompt_tokens"] == "request"
    for case in zoo_cases():
        assert case.covered(all_suspect(case.factors).as_dict())
        assert not case.covered(all_safe(case.factors).as_dict())


def test_the_same_seed_gives_the_same_case_and_another_one_another() -> None:
    assert make_case("levels", 16, 3, seed=4) == make_case("levels", 16, 3, seed=4)
    assert len({make_case("flat", 16, 3, seed=seed).causes for seed in range(20)}) > 10


def test_a_fault_is_the_same_at_every_rate() -> None:
    one, other = make_case("flat", 16, 3, rate=0.3, seed=4), make_case("flat", 16, 3, false_rate=0.05, seed=4)
    assert one.causes == other.causes


def test_the_luck_of_a_configuration_does_not_depend_on_what_was_tried_before() -> None:
    case = make_case("flat", 8, 1, rate=0.5, seed=1)
    baseline = all_suspect(case.factors)
    alone = outcomes(case, baseline, 20)
    engine = Engine(case)
    mixed = []
    for _ in range(20):
        engine.run(all_safe(case.factors))
        mixed.append(engine.run(baseline))
    assert alone == mixed
    assert set(alone) == {Outcome.FAIL, Outcome.PASS}


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_failures_come_with_the_rates_that_were_asked_for(rate: float) -> None:
    case = make_case("flat", 8, 2, rate=rate, false_rate=0.05, seed=3)
    failed = outcomes(case, all_suspect(case.factors), 2000).count(Outcome.FAIL)
    falsely = outcomes(case, all_safe(case.factors), 2000).count(Outcome.FAIL)
    assert failed / 2000 == pytest.approx(rate, abs=0.04)
    assert falsely / 2000 == pytest.approx(0.05, abs=0.02)


def test_right_priors_favour_the_members_and_wrong_ones_do_not() -> None:
    def mean_prior(kind: Kind) -> float:
        cases = [make_case(kind, 16, 1, seed=seed) for seed in range(100)]
        return sum(item.prior for case in cases for item in case.factors if item.name in case.causes[0]) / 100

    assert mean_prior("right") > 3 * mean_prior("wrong")


def test_a_request_on_a_living_engine_is_cheap_and_nothing_else_is() -> None:
    case = make_case("costs", 8, 1, seed=0)
    request = next(
        item for item in case.factors if item.scope == "request" and item.name not in case.causes[0]
    )
    launch = next(item for item in case.factors if item.scope == "launch" and item.name not in case.causes[0])
    engine = Engine(case)
    charged = []
    for suspects in ((), (request.name,), (request.name,), (launch.name,), tuple(case.causes[0]), ()):
        before = engine.cost
        engine.run(configuration(case, *suspects))
        charged.append(round(engine.cost - before, 3))
    # start; another request; the same again; another launch; a failure (perhaps by request only); its aftermath
    assert charged[:4] == [1.0, 0.1, 1.0, 1.0]
    assert charged[5] == 1.0


def test_masking_shifting_and_blocked_levels_answer_as_they_should() -> None:
    masking = make_case("masking", 8, 1, seed=0)
    hidden = all_suspect(masking.factors).with_levels({"instrument": "on"})
    assert outcomes(masking, hidden, 1) == [Outcome.PASS]
    shift = make_case("shift", 8, 1, seed=0)
    shifted = all_suspect(shift.factors).with_levels({next(iter(shift.shifting)): "safe"})
    assert outcomes(shift, shifted, 1) == [Outcome.OTHER]
    blocked = make_case("untestable", 8, 1, seed=0)
    refused = all_suspect(blocked.factors).with_levels(dict(blocked.blocked[0]))
    assert outcomes(blocked, refused, 1) == [Outcome.UNTESTABLE]


def test_a_number_fails_within_its_band_and_nowhere_else() -> None:
    for seed in range(10):
        case = make_case("numbers", 8, 2, seed=seed)
        name, least, most = case.bands[0]
        tried = {least - 1: Outcome.PASS, least: Outcome.FAIL, 1024: Outcome.FAIL, most + 1: Outcome.PASS}
        for value, outcome in tried.items():
            levels = configuration(case, *case.causes[0]).with_levels({name: str(value)})
            assert outcomes(case, levels, 1) == [outcome]


def test_the_bound_grows_with_the_factors_and_with_the_size_of_the_set() -> None:
    bounds = [make_case("flat", n, k).bound() for n, k in ((8, 1), (16, 1), (16, 2), (32, 3))]
    assert bounds == sorted(bounds)
    assert bounds[0] == pytest.approx(4.3, abs=0.5)


@pytest.mark.parametrize(
    ("rate", "false_rate", "bits"), [(1.0, 0.0, 1.0), (0.5, 0.0, 0.3219), (0.9, 0.1, 0.5310)]
)
def test_what_a_trial_can_tell_is_the_capacity_of_its_channel(
    rate: float, false_rate: float, bits: float
) -> None:
    """The Z-channel at one half holds log2(5/4) bits, the symmetric one at 0.1 holds 1 - H(0.1)."""
    assert capacity(rate, false_rate) == pytest.approx(bits, abs=1e-4)


def test_a_rare_failure_raises_the_bound() -> None:
    often, rare = make_case("flat", 8, 1), make_case("flat", 8, 1, rate=0.5)
    assert rare.bound() == pytest.approx(often.bound() / 0.3219, rel=1e-3)


def test_culpas_search_is_counted_to_its_verdict_and_to_its_end() -> None:
    case = make_case("flat", 8, 2, seed=0)
    search = run_culpa(case)
    assert [found for found, _ in search.found] == [case.causes[0]]
    assert search.settled < search.to_verdict <= search.in_all == len(search.history)
    assert search.verdict_cost == search.to_verdict
    short = run_culpa(case, to_the_end=False)
    assert short.in_all == short.to_verdict == search.to_verdict
    assert short.found[0][0] == case.causes[0]


def test_every_kind_of_case_is_described() -> None:
    assert set(KINDS) == set(get_args(Kind))
