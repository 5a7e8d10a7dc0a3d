"""What a search finds and says, case by case; the whole transcripts are in the golden files."""

import pytest
from tests.search.simulated import engine, flat, search, solve

from culpa.model import (
    Arm,
    ExperimentOutcome,
    Factor,
    Level,
    Observation,
    Outcome,
    all_suspect,
)
from culpa.search import Proposal, Strategy

INSTRUMENT = Factor("launch_blocking", "0", ("1",), instrument=True)


def test_an_empty_history_asks_for_the_users_launch() -> None:
    step = Strategy(flat(5)).next([])
    assert isinstance(step, Proposal)
    assert (step.purpose, step.configuration) == ("baseline", all_suspect(flat(5)))


def test_a_baseline_that_passed_is_tried_again() -> None:
    factors = flat(5)
    step = Strategy(factors).next([Observation(all_suspect(factors), Outcome.PASS, "baseline")] * 3)
    assert isinstance(step, Proposal)
    assert step.purpose == "baseline"


def test_all_safe_comes_after_the_first_failure_where_that_is_wanted() -> None:
    run = search(Strategy(flat(6), all_safe_first=True), engine(flat(6), "f1"))
    assert run.purposes()[:2] == ["baseline", "all_safe"]


def test_all_safe_is_in_before_a_search_ends_with_a_finding() -> None:
    run = solve(flat(8), "f1 && f5 && f6")
    safe = all_suspect(flat(8)).with_levels({f"f{index}": "off" for index in range(8)})
    assert safe in [trial.configuration for trial in run.history]


@pytest.mark.parametrize("harmed", ["f3==off && f4==off && f5==off && f1==off", "f3==off"])
def test_a_safe_level_that_brings_the_failure_as_well_accuses_nobody(harmed: str) -> None:
    run = solve(flat(6), f"f1 && f2 || {harmed} && f1==off && f2==off")
    assert run.conclusion.outcome is ExperimentOutcome.ALL_SAFE_FAILS
    assert not run.conclusion.findings


def test_the_confirming_arms_of_a_finding_are_in() -> None:
    run = solve(flat(8), "f1 && f5 && f6")
    (finding,) = run.conclusion.findings
    assert run.found == [{"f1", "f5", "f6"}]
    assert finding.level is Level.ISOLATED
    assert finding.sufficient.failed >= 1
    assert {name for name, _ in finding.necessary} == {"f1", "f5", "f6"}
    assert all(count.failed == 0 and count.trials >= 1 for _, count in finding.necessary)


def test_the_users_launch_with_one_member_safe_is_tried() -> None:
    run = solve(flat(8), "f1 && f5")
    baseline = all_suspect(flat(8))
    changed = [
        trial.configuration.differing(baseline) for trial in run.history if trial.outcome is Outcome.PASS
    ]
    assert ("f1",) in changed or ("f5",) in changed


def test_no_probability_reaches_one() -> None:
    (finding,) = solve(flat(4), "f1", repeat=6).conclusion.findings
    assert 0.99 < finding.probability < 1.0


def test_factors_that_failed_while_safe_are_out_with_their_trials() -> None:
    run = solve(flat(6), "f1")
    assert run.status("f1") == "in"
    assert {run.status(f"f{index}") for index in (0, 2, 3, 4, 5)} == {"out"}
    assert "failed with it safe (trial" in run.reason("f0")


def test_two_causes_are_both_found() -> None:
    run = solve(flat(9), "f1 && f2 || f7")
    assert sorted(map(sorted, run.found)) == [["f1", "f2"], ["f7"]]


def test_a_second_cause_of_three_factors_is_found_after_the_first() -> None:
    run = solve(flat(10), "f1 && f2 || f7 && f8 && f9")
    assert sorted(map(sorted, run.found)) == [["f1", "f2"], ["f7", "f8", "f9"]]


def test_all_safe_failing_accuses_no_factor() -> None:
    run = solve(flat(6), "1==1")
    assert run.conclusion.outcome is ExperimentOutcome.ALL_SAFE_FAILS
    assert not run.conclusion.findings
    assert any("the engine's version" in sentence for sentence in run.conclusion.not_excluded)
    assert len(run.history) <= 6


def test_one_false_failure_of_all_safe_is_no_verdict() -> None:
    factors = flat(6)
    strategy, simulated = Strategy(factors), engine(factors, "f1")
    history = [simulated.run(all_suspect(factors), "baseline")]
    step = strategy.next(history)
    assert isinstance(step, Proposal)
    history.append(Observation(step.configuration, Outcome.FAIL, step.purpose))
    while isinstance(step := strategy.next(history), Proposal):
        history.append(simulated.run(step.configuration, step.purpose))
    assert step.outcome is ExperimentOutcome.ISOLATED
    assert [member.name for member in step.findings[0].members] == ["f1"]


