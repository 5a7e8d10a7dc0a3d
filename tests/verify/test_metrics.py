"""The engine's own numbers, before and after."""

from hypothesis import given
from hypothesis import strategies as st

from culpa.metrics import counters, read_metrics

PAGE = """# HELP vllm:prefix_cache_hits_total hits
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 10.0
vllm:prefix_cache_hits_total{engine="1"} 5.0
vllm:num_requests_running 2
vllm:odd NaNny
"""


def test_series_of_one_name_are_added_up() -> None:
    assert read_metrics(PAGE)["vllm:prefix_cache_hits_total"] == 15.0


def test_only_known_counters_are_shown_with_both_values() -> None:
    shown = counters(read_metrics(PAGE), {**read_metrics(PAGE), "vllm:num_preemptions_total": 3.0})
    assert {one.name: (one.before, one.after) for one in shown} == {
        "vllm:prefix_cache_hits_total": (15.0, 15.0),
        "vllm:num_preemptions_total": (None, 3.0),
        "vllm:num_requests_running": (2.0, 2.0),
    }


def test_an_engine_without_them_shows_none() -> None:
    assert counters({}, read_metrics("<html>no metrics here</html>")) == ()


def test_a_number_that_is_not_finite_is_none() -> None:
    page = "vllm:a 1e999\nvllm:b nan\nvllm:c 1e308\nvllm:c 1e308\nvllm:d 1\n"
    assert read_metrics(page) == {"vllm:d": 1.0}


@given(st.text())
def test_no_page_is_an_error(page: str) -> None:
    read_metrics(page)
