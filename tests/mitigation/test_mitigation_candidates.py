"""Which configurations of a run are offered, nearest first, and which never are."""

import pytest

from culpa.mitigation.candidates import choose
from culpa.model import Configuration, Factor, Outcome, Signature, Trial
from culpa.model.diagnosis import SettingValue

FACTORS = (
    Factor("execution", "graphs", ("eager",)),
    Factor("pp", "3", ("1",)),
    Factor("prefix", "on", ("off",)),
    Factor("blocking", "off", ("on",), instrument=True),
)
REQUEST = {"prompt_tokens": "12000"}


def trial(number: int, outcome: Outcome, purpose: str = "search", **levels: str) -> Trial:
    full = {factor.name: factor.suspect for factor in FACTORS} | REQUEST | levels
    signature = Signature("gibberish", None, None, None) if outcome is Outcome.OTHER else None
    return Trial(number, Configuration.of(full), outcome, purpose, "", signature=signature)


def offered(*trials: Trial) -> list[dict[str, str]]:
    return [one.levels.as_dict() for one in choose(trials, FACTORS, REQUEST).candidates]


def test_the_nearest_passing_configurations_come_first() -> None:
    found = offered(
        trial(1, Outcome.FAIL),
        trial(2, Outcome.PASS, execution="eager", pp="1", prefix="off"),
        trial(3, Outcome.PASS, pp="1"),
        trial(4, Outcome.PASS, execution="eager"),
    )
    assert found == [{"pp": "1"}, {"execution": "eager"}]


def test_of_two_the_one_that_changes_less_is_offered() -> None:
    found = offered(
        trial(1, Outcome.PASS, execution="eager", blocking="on"), trial(2, Outcome.PASS, execution="eager")
    )
    assert found == [{"execution": "eager"}]


def test_what_passed_only_on_other_requests_is_not_offered() -> None:
    assert offered(trial(1, Outcome.PASS, execution="eager", prompt_tokens="48")) == []


def test_what_failed_even_once_is_not_offered() -> None:
    assert offered(trial(1, Outcome.PASS, pp="1"), trial(2, Outcome.FAIL, pp="1")) == []


def test_a_symptom_shift_is_never_offered_and_is_named() -> None:
    choice = choose(
        [trial(7, Outcome.OTHER, prefix="off"), trial(8, Outcome.PASS, prefix="off")], FACTORS, REQUEST
    )
    assert choice.candidates == ()
    (shift,) = choice.not_offered
    assert shift.kind == "symptom_shift"
    assert "trial 7" in shift.reason


def test_the_launch_itself_is_no_way_out() -> None:
    assert offered(trial(1, Outcome.PASS, purpose="baseline")) == []


def test_a_reference_and_an_untestable_trial_say_nothing() -> None:
    assert offered(trial(1, Outcome.PASS, "reference", pp="1"), trial(2, Outcome.UNTESTABLE, pp="1")) == []


def test_more_than_was_asked_for_is_said() -> None:
    choice = choose(
        [trial(1, Outcome.PASS, pp="1"), trial(2, Outcome.PASS, execution="eager")], FACTORS, REQUEST, most=1
    )
    assert [one.levels.as_dict() for one in choice.candidates] == [{"pp": "1"}]
    assert [one.kind for one in choice.not_offered] == ["not_measured"]


def settings_at(levels: Configuration) -> dict[str, SettingValue]:
    return {"eager": levels.get("execution", "graphs") == "eager"}


@pytest.mark.parametrize("tried", [True, False])
def test_a_known_workaround_is_recognised_by_the_setting_that_it_names(tried: bool) -> None:
    trials = [trial(1, Outcome.FAIL), *([trial(2, Outcome.PASS, execution="eager")] if tried else [])]
    (found,) = choose(trials, FACTORS, REQUEST, issues=("vllm-63505",), settings_at=settings_at).candidates
    assert found.levels.as_dict() == {"execution": "eager"}
    assert [one.url for one in found.workarounds] == ["https://github.com/vllm-project/vllm/issues/63505"]
    assert bool(found.trials) is tried


def test_a_known_workaround_that_failed_here_is_not_offered() -> None:
    choice = choose(
        [trial(2, Outcome.FAIL, execution="eager")],
        FACTORS,
        REQUEST,
        issues=("vllm-63505",),
        settings_at=settings_at,
    )
    assert choice.candidates == ()
    assert [one.kind for one in choice.not_offered] == ["failed"]


def test_a_workaround_of_another_report_is_not_considered() -> None:
    assert (
        choose(
            [trial(1, Outcome.FAIL)], FACTORS, REQUEST, issues=("vllm-1",), settings_at=settings_at
        ).candidates
        == ()
    )
