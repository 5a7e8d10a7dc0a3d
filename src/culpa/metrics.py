"""The counters of an engine that tell of its health: read before and after, from its `/metrics` page."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from culpa.model.verification import Counter

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})? ([^\s#]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    meaning: str


# The names by which vLLM and llama.cpp export them; those of an engine that has none of them are no error.
# https://docs.vllm.ai/en/latest/usage/metrics.html
# https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md#get-metrics-prometheus-compatible-metrics-exporter
_KNOWN = (
    _Known("vllm:prompt_tokens_total", "prompt tokens"),
    _Known("vllm:generation_tokens_total", "generated tokens"),
    _Known("vllm:prefix_cache_queries_total", "prompt tokens looked up in the prefix cache"),
    _Known("vllm:prefix_cache_hits_total", "prompt tokens found in the prefix cache"),
    _Known("vllm:num_preemptions_total", "preempted requests"),
    _Known("vllm:num_requests_running", "requests that run"),
    _Known("vllm:num_requests_waiting", "requests that wait"),
    _Known("vllm:corrupted_requests_total", "requests with NaN in their logits"),
    _Known("vllm:spec_decode_num_draft_tokens_total", "drafted tokens"),
    _Known("vllm:spec_decode_num_accepted_tokens_total", "drafted tokens that were accepted"),
    _Known("vllm:request_success_total", "requests that ended well"),
    _Known("llamacpp:prompt_tokens_total", "prompt tokens"),
    _Known("llamacpp:tokens_predicted_total", "generated tokens"),
    _Known("llamacpp:requests_processing", "requests that run"),
    _Known("llamacpp:requests_deferred", "requests that wait"),
    _Known("sglang:num_running_reqs", "requests that run"),
    _Known("sglang:num_queue_reqs", "requests that wait"),
    _Known("sglang:cache_hit_rate", "share of prompt tokens found in the cache"),
)


def read_metrics(page: str) -> dict[str, float]:
    """The sum over all series of each name on a Prometheus page; what is no finite number is left out."""
    sums: dict[str, float] = {}
    for name, text in _SAMPLE.findall(page):
        try:
            sums[name] = sums.get(name, 0.0) + float(text)
        except ValueError:
            continue  # a page may hold anything; a line that is no sample tells nothing
    return {name: number for name, number in sums.items() if isfinite(number)}


def counters(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[Counter, ...]:
    """The known counters that are on either page."""
    return tuple(
        Counter(known.name, known.meaning, before.get(known.name), after.get(known.name))
        for known in _KNOWN
        if known.name in before or known.name in after
    )