def test_an_instrument_that_hides_the_failure_is_masking_and_no_member() -> None:
    run = solve([*flat(6), INSTRUMENT], "f1 && f3 && launch_blocking")
    assert run.found == [{"f1", "f3"}]
    assert run.status("launch_blocking") == "masking"
    assert "no fix" in run.reason("launch_blocking")


def test_an_instrument_that_hides_nothing_is_out() -> None:
    assert solve([*flat(6), INSTRUMENT], "f1 && f3").status("launch_blocking") == "out"


def test_an_instrument_is_never_changed_with_anything_but_the_confirmed_set() -> None:
    run = solve([*flat(6), INSTRUMENT], "f1 && f3")
    changed = [step for step in run.proposals if step.configuration["launch_blocking"] == "1"]
    assert [step.purpose for step in changed] == ["instrument"]


def test_a_safe_level_that_shifts_the_symptom_is_no_workaround() -> None:
    run = solve(flat(7), "f2 && f4", others={"!f4": "out_of_memory"})
    assert run.found == [{"f2"}]
    assert run.status("f4") == "untested"
    assert "shifts the symptom to out_of_memory" in run.reason("f4")
    assert "not shown to be needed" in run.reason("f4")


def test_the_next_safe_level_stands_in_for_one_that_cannot_be_judged() -> None:
    factors = [Factor("execution", "eager", ("graphs", "compiled")), *flat(6)]
    run = solve(factors, "execution && f3", untestables={"execution==graphs": "fell back"})
    assert run.found == [{"execution", "f3"}]
    (member,) = [item for item in run.conclusion.findings[0].members if item.name == "execution"]
    assert member.safe == "compiled"


def test_a_factor_that_can_run_only_as_it_is_is_untested_with_the_reason() -> None:
    run = solve(flat(6), "f1", can_run=lambda levels: "does not fit" if levels["f4"] == "off" else None)
    assert run.found == [{"f1"}]
    assert run.status("f4") == "untested"
    assert "does not fit" in run.reason("f4")


def test_a_launch_that_cannot_run_ends_the_search() -> None:
    run = solve(flat(3), "f1", can_run=lambda levels: "no such engine")
    assert not run.history
    assert "no such engine" in run.conclusion.not_excluded[0]


def test_every_other_safe_level_of_a_member_is_tried_once() -> None:
    factors = [Factor("execution", "eager", ("graphs", "compiled", "piecewise")), *flat(5)]
    run = solve(factors, "execution!=graphs && execution!=compiled && f2")
    levels = [step.configuration["execution"] for step in run.proposals if step.purpose == "level"]
    assert sorted(levels) == ["compiled", "piecewise"]
    conditions = run.conclusion.findings[0].conditions
    assert any(sentence.startswith("passes with execution=compiled") for sentence in conditions)
    assert any(sentence.startswith("fails with execution=piecewise") for sentence in conditions)


def test_the_budget_ends_the_search_with_what_is_left() -> None:
    run = solve(flat(12), "f1 && f3", max_trials=6)
    assert len(run.history) == 6
    assert run.conclusion.outcome is ExperimentOutcome.INCONCLUSIVE
    assert "budget of 6 trials" in run.conclusion.not_excluded[0]
    assert any(sentence.startswith("the failing set {") for sentence in run.conclusion.not_excluded)


def test_one_change_that_flips_the_outcome_is_a_contrast() -> None:
    factors = flat(3)
    full, without = all_suspect(factors), all_suspect(factors).with_levels({"f1": "off"})
    history = [Observation(full, Outcome.FAIL, "baseline"), Observation(without, Outcome.PASS, "arm")]
    end = Strategy(factors, max_trials=2).next(history)
    assert not isinstance(end, Proposal)
    (finding,) = end.findings
    assert (finding.level, finding.members[0].name) == (Level.CONTRAST, "f1")
    assert 0.05 < finding.probability < 0.95


def test_a_contrast_is_no_likelier_than_the_belief_in_its_set() -> None:
    factors = [Factor("b", "4", ("1",), numeric=True), *flat(3)]
    full, without = all_suspect(factors), all_suspect(factors).with_levels({"b": "1"})
    history = [Observation(full, Outcome.FAIL, "baseline"), Observation(without, Outcome.PASS, "arm")]
    strategy = Strategy(factors, max_trials=2)
    end = strategy.next(history)
    assert not isinstance(end, Proposal)
    assert end.findings[0].probability <= dict(strategy.belief(history))[("b",)]


