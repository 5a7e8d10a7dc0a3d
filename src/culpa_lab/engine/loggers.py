"""The engine's counters: `/metrics` in Prometheus' text format with vLLM's names, and a line in the log."""

import time

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.core import Stats
from culpa_lab.engine.logs import log

_LINE_SECONDS = 10.0


class Metrics:
    """Gathers statistics of steps and of requests."""

    def __init__(self, config: EngineConfig, blocks: int, cache_tokens: int) -> None:
        self._config = config
        self._blocks = blocks
        self._cache_tokens = cache_tokens
        self._stats = Stats(0, 0, 0.0, 0, 0, 0, 0, 0, 0)
        self._finished = {"stop": 0, "length": 0, "abort": 0}
        self._steps = 0
        self._step_tokens = 0
        self._line: tuple[float, Stats] = (time.monotonic(), self._stats)

    def step(self, stats: Stats) -> None:
        """Take in the state of the engine after a step."""
        self._stats = stats
        self._steps += 1
        self._step_tokens += stats.step_tokens

    def finished(self, reason: str) -> None:
        """A request has ended."""
        self._finished[reason] = self._finished.get(reason, 0) + 1

    def write_line(self) -> None:
        """The log's line of the last seconds, if anything ran."""
        now = time.monotonic()
        since, before = self._line
        if now - since < _LINE_SECONDS:
            return
        stats, seconds = self._stats, now - since
        self._line = now, stats
        if stats == before and not stats.running:
            return
        hit = stats.hits / stats.queries if stats.queries else 0.0
        prompt = (stats.prompt_tokens - before.prompt_tokens) / seconds
        generated = (stats.generated - before.generated) / seconds
        log.info(
            f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, "
            f"Avg generation throughput: {generated:.1f} tokens/s, "
            f"Running: {stats.running} reqs, Waiting: {stats.waiting} reqs, "
            f"GPU KV cache usage: {100 * stats.usage:.1f}%, Prefix cache hit rate: {100 * hit:.1f}%"
        )

    def page(self) -> str:
        """All counters."""
        config, stats = self._config, self._stats
        labels = f'engine="0",model_name="{config.served_model_name}"'
        values: list[tuple[str, str, float]] = [
            ("num_requests_running", "gauge", stats.running),
            ("num_requests_waiting", "gauge", stats.waiting),
            ("kv_cache_usage_perc", "gauge", stats.usage),
            ("num_preemptions_total", "counter", stats.preemptions),
            ("prefix_cache_queries_total", "counter", stats.queries),
            ("prefix_cache_hits_total", "counter", stats.hits),
            ("prompt_tokens_total", "counter", stats.prompt_tokens),
            ("generation_tokens_total", "counter", stats.generated),
            ("iteration_tokens_total_sum", "histogram", self._step_tokens),
            ("iteration_tokens_total_count", "histogram", self._steps),
        ]
        lines = []
        for name, kind, value in values:
            family = name.removesuffix("_sum").removesuffix("_count")
            lines += [f"# TYPE vllm:{family} {kind}", f"vllm:{name}{{{labels}}} {float(value)}"]
        lines.append("# TYPE vllm:request_success_total counter")
        for reason, count in self._finished.items():
            lines.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}')
        info = {
            "block_size": config.block_size,
            "effective_attention_block_size": config.block_size,
            "enable_prefix_caching": config.enable_prefix_caching,
            "gpu_memory_utilization": config.gpu_memory_utilization,
            "kv_cache_size_tokens": self._cache_tokens,
            "mamba_cache_mode": config.mamba_cache_mode,
            "num_gpu_blocks": self._blocks,
            "num_gpu_blocks_override": config.num_gpu_blocks_override,
        }
        shown = ",".join(f'{key}="{value}"' for key, value in info.items())
        lines += ["# TYPE vllm:cache_config_info gauge", f'vllm:cache_config_info{{engine="0",{shown}}} 1.0']
        return "\n".join(lines) + "\n"
