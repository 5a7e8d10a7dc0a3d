"""The posterior against a slow one that follows the definition, and what it does with evidence."""

from itertools import combinations

import numpy as np
import pytest
from tests.search.simulated import flat

from culpa.model import Configuration, Factor, Observation, Outcome
from culpa.search import posterior as module
from culpa.search.evidence import Evidence
from culpa.search.hypotheses import NEVER, hypotheses
from culpa.search.posterior import posterior
from culpa.search.space import Space

FACTORS = [*flat(4), Factor("third", "a", ("b", "c")), Factor("watch", "0", ("1",), instrument=True)]
SPACE = Space(FACTORS)
PRIORS = tuple(factor.prior for factor in SPACE.varied)


def observed(mask: int, outcome: Outcome, **levels: str) -> Observation:
    return Observation(SPACE.configuration(mask).with_levels(levels), outcome)


HISTORY = [
    observed(0b11111, Outcome.FAIL),
    observed(0b00000, Outcome.PASS),
    observed(0b00111, Outcome.FAIL),
    observed(0b00111, Outcome.PASS),
    observed(0b11001, Outcome.PASS),
    observed(0b01011, Outcome.OTHER),
    observed(0b00110, Outcome.FAIL, third="c"),
    observed(0b00110, Outcome.PASS, watch="1"),
]


def slow_weights(history: list[Observation]) -> dict[tuple[int, int], float]:
    """Weights of all hypotheses (unnormalised against "none of these"), straight from the definition."""
    table = hypotheses(PRIORS)
    weights = {}
    for first, second, prior in zip(table.first, table.second, table.prior, strict=True):
        total = 0.0
        for p, p_prior in zip(module.RATE, module.RATE_PRIOR / module.RATE_PRIOR.sum(), strict=True):
            for q, q_prior in zip(module.FALSE_RATE, module.FALSE_RATE_PRIOR, strict=True):
                likelihood = p_prior * q_prior
                for trial in history:
                    reading = SPACE.read(trial.configuration)

                    def covered(mask: int, terms: tuple[int, int] = (int(first), int(second))) -> bool:
                        return any(mask & term == term for term in terms)

                    rate = q
                    if covered(reading.low):
                        rate = p
                    elif covered(reading.high):
                        rate = module.THIRD_LEVEL * p + (1 - module.THIRD_LEVEL) * q
                    if trial.outcome is Outcome.FAIL:
                        likelihood *= rate
                    elif trial.outcome is Outcome.PASS and not reading.instrumented:
                        likelihood *= 1.0 - rate
                total += likelihood
        weights[int(first), int(second)] = float(prior) * total
    return weights


@pytest.mark.parametrize("length", range(len(HISTORY) + 1))
def test_it_is_exact(length: int) -> None:
    history = HISTORY[:length]
    found = posterior(hypotheses(PRIORS), Evidence(SPACE, history))
    slow = slow_weights(history)
    share = (1.0 - found.misfit) / sum(slow.values())
    expected = [
        slow[int(first), int(second)] * share
        for first, second in zip(found.hypotheses.first, found.hypotheses.second, strict=True)
    ]
    np.testing.assert_allclose(found.weight, expected, rtol=1e-9)


def test_the_weights_and_none_of_these_sum_to_one() -> None:
    found = posterior(hypotheses(PRIORS), Evidence(SPACE, HISTORY))
    assert found.weight.sum() + found.misfit == pytest.approx(1.0)


def test_every_set_of_up_to_four_and_every_disjunction_of_small_terms_is_there_once() -> None:
    table = hypotheses(PRIORS)
    bits = [1 << index for index in range(SPACE.size)]
    sets = {sum(chosen) for size in range(5) for chosen in combinations(bits, size)}
    pairs = {(int(one), int(two)) for one, two in zip(table.first, table.second, strict=True)}
    assert {first for first, second in pairs if second == NEVER} == sets
    assert len(pairs) == table.first.size
    small = [mask for mask in sets if 1 <= mask.bit_count() <= 2]
    disjoint = [(one, two) for one, two in combinations(small, 2) if one & two not in (one, two)]
    assert len([pair for pair in pairs if pair[1] != NEVER]) == len(disjoint)


def test_equal_prior_weights_share_alike_within_a_size() -> None:
    table = hypotheses((0.05,) * 6)
    sizes = np.array([int(mask).bit_count() for mask in table.terms])
    for size in range(1, 5):
        assert np.ptp(table.prior[: table.terms.size][sizes == size]) < 1e-12


def test_a_factor_that_reports_name_more_often_has_more_weight() -> None:
    table = hypotheses((0.4, 0.05, 0.05))
    singles = {int(mask): float(weight) for mask, weight in zip(table.terms, table.prior, strict=False)}
    assert singles[0b001] > 5 * singles[0b010]


def test_known_causes_leave_no_room_for_sets_that_contain_them() -> None:
    table = hypotheses(PRIORS, known=(0b00011,))
    assert int(table.first[0]) == NEVER
    assert not any(int(mask) & 0b00011 == 0b00011 for mask in table.terms[1:])


def test_other_and_untestable_are_no_evidence() -> None:
    silent = [observed(0b01010, Outcome.OTHER), observed(0b00001, Outcome.UNTESTABLE)]
    before = posterior(hypotheses(PRIORS), Evidence(SPACE, HISTORY))
    after = posterior(hypotheses(PRIORS), Evidence(SPACE, [*HISTORY, *silent]))
    np.testing.assert_allclose(after.weight, before.weight)


def test_a_pass_under_an_instrument_is_no_evidence() -> None:
    masked = observed(0b11111, Outcome.PASS, watch="1")
    before = posterior(hypotheses(PRIORS), Evidence(SPACE, HISTORY))
    after = posterior(hypotheses(PRIORS), Evidence(SPACE, [*HISTORY, masked]))
    np.testing.assert_allclose(after.weight, before.weight)


def test_outcomes_without_any_order_are_explained_by_none_of_these() -> None:
    parity = [
        observed(mask, Outcome.FAIL if mask.bit_count() % 2 else Outcome.PASS)
        for mask in range(32)
        for _ in range(2)
    ]
    found = posterior(hypotheses(PRIORS), Evidence(SPACE, parity))
    assert found.misfit > 0.99


def test_larger_sets_get_no_head_start_from_the_look_at_the_trials() -> None:
    few = hypotheses((0.05,) * 8, core=0b00011111)
    added = {int(mask): float(weight) for mask, weight in zip(few.terms, few.prior, strict=False)}
    assert added[0b00011111] < 0.01 / 56  # one of C(8, 5) sets of that size


def test_two_trials_with_the_same_number_are_refused() -> None:
    twice = [Observation(Configuration.of({}), Outcome.PASS, trial=4)] * 2
    with pytest.raises(ValueError, match="same number"):
        Evidence(SPACE, twice)
