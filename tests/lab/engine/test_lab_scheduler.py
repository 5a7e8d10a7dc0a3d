"""Which requests take part in a step."""

from typing import Any

import pytest
from tests.lab.engine.engines import prompt, request

from culpa_lab.engine.block_pool import BlockPool
from culpa_lab.engine.cache_groups import cache_groups
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.kv_cache_manager import KVCacheManager
from culpa_lab.engine.scheduler import Limits, Output, Scheduler
from culpa_lab.engine.steps import Sampled, Step, StepResult

GROUPS = cache_groups(("linear_attention", "linear_attention", "linear_attention", "full_attention"))


def scheduler(*, blocks: int = 100, run_ahead: bool = False, **limits: Any) -> Scheduler:
    hooks = Hooks()
    pool = BlockPool(blocks, elastic=True)
    cache = KVCacheManager(GROUPS, pool, 16, prefix_caching=True, align=True, hooks=hooks)
    usual = {"batched_tokens": 32, "sequences": 4, "model_length": 256, "run_ahead": run_ahead}
    return Scheduler(Limits(**(usual | limits)), cache, hooks)


def counts(step: Step | None) -> dict[str, int]:
    assert step is not None
    return {segment.request: segment.count for segment in step.segments}


def ended(made: Scheduler, step: Step | None, token: int = 65) -> list[Output]:
    """The step has ended and sampled this token for all that asked for one."""
    assert step is not None
    sampled = tuple(Sampled(one.request, one.generation, token) for one in step.segments if one.sample)
    return made.update(StepResult(step.number, sampled))


def test_a_long_prompt_goes_in_pieces_that_follow_each_other_without_waiting() -> None:
    made = scheduler()
    made.add(request("a", prompt(70)))
    assert [counts(made.schedule()) for _ in range(3)] == [{"a": 32}, {"a": 32}, {"a": 6}]
    assert made.schedule() is None


def test_decodes_come_first_and_prompts_get_what_is_left_of_the_budget() -> None:
    made = scheduler()
    made.add(request("a", prompt(10)))
    ended(made, made.schedule())
    made.add(request("b", prompt(70)))
    step = made.schedule()
    assert counts(step) == {"a": 1, "b": 31}
    assert step is not None
    assert [segment.decode for segment in step.segments] == [True, False]


def test_no_more_requests_run_than_may() -> None:
    made = scheduler(sequences=2)
    for name in "abc":
        made.add(request(name, prompt(4)))
    assert counts(made.schedule()) == {"a": 4, "b": 4}
    assert len(made.waiting) == 1


def test_without_pieces_a_prompt_waits_until_it_fits() -> None:
    made = scheduler(chunked=False, batched_tokens=256)
    made.add(request("a", prompt(200)))
    made.add(request("b", prompt(100)))
    assert counts(made.schedule()) == {"a": 200}
    assert counts(made.schedule()) == {"b": 100}


@pytest.mark.parametrize(("run_ahead", "steps"), [(False, 0), (True, 1)])
def test_only_asynchronous_scheduling_decodes_on_before_the_last_token_is_known(
    run_ahead: bool, steps: int
) -> None:
    made = scheduler(run_ahead=run_ahead)
    made.add(request("a", prompt(10)))
    first = made.schedule()
    assert first is not None
    ahead = 0
    while (step := made.schedule()) is not None:
        ahead += 1
        assert step.segments[0].tokens == ()
        assert step.segments[0].feedback == first.number
    assert ahead == steps


def test_nothing_is_scheduled_past_the_end_of_an_answer() -> None:
    made = scheduler(run_ahead=True)
    made.add(request("a", prompt(10), 1))
    step = made.schedule()
    assert made.schedule() is None
    [output] = ended(made, step)
    assert output.finish == "length"
    assert not made.busy


def test_when_blocks_run_out_the_last_request_starts_over() -> None:
    # Two requests of three state blocks and two pages each; a third page does not fit twice.
    made = scheduler(blocks=12, sequences=2, batched_tokens=64)
    made.add(request("a", prompt(31, seed=1), 20))
    made.add(request("b", prompt(31, seed=2), 20))
    for _ in range(5):
        ended(made, made.schedule())
    assert made.preemptions == 1
    assert [one.id for one in made.running] == ["a"]
    assert [one.id for one in made.waiting] == ["b"]


def test_results_of_before_a_preemption_do_not_count() -> None:
    made = scheduler()
    made.add(request("a", prompt(10)))
    step = made.schedule()
    made._preempt(made.running[0], [])
    assert ended(made, step) == []


def test_a_request_that_is_dropped_gives_everything_back() -> None:
    made = scheduler()
    made.add(request("a", prompt(70)))
    step = made.schedule()
    made.abort("a")
    assert not made.busy
    assert ended(made, step) == []
    assert made.cache.pool.usage == 0


def test_a_stop_token_ends_an_answer_unless_it_is_to_be_ignored() -> None:
    made = scheduler()
    made.add(request("a", prompt(10)))
    [output] = ended(made, made.schedule(), token=256)
    assert output.finish is None
