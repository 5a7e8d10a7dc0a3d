"""The parts of the search on their own: masks, hazards, feasibility, bounds, relations, descent."""

from collections.abc import Callable

import pytest
from tests.search.simulated import flat

from culpa.model import Configuration, Factor, Observation, Outcome
from culpa.search.descent import Descent, nearest_straddle
from culpa.search.evidence import Evidence
from culpa.search.exposure import excluded_rate
from culpa.search.feasible import Feasible
from culpa.search.hazard import Hazard
from culpa.search.relation import Point, Relation, thresholds_fit
from culpa.search.space import Space
from culpa.search.verdict import passes_needed
from culpa.search.wording import arm_name, configuration_name, listed, percent, trials

SPACE = Space(flat(6))
FULL = SPACE.full
MIXED = Space(
    [Factor("execution", "eager", ("graphs", "compiled")), Factor("blocking", "0", ("1",), instrument=True)]
)


def seen(*outcomes: tuple[int, Outcome]) -> Evidence:
    return Evidence(SPACE, [Observation(SPACE.configuration(mask), outcome) for mask, outcome in outcomes])


def test_masks_and_configurations_are_the_same_thing() -> None:
    for mask in (0, 1, 0b101101, FULL):
        reading = SPACE.read(SPACE.configuration(mask))
        assert (reading.low, reading.high, reading.exact) == (mask, mask, True)


def test_a_third_level_may_act_like_either() -> None:
    reading = MIXED.read(Configuration.of({"execution": "compiled", "blocking": "0"}))
    assert (reading.low, reading.high, reading.exact) == (0, 1, False)


def test_a_changed_instrument_is_seen() -> None:
    reading = MIXED.read(Configuration.of({"execution": "eager", "blocking": "1"}))
    assert (reading.low, reading.instrumented, reading.exact) == (1, True, False)


def test_what_a_configuration_does_not_name_is_at_the_users_level() -> None:
    assert MIXED.read(Configuration.of({})).low == 1


def test_names_must_be_unique() -> None:
    with pytest.raises(ValueError, match="unique"):
        Space([*flat(2), *flat(1)])


def test_one_pass_excludes_next_to_nothing() -> None:
    assert excluded_rate(0) == 1.0
    assert excluded_rate(1) == pytest.approx(0.95)
    assert excluded_rate(59) == pytest.approx(0.0495, abs=1e-3)


def test_a_rare_fault_needs_many_passes() -> None:
    assert [passes_needed(rate) for rate in (0.99, 0.9, 0.5, 0.1)] == [1, 1, 4, 22]


def test_without_spoiled_trials_there_is_no_hazard() -> None:
    hazard = Hazard(seen((FULL, Outcome.FAIL), (0, Outcome.PASS)))
    assert hazard.chance(0b1) == 0.0
    assert hazard.held == 0


def test_one_spoiled_trial_blames_all_that_was_safe_in_it() -> None:
    hazard = Hazard(seen((FULL, Outcome.FAIL), (0, Outcome.OTHER)))
    assert hazard.chance(0) > 0.9
    assert 0.05 < hazard.chance(FULL & ~1) < 0.3
    assert hazard.held == 0


def test_good_trials_clear_what_was_safe_in_them() -> None:
    hazard = Hazard(seen((FULL, Outcome.FAIL), (0, Outcome.OTHER), (0b000111, Outcome.PASS)))
    assert hazard.chance(0b001111) < 0.02
    assert hazard.chance(0b111110) > 0.15


def test_a_factor_that_alone_spoils_a_trial_is_held_at_suspect() -> None:
    hazard = Hazard(seen((FULL, Outcome.FAIL), (0, Outcome.OTHER), (FULL & ~0b10, Outcome.UNTESTABLE)))
    assert hazard.held == 0b10


def test_what_one_factor_explains_the_others_need_not() -> None:
    spoiled = [(0, Outcome.OTHER), (FULL & ~0b10, Outcome.OTHER), (FULL & ~0b11, Outcome.OTHER)]
    hazard = Hazard(seen((FULL, Outcome.FAIL), *spoiled))
    assert hazard.held == 0b10
    assert hazard.chance(FULL & ~0b1) < 0.1


def test_two_levels_that_go_badly_together_are_avoided_together() -> None:
    good = [(FULL, Outcome.FAIL), (FULL & ~0b1, Outcome.PASS), (FULL & ~0b10, Outcome.FAIL)]
    hazard = Hazard(seen(*good, (FULL & ~0b11, Outcome.UNTESTABLE), (0, Outcome.UNTESTABLE)))
    assert hazard.held == 0
    assert hazard.chance(0b111000 & ~0b11) > hazard.chance(0b111001)