@pytest.mark.parametrize("levels", [("graphs",), ("graphs", "compiled")])
@pytest.mark.parametrize("count", [6, 8, 10])
def test_a_second_fault_behind_the_first_takes_nothing_from_its_probability(
    levels: tuple[str, ...], count: int
) -> None:
    factors = [Factor("execution", "eager", levels, prior=0.2), *flat(count - 1)]
    run = solve(factors, "execution", others={"f3 && execution!=eager": "http_500"})
    assert run.conclusion.outcome is ExperimentOutcome.ISOLATED
    assert run.found == [{"execution"}]
    assert run.conclusion.findings[0].probability >= 0.95


def test_other_outcomes_after_a_confirmation_leave_the_probability_as_it_was() -> None:
    factors = [Factor("execution", "eager", ("graphs", "compiled"), prior=0.2), *flat(9)]
    strategy, simulated = (
        Strategy(factors),
        engine(factors, "execution", others={"f3 && execution!=eager": "x"}),
    )
    history = search(strategy, simulated).history
    confirmed = next(
        length for length in range(len(history)) if strategy.belief(history[:length])[0][1] >= 0.95
    )
    before = strategy.belief(history[:confirmed])[0]
    baseline = all_suspect(factors).with_levels({"execution": "graphs"})
    changes = [{}, *({f"f{index}": "off"} for index in (0, 1, 2, 4, 5, 6, 7, 8))]
    spoiled = [Observation(baseline.with_levels(change), Outcome.OTHER, "search") for change in changes]
    assert strategy.belief([*history[:confirmed], *spoiled])[0] == before


def test_a_spoiled_workaround_is_followed_by_two_tries_at_most() -> None:
    factors = [Factor("execution", "eager", ("graphs",), prior=0.2), *flat(9)]
    run = solve(factors, "execution", others={"f3 && execution!=eager": "http_500"})
    first = run.purposes().index("workaround")
    assert sum(trial.outcome is Outcome.OTHER for trial in run.history[first:]) <= 3
    assert any(
        "without what was found could not be judged" in sentence for sentence in run.conclusion.not_excluded
    )


def test_a_confirmed_set_that_lost_its_probability_is_a_contrast() -> None:
    factors = flat(4)
    strategy, simulated = Strategy(factors), engine(factors, "f1")
    history = list(search(strategy, simulated).history)
    only = all_suspect(factors).with_levels({"f0": "off", "f2": "off", "f3": "off"})
    history += [Observation(only, Outcome.PASS, "search")] * 6
    end = Strategy(factors, max_trials=len(history)).next(history)
    assert not isinstance(end, Proposal)
    assert end.findings[0].probability < 0.95
    assert (end.outcome, end.findings[0].level) == (ExperimentOutcome.INCONCLUSIVE, Level.CONTRAST)


def test_arms_that_a_person_asks_for_are_always_run() -> None:
    factors = [*flat(6), INSTRUMENT]
    arms = [Arm("both off", (("f0", "off"), ("f5", "off"))), Arm("watched", (("launch_blocking", "1"),))]
    run = search(Strategy(factors, arms=arms), engine(factors, "f2"))
    named = {step.arm: step.configuration for step in run.proposals if step.purpose == "arm"}
    assert set(named) == {"both off", "watched"}
    assert named["watched"]["launch_blocking"] == "1"


@pytest.mark.parametrize("levels", [(("f9", "off"),), (("f0", "sideways"),)])
def test_arms_that_contradict_the_factors_are_refused(levels: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ValueError, match="arm odd"):
        Strategy(flat(3), arms=[Arm("odd", levels)])


def test_an_arm_may_put_a_numeric_factor_at_a_level_between() -> None:
    factors = [Factor("pp", "3", ("1",), numeric=True), *flat(4)]
    run = search(Strategy(factors, arms=[Arm("pp=2", (("pp", "2"),))]), engine(factors, "pp>=2 && f1"))
    asked = [step.configuration["pp"] for step in run.proposals if step.purpose == "arm"]
    assert asked == ["2"]
    assert run.found == [{"pp", "f1"}]


@pytest.mark.parametrize(("level", "why"), [("0", "below 1"), ("two", "no integer"), ("--2", "no integer")])
def test_an_arm_is_refused_for_a_number_that_can_not_be(level: str, why: str) -> None:
    factors = [Factor("pp", "3", ("1",), numeric=True), *flat(2)]
    with pytest.raises(ValueError, match=f"arm odd: .*{why}"):
        Strategy(factors, arms=[Arm("odd", (("pp", level),))])


def test_numbers_must_be_integers() -> None:
    with pytest.raises(ValueError, match="integer"):
        Strategy([Factor("tokens", "many", ("1",), numeric=True)])


