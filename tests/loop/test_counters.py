"""Token counters tell progress from standing still."""

from culpa.counters import TokenCounters

NAMES = ("e:prompt_tokens_total", "e:generation_tokens_total")


def page(prompt: float, generated: float) -> str:
    return (
        f'# TYPE e:prompt_tokens_total counter\ne:prompt_tokens_total{{model="m"}} {prompt}\n'
        f"e:generation_tokens_total {generated}\ne:prompt_tokens_total_created 17.0\n"
    )


def test_engine_without_counters_says_nothing() -> None:
    counters = TokenCounters("http://127.0.0.1:1", NAMES)
    counters._take("other 1\n")
    assert counters.moved_at is None


def test_counters_that_grow_are_progress() -> None:
    counters = TokenCounters("http://127.0.0.1:1", NAMES)
    counters._take(page(1, 1))
    first = counters.moved_at
    counters._take(page(1, 2))
    assert first is not None
    assert counters.moved_at is not None
    assert counters.moved_at > first


def test_counters_that_stand_still_are_none() -> None:
    counters = TokenCounters("http://127.0.0.1:1", NAMES)
    counters._take(page(1, 1))
    first = counters.moved_at
    counters._take(page(1, 1))
    counters._take("")
    assert counters.moved_at == first


def test_numbers_that_are_none_are_passed_over() -> None:
    counters = TokenCounters("http://127.0.0.1:1", NAMES)
    counters._take("e:prompt_tokens_total what\ne:generation_tokens_total NaN\n")
    assert counters.moved_at is None