def forbids(rule: Callable[[int], bool]) -> Feasible:
    return Feasible(SPACE, lambda levels: "no" if rule(SPACE.read(levels).low) else None)


def test_the_nearest_configuration_that_can_run_puts_the_fewest_factors_back() -> None:
    feasible = forbids(lambda mask: not mask & 0b1000 and not mask & 0b0100)
    near = feasible.nearest(0, 0, lambda mask: feasible.reason(mask) is None)
    assert near == 0b0100


def test_factors_that_are_fixed_stay_as_they_are() -> None:
    feasible = forbids(lambda mask: not mask & 0b1000 and not mask & 0b0100)
    near = feasible.nearest(0, 0b0100, lambda mask: feasible.reason(mask) is None)
    assert near == 0b1000


def test_nothing_is_near_where_nothing_can_run() -> None:
    feasible = forbids(lambda mask: not mask & 1)
    assert feasible.nearest(0, 1, lambda mask: feasible.reason(mask) is None) is None


def test_a_factor_that_can_never_be_made_safe_is_held() -> None:
    feasible = forbids(lambda mask: not mask & 0b10)
    assert feasible.held == 0b10
    assert feasible.reasons == {0b10: "no"}


LOW, HIGH = (Factor("low", "8", ("4096",), numeric=True), Factor("high", "64", ("1",), numeric=True))


def test_a_comparison_is_decided_at_equal_values_below_the_suspect_ones() -> None:
    assert Relation(LOW, HIGH, "<").decisive(1) == ((22, 22), (21, 22))
    assert Relation(LOW, HIGH, "<=").decisive(1) == ((23, 22), (22, 22))


def test_a_comparison_without_room_is_not_decided() -> None:
    near = Factor("high", "9", ("8",), numeric=True)
    assert Relation(LOW, near, "<").decisive(8) == ()


def test_a_comparison_holds_only_where_thresholds_fail() -> None:
    relation = Relation(LOW, HIGH, "<")
    edges: list[Point] = [
        (8, 64, "fails"),
        (63, 64, "fails"),
        (64, 64, "passes"),
        (8, 9, "fails"),
        (8, 8, "passes"),
    ]
    assert thresholds_fit(edges)
    assert not relation.holds(edges)
    assert relation.holds([*edges, (22, 22, "passes"), (21, 22, "fails")])
    assert not relation.holds([*edges, (22, 22, "fails")])


def descent(evidence: Evidence) -> Descent:
    return Descent(evidence, 0, (), lambda mask: True)


def test_delta_debugging_ends_in_a_minimal_failing_set() -> None:
    history = [(FULL, Outcome.FAIL), (0, Outcome.PASS)]
    for _ in range(60):
        mask = descent(seen(*history)).next_step(0.95)
        if mask is None:
            break
        history.append((mask, Outcome.FAIL if mask & 0b010010 == 0b010010 else Outcome.PASS))
    found = descent(seen(*history)).minimal()
    assert found is not None
    assert found[0] == 0b010010
    assert found[1] >= 0.95


def test_where_all_safe_fails_the_way_between_failing_and_passing_is_halved() -> None:
    history = [(FULL, Outcome.PASS), (0, Outcome.FAIL)]
    for _ in range(60):
        mask = descent(seen(*history)).next_step(0.95)
        if mask is None:
            break
        history.append((mask, Outcome.PASS if mask & 0b000100 else Outcome.FAIL))
    straddle = nearest_straddle(seen(*history))
    assert straddle is not None
    assert straddle.difference == 0b000100


def test_configurations_with_mixed_outcomes_straddle_nothing() -> None:
    assert nearest_straddle(seen((FULL, Outcome.FAIL), (0, Outcome.PASS), (0, Outcome.FAIL))) is None


@pytest.mark.parametrize(
    ("mask", "name"),
    [
        (FULL, "baseline"),
        (0, "all safe"),
        (0b000001, "only f0 suspect"),
        (FULL & ~0b000110, "f1+f2 safe"),
        (0b001111, "f4+f5 safe"),
        (0b000111, "f3+f4+f5 safe"),
    ],
)
def test_arms_have_names_that_a_person_recognises(mask: int, name: str) -> None:
    assert arm_name(SPACE, mask) == name


def test_third_levels_and_instruments_are_spelled_out() -> None:
    levels = Configuration.of({"execution": "compiled", "blocking": "1"})
    assert configuration_name(MIXED, levels) == "execution=compiled, blocking=1"


def test_lists_read_like_sentences() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert trials([3]) == "trial 3"
    assert trials([1, 2, 3, 4, 5]) == "trials 1, 2, 3 and 2 more"
    assert [percent(share) for share in (0.004, 0.5, 0.997)] == ["0.4%", "50%", "99.7%"]