def test_each_configuration_is_tried_as_often_as_asked() -> None:
    run = solve(flat(6), "f1 && f2", repeat=3)
    counts: dict[object, int] = {}
    for trial in run.history:
        counts[trial.configuration] = counts.get(trial.configuration, 0) + 1
    assert min(counts.values()) >= 3


def test_cheap_requests_are_preferred_while_an_engine_lives() -> None:
    factors = [Factor(f"r{i}", "on", ("off",), scope="request") for i in range(5)] + flat(5)
    strategy = Strategy(factors, request_cost=0.05)
    history = [Observation(all_suspect(factors), Outcome.FAIL, "baseline")]
    step = strategy.next(history)
    assert isinstance(step, Proposal)
    history.append(Observation(step.configuration, Outcome.PASS, step.purpose))
    alive = step.configuration
    following = strategy.next(history, alive)
    assert isinstance(following, Proposal)
    assert not any(name.startswith("f") for name in following.configuration.differing(alive))


def test_trials_are_named_by_their_ids() -> None:
    factors = flat(3)
    history = [Observation(all_suspect(factors), Outcome.FAIL, "baseline", trial=17)]
    safe = all_suspect(factors).with_levels({"f0": "off", "f1": "off"})
    history.append(Observation(safe, Outcome.FAIL, "search", trial=23))
    end = Strategy(factors, max_trials=2).next(history)
    assert not isinstance(end, Proposal)
    assert end.statuses[0].reason == "failed with it safe (trial 23)"


def test_belief_names_the_best_sets_and_none_of_these() -> None:
    factors = flat(6)
    strategy, simulated = Strategy(factors), engine(factors, "f2")
    run = search(strategy, simulated)
    rows = strategy.belief(run.history[:5])
    assert () in dict(rows)
    assert [chance for _, chance in rows] == sorted((chance for _, chance in rows), reverse=True)
    assert strategy.belief(run.history)[0][0] == ("f2",)


def test_the_predicted_number_of_trials_is_about_right() -> None:
    factors = flat(12)
    runs = [len(solve(factors, fault, seed=3).history) for fault in ("f1", "f2 && f7", "f0 && f5 && f9")]
    predicted = Strategy(factors).expected_remaining([])
    assert 0.6 * sum(runs) / 3 < predicted < 1.5 * sum(runs) / 3


def test_a_factor_that_hides_the_failure_is_masking_though_no_instrument() -> None:
    run = solve(flat(7), "f1 && f2 && (!f3 || f5)")
    assert run.found == [{"f1", "f2"}]
    assert run.status("f3") == "masking"
    assert "fails with it safe and all else as it was" in run.reason("f3")
    assert {run.status(name) for name in ("f0", "f4", "f6")} == {"out"}


def test_no_trial_is_spent_on_masking_where_nothing_passed_that_should_fail() -> None:
    assert "masking" not in solve(flat(7), "f1 && f2").purposes()


def test_a_rare_fault_is_not_given_up_while_trials_still_tell() -> None:
    run = solve(flat(6), "f2", rate=0.1, seed=2)
    assert run.conclusion.outcome is ExperimentOutcome.ISOLATED


def test_a_flip_by_chance_accuses_nobody() -> None:
    """Of an intermittent failure, cut off early, some change seems to flip the outcome; it is hardly ever at fault."""
    for seed in range(6):
        run = solve(flat(10), "f1 && f4", rate=0.3, seed=seed, max_trials=20)
        assert all(finding.probability >= 0.05 for finding in run.conclusion.findings)


def test_what_a_trial_told_is_what_was_expected_of_it_on_average() -> None:
    factors = flat(7)
    strategy, simulated = Strategy(factors), engine(factors, "f1 && f3")
    history = list(search(strategy, simulated).history)[:4]
    step = Strategy(factors).next(history)
    assert isinstance(step, Proposal)
    told = {
        outcome: Strategy(factors).told([*history, Observation(step.configuration, outcome, step.purpose)])
        for outcome in (Outcome.FAIL, Outcome.PASS)
    }
    failing = told[Outcome.FAIL].failing
    assert failing is not None
    mean = failing * told[Outcome.FAIL].told + (1.0 - failing) * told[Outcome.PASS].told
    # The expectation takes each hypothesis at its mean rate; what was told also moves the rates themselves.
    assert mean == pytest.approx(told[Outcome.FAIL].expected, abs=0.02)
    assert told[Outcome.FAIL].before == told[Outcome.PASS].before


def test_trials_that_say_nothing_told_nothing() -> None:
    factors = flat(5)
    history = [Observation(all_suspect(factors), Outcome.FAIL, "baseline")]
    spoiled = Observation(all_suspect(factors).with_levels({"f1": "off"}), Outcome.OTHER)
    assert Strategy(factors).told([*history, spoiled]).told == 0.0
