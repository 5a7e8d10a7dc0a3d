"""No setting changes an answer: hypothesis looks for one that does."""

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tests.lab.engine.engines import BLOCK, LAYERS, TOLERANCE, answer, deviation, engine, expected, prompt

# A few prompts that are asked again and again, so that the model alone has to be asked only once for each; some
# share a beginning, some end at a block's boundary or next to it.
PROMPTS = (
    *(prompt(length, seed=length) for length in (1, 5, 15, 16, 17, 32, 33, 48)),
    prompt(100, seed=1),
    prompt(100, seed=1) + prompt(20, seed=2),
    prompt(100, seed=1)[:64] + prompt(30, seed=3),
    prompt(130, seed=4),
)
LENGTH = 20


@st.composite
def partitions(draw: st.DrawFn) -> tuple[int, ...]:
    cuts = draw(st.sets(st.integers(1, LAYERS - 1), max_size=3))
    edges = [0, *sorted(cuts), LAYERS]
    return tuple(b - a for a, b in pairwise(edges))


@st.composite
def launches(draw: st.DrawFn) -> dict[str, Any]:
    caching = draw(st.booleans())
    sizes = draw(st.sampled_from([(1, 2, 4), (2,), (3,), (1,), ()]))
    return {
        "partition": draw(partitions()),
        "enable_prefix_caching": caching,
        "mamba_cache_mode": draw(st.sampled_from(["align", "none"])) if caching else "none",
        "enforce_eager": draw(st.booleans()),
        "cudagraph_mode": draw(st.sampled_from(["FULL_AND_PIECEWISE", "FULL_DECODE_ONLY", "PIECEWISE"])),
        "capture_sizes": sizes,
        "async_scheduling": draw(st.booleans()),
        "max_num_batched_tokens": draw(st.sampled_from([3, 16, 17, 32, 50, 256])),
        "max_num_seqs": draw(st.integers(1, 5)),
        "block_size": draw(st.sampled_from([BLOCK, 32])),
        # The smallest number makes requests wait for blocks, and gives some of them up again.
        "num_gpu_blocks_override": draw(st.sampled_from([24, 160])),
    }


rounds_of_prompts = st.lists(
    st.lists(st.sampled_from(PROMPTS), min_size=1, max_size=5), min_size=1, max_size=3
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(launch=launches(), rounds=rounds_of_prompts)
def test_no_setting_changes_an_answer(launch: dict[str, Any], rounds: list[list[tuple[int, ...]]]) -> None:
    core = engine(**launch)
    found = answer(core, rounds, LENGTH)
    asked = [one for several in rounds for one in several]
    for one, text in zip(found, asked, strict=True):
        assert len(one.sampled) == LENGTH
        assert deviation(one, text) < TOLERANCE
    pool = core.scheduler.cache.pool
    assert pool.free == pool.size - 1


def test_the_model_is_rarely_undecided() -> None:
    # The comparison ends where two tokens are equally likely: that must be the exception.
    margins = [margin for one in PROMPTS for margin in expected(one, LENGTH).margins]
    assert sum(margin < 1e-3 for margin in margins) < len(margins) / 50


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("partition", [(8,), (3, 4, 1)])
def test_a_repeated_prompt_comes_from_the_cache_and_says_the_same(
    eager: bool, partition: tuple[int, ...]
) -> None:
    core = engine(enforce_eager=eager, partition=partition)
    first, second = answer(core, [[prompt(100)], [prompt(100)]], LENGTH)
    assert first.cached == 0
    assert second.cached == 96
    assert max(deviation(one, prompt(100)) for one in (first, second)) < TOLERANCE


def test_a_shared_beginning_comes_from_the_cache_up_to_where_a_state_was_kept() -> None:
    core = engine()
    _, second = answer(core, [[prompt(100)], [prompt(70) + prompt(30, seed=9)]], LENGTH)
    # States are kept at the end of each piece of 32 tokens, pages at every block.
    assert second.cached == 64
    assert deviation(second, prompt(70) + prompt(30, seed=9)) < TOLERANCE


def test_without_kept_states_nothing_comes_from_the_cache() -> None:
    core = engine(mamba_cache_mode="none")
    _, second = answer(core, [[prompt(100)], [prompt(100)]])
    assert second.cached == 0


def test_requests_that_had_to_give_up_their_blocks_answer_right() -> None:
    core = engine(num_gpu_blocks_override=24, max_num_seqs=4, partition=(3, 5))
    asked = [prompt(60, seed=seed) for seed in range(4)]
    found = answer(core, [asked], 40)
    assert core.scheduler.preemptions > 0
    assert max(deviation(one, text) for one, text in zip(found, asked, strict=True)) < TOLERANCE
