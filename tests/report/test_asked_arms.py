"""The table of the arms that a person asked for, and the price of a passing launch in speed."""

from dataclasses import replace

from tests.report.blocks import SUSPECT, trial
from tests.report.cases import isolated

from culpa.model import Arm, Experiment, Outcome, RequestResult, Signature
from culpa.report.asked_arms import asked_arms
from culpa.report.speed import generation_speed, speed_sentence

RIGHT = RequestResult("question", "right", 12, 3, 0, 0.1)
LONG = RequestResult("long_prompt", "right", 9000, 8, 0, 4.0, size=12_000)
MEDIUM = RequestResult("long_prompt", "right", 120, 8, 0, 0.2, size=256)
CRASH = Signature("cuda_illegal_access", "worker", "PP1", "illegal memory access")


def spoken(tokens: int, seconds: float) -> RequestResult:
    return RequestResult("other", "answered", 10, tokens, 0, seconds)


def experiment() -> Experiment:
    base = isolated()
    died = (RIGHT, RIGHT, MEDIUM, RequestResult("long_prompt", "failed", size=12_000))
    compiled = SUSPECT.with_levels({"execution": "compiled"})
    off = SUSPECT.with_levels({"block_size": "16"})
    return replace(
        base,
        arms=(Arm("compiled", (("execution", "compiled"),)), Arm("small", (("block_size", "16"),))),
        trials=(
            replace(
                trial(1, Outcome.FAIL, SUSPECT, arm="baseline", purpose="baseline", signature=CRASH),
                requests=(*died, spoken(64, 0.5)),
            ),
            replace(
                trial(2, Outcome.PASS, compiled, arm="compiled", purpose="arm"),
                requests=(RIGHT, LONG, spoken(64, 1.0), spoken(64, 1.6)),
                effective=(("kv_cache_tokens", "370,617"),),
            ),
            replace(
                trial(3, Outcome.OTHER, off, arm="small", purpose="arm", signature=Signature("gibberish")),
                requests=(replace(RIGHT, status="missed"),),
            ),
        ),
    )


def test_a_row_for_the_launch_and_for_each_arm_with_the_answers_by_kind() -> None:
    asked = asked_arms(experiment())
    assert asked is not None
    baseline, compiled, small = asked.rows
    assert (baseline.questions, baseline.long_prompts) == (
        "2 of 2 right",
        "cuda illegal access (about 12,000 tokens)",
    )
    assert baseline.outcome == "fail (PP1 first)"
    assert (compiled.questions, compiled.long_prompts) == ("1 of 1 right", "1 of 1 right (9,000 tokens)")
    assert (compiled.outcome, compiled.cache_tokens, compiled.speed) == ("pass", "370,617", "52")
    assert (small.questions, small.long_prompts) == ("gibberish", "not reached")
    assert small.outcome.startswith("fails otherwise")


def test_columns_are_the_factors_that_the_arms_change() -> None:
    asked = asked_arms(experiment())
    assert asked is not None
    assert sorted(asked.columns) == ["block_size", "execution"]


def test_an_arm_that_was_not_reached_says_so() -> None:
    given = experiment()
    asked = asked_arms(replace(given, trials=given.trials[:2]))
    assert asked is not None
    assert asked.rows[2].outcome == "not run"


def test_no_table_where_no_arm_was_asked_for() -> None:
    assert asked_arms(isolated()) is None


def test_speed_is_the_median_of_long_answers_to_short_prompts_sent_alone() -> None:
    fit = [spoken(64, 1.0), spoken(64, 2.0), spoken(64, 0.5)]
    unfit = [spoken(8, 1.0), replace(fit[0], at_once=2), replace(fit[0], prompt_tokens=9000)]
    measured = replace(trial(1, Outcome.PASS, SUSPECT, arm="a"), requests=(*fit, *unfit))
    speed = generation_speed([measured])
    assert speed is not None
    assert (speed.tokens_per_second, speed.low, speed.high, speed.requests) == (64.0, 32.0, 128.0, 3)


def test_the_price_is_told_only_where_both_launches_were_measured() -> None:
    base = experiment()
    assert base.commands is not None
    commands = replace(base.commands, failing_trial=1, passing_trial=2)
    told = speed_sentence(replace(base, commands=commands))
    assert "0.41 times as fast" in told
    assert speed_sentence(replace(base, commands=replace(commands, passing_trial=3))) == ""
