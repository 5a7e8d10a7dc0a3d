"""Which failing configurations are watched, and how a violation there becomes the place of a finding."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.blocks import PAIR, SAFE, SUSPECT
from tests.report.cases import isolated

from culpa.locate import located, to_watch
from culpa.model import Conclusion, Configuration, ExperimentOutcome, Level, Outcome, Trial
from culpa.model.trial import GUARD

EXPERIMENT = isolated()
CONCLUSION, TRIALS, FACTORS = EXPERIMENT.conclusion, EXPERIMENT.trials, EXPERIMENT.factors


def watched(folder: Path, number: int, configuration: Configuration, outcome: Outcome, *kinds: str) -> Trial:
    """A trial with the guard in it, and the file that it wrote."""
    name = f"trials/{number:04d}"
    out = folder / name / "guard"
    out.mkdir(parents=True)
    events = [{"event": "start", "role": "worker", "stage": 1, "checks": ["tables"]}]
    events += [
        {"event": "violation", "kind": kind, "step": 2 + place, "time": 1.0}
        for place, kind in enumerate(kinds)
    ]
    (out / "guard-1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    return Trial(number, configuration, outcome, GUARD, GUARD, folder=name)


def test_the_configuration_with_all_else_safe_is_watched(tmp_path: Path) -> None:
    (step,) = to_watch(CONCLUSION, TRIALS, FACTORS, tmp_path)
    assert {name: step.configuration[name] for name in PAIR} == PAIR.as_dict()
    assert step.arm == "guard"


def test_it_is_watched_once_whether_it_failed_then_or_not(tmp_path: Path) -> None:
    for number, outcome in ((9, Outcome.FAIL), (10, Outcome.PASS)):
        trial = watched(tmp_path, number, PAIR, outcome)
        assert to_watch(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path) == []


def test_a_failing_trial_that_had_the_guard_anyway_is_enough(tmp_path: Path) -> None:
    trial = replace(watched(tmp_path, 9, PAIR, Outcome.FAIL), purpose="sufficient")
    assert to_watch(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path) == []


def test_without_a_finding_the_failing_configuration_nearest_to_safe_is_watched(tmp_path: Path) -> None:
    nothing = Conclusion(ExperimentOutcome.INCONCLUSIVE)
    (step,) = to_watch(nothing, TRIALS, FACTORS, tmp_path)
    assert {name: step.configuration[name] for name in PAIR} == PAIR.as_dict()


def test_where_nothing_failed_nothing_is_watched(tmp_path: Path) -> None:
    passing = tuple(trial for trial in TRIALS if trial.outcome is Outcome.PASS)
    assert to_watch(Conclusion(ExperimentOutcome.NO_FAILURE), passing, FACTORS, tmp_path) == []


def test_the_first_violation_of_a_failing_trial_locates_the_finding(tmp_path: Path) -> None:
    trial = watched(tmp_path, 9, PAIR, Outcome.FAIL, "bind_mismatch", "state_not_finite")
    conclusion, guarded = located(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path)
    (finding,) = conclusion.findings
    assert finding.level is Level.LOCATED
    assert finding.located is not None
    assert finding.located.violation.kind == "bind_mismatch"
    assert finding.located.trial == 9
    assert [one.trial for one in guarded] == [9]


def test_a_watched_trial_without_a_violation_leaves_the_level_and_is_kept(tmp_path: Path) -> None:
    trial = watched(tmp_path, 9, PAIR, Outcome.FAIL)
    conclusion, (guarded,) = located(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path)
    assert conclusion == CONCLUSION
    assert guarded.failed
    assert guarded.record.checks == ("tables",)


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.OTHER])
def test_a_violation_in_a_trial_that_did_not_fail_so_locates_nothing(
    tmp_path: Path, outcome: Outcome
) -> None:
    trial = watched(tmp_path, 9, PAIR, outcome, "bind_mismatch")
    conclusion, (guarded,) = located(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path)
    assert conclusion == CONCLUSION
    assert not guarded.failed
    assert guarded.record.total == 1


def test_a_violation_elsewhere_locates_nothing(tmp_path: Path) -> None:
    other = SAFE.with_levels({"execution": SUSPECT["execution"]})
    trial = watched(tmp_path, 9, other, Outcome.FAIL, "bind_mismatch")
    conclusion, _ = located(CONCLUSION, (*TRIALS, trial), FACTORS, tmp_path)
    assert conclusion == CONCLUSION


def test_the_trial_that_asked_nothing_but_what_fails_is_preferred(tmp_path: Path) -> None:
    early = replace(watched(tmp_path, 9, PAIR, Outcome.FAIL, "red_zone_changed"), purpose="search")
    last = watched(tmp_path, 10, PAIR, Outcome.FAIL, "bind_mismatch")
    conclusion, _ = located(CONCLUSION, (*TRIALS, last, early), FACTORS, tmp_path)
    assert conclusion.findings[0].located is not None
    assert conclusion.findings[0].located.violation.kind == "bind_mismatch"
