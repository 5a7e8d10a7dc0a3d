"""What is asked of a launch that has not failed yet, and when that is enough."""

from dataclasses import replace

import pytest

from culpa.evidence import Asked
from culpa.hunt import (
    MEDIUM_TOKENS,
    THINKING_TOKENS,
    Sizes,
    SizesSoFar,
    Suite,
    need_a_reference,
    patience_is_out,
    relative_costs,
    unmeasured,
)
from culpa.model import Configuration, Exposure, Outcome, Trial
from culpa.model.options import IsolateOptions
from culpa.probes import Answer, Judgement, Limits, Probe, Status

LIMITS = Limits("m", context_tokens=8192)
SUITE = Suite(IsolateOptions())


def asked(probe: Probe, status: Status, answer: Answer | None = None) -> Asked:
    given = answer or Answer(status=200, text="4", prompt_tokens=20, completion_tokens=1, seconds=0.1)
    return Asked(probe, (given,) * len(probe.requests()), Judgement(status, "because"))


def baseline(seconds: float, start: float | None = None, outcome: Outcome = Outcome.PASS) -> Trial:
    nothing = Configuration(())
    return Trial(
        1,
        nothing,
        outcome,
        "baseline",
        "baseline",
        seconds=seconds,
        start_seconds=start,
        exposure=Exposure(1),
    )


def test_short_questions_come_first_and_then_a_medium_prompt() -> None:
    names = [probe.name for probe in SUITE.probes(LIMITS, Sizes())]
    assert names[:2] == ["short", "medium"]
    assert {"cold", "warm", "switch", "stream", "structured_output", "two_at_once"} <= set(names)


def test_engine_that_refuses_chat_is_asked_without() -> None:
    sizes = SizesSoFar(None)
    source = SUITE.source(sizes)
    first = source(LIMITS, [])
    assert first is not None
    again = source(LIMITS, [asked(first, "unsupported")])
    assert again is not None
    assert again.name == "short"
    assert all("prompt" in request.body for request in again.requests())
    after = source(LIMITS, [asked(first, "unsupported"), asked(again, "right")])
    assert after is not None
    assert after.name == "medium"


def test_model_that_thinks_gets_room_for_it() -> None:
    sizes = SizesSoFar(None)
    source = SUITE.source(sizes)
    first = source(LIMITS, [])
    assert first is not None
    cut = Answer(status=200, text="", thinking=True, finish_reason="length", seconds=0.1)
    again = source(LIMITS, [asked(first, "unknown", cut)])
    assert again is not None
    assert again.name == "short"
    assert sizes.now.thinking_tokens == THINKING_TOKENS


def test_long_prompts_are_sized_by_the_measured_speed() -> None:
    sizes = SizesSoFar(None)
    short, medium = SUITE.probes(LIMITS, Sizes())[:2]
    slow = Answer(status=200, text="x", prompt_tokens=270, completion_tokens=1, seconds=10.1)
    sizes.learn([asked(short, "right"), asked(medium, "right", slow)])
    assert sizes.now.affordable_tokens == 500  # 25 tokens a second for 20 seconds
    fast = replace(slow, seconds=0.11)
    sizes.learn([asked(short, "right"), asked(medium, "right", fast)])
    assert sizes.now.affordable_tokens is not None
    assert sizes.now.affordable_tokens > 27_000


def test_slow_engine_still_gets_a_medium_prompt() -> None:
    sizes = SizesSoFar(None)
    short, medium = SUITE.probes(LIMITS, Sizes())[:2]
    crawling = Answer(status=200, text="x", prompt_tokens=270, completion_tokens=1, seconds=500)
    sizes.learn([asked(short, "right"), asked(medium, "right", crawling)])
    assert sizes.now.affordable_tokens == MEDIUM_TOKENS


def test_sizes_of_an_earlier_launch_stay() -> None:
    known = Sizes(chat=False, affordable_tokens=700)
    sizes = SizesSoFar(known)
    sizes.learn([asked(SUITE.probes(LIMITS, known)[0], "unsupported")])
    assert sizes.now == known


def test_failing_probe_follows_those_before_it_but_not_the_refused_ones() -> None:
    everything = SUITE.failing(LIMITS, Sizes(), "stream")
    without = SUITE.failing(LIMITS, Sizes(refused=("embeddings",)), "stream")
    assert len(everything.requests()) == len(without.requests()) + 1
    assert all("input" not in request.body for request in without.requests())


def test_own_questions_come_beside_the_built_in_ones() -> None:
    own = Suite(IsolateOptions(questions=("What is red plus blue?=purple",)))
    texts = [request.question for request in own.probes(LIMITS, Sizes())[0].requests()]
    assert "What is red plus blue?" in texts[0]
    assert any("2+2" in text for text in texts)


def test_unmeasured_probe_asks_for_no_log_probabilities() -> None:
    short = SUITE.probes(LIMITS, Sizes())[0]
    assert any(request.measured for request in short.requests())
    assert not any(request.measured for request in unmeasured(short).requests())


def test_free_texts_alone_need_no_reference() -> None:
    probes = {probe.name: probe for probe in SUITE.probes(LIMITS, Sizes())}
    free = [asked(probes["short"], "right"), asked(probes["sampled"], "unknown")]
    assert need_a_reference(free) == ()
    assert need_a_reference([*free, asked(probes["cold"], "unknown")]) == (probes["sampled"], probes["cold"])


@pytest.mark.parametrize(
    ("seconds", "repeat", "out"),
    [
        ([], 1, False),
        ([5.0], 1, False),
        ([200.0], 1, True),
        ([200.0], 2, False),
        ([200.0, 200.0], 2, True),
        ([1.0] * 9, 1, False),
        ([1.0] * 10, 1, True),
        ([1.0] * 10, 12, False),
    ],
)
def test_patience_ends_by_time_or_number_but_not_before_the_asked_repeats(
    seconds: list[float], repeat: int, out: bool
) -> None:
    assert patience_is_out([baseline(one) for one in seconds], IsolateOptions(repeat=repeat)) is out


@pytest.mark.parametrize(
    ("start", "seconds", "relaunch"), [(1.0, 2.0, 2.0), (9.0, 10.0, 2.0), (200.0, 201.0, 50.0)]
)
def test_relaunch_costs_more_the_longer_the_start(start: float, seconds: float, relaunch: float) -> None:
    assert relative_costs([baseline(seconds, start)]) == (relaunch, 1.0)
