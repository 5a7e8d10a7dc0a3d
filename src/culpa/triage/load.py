"""What the engine had to do when it failed: its own statistics, and the dump of its last step."""

import re
from collections import deque
from dataclasses import dataclass

from culpa.triage.clock import Moment
from culpa.triage.lines import LogLine

_NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
_VLLM = re.compile(
    rf"Avg prompt throughput: {_NUMBER} tokens/s, Avg generation throughput: {_NUMBER} tokens/s, "
    rf"Running: (\d{{1,9}}) reqs?, (?:Swapped: \d{{1,9}} reqs?, )?(?:Waiting|Pending): (\d{{1,9}}) reqs?"
    rf"(?:, GPU KV cache usage: {_NUMBER}%)?"
)
_HIT_RATE = re.compile(rf"Prefix cache hit rate: (?:GPU: )?{_NUMBER}%")
_SGLANG_DECODE = re.compile(
    rf"Decode batch[.,]\s{{1,3}}#running-req: (\d{{1,9}}),.{{0,200}}?token usage: {_NUMBER}"
    rf"(?:,.{{0,200}}?#queue-req: (\d{{1,9}}))?"
)
_SGLANG_PREFILL = re.compile(
    r"Prefill batch[.,] #new-seq: (\d{1,9}), #new-token: (\d{1,9}), #cached-token: (\d{1,9}),"
    r".{0,200}?#running-req: (\d{1,9})"
)
_SCHEDULED = re.compile(r"total_num_scheduled_tokens=(\d{1,9})")
_COMPUTED = re.compile(r"num_computed_tokens=\[?(\d{1,9}(?:, ?\d{1,9}){0,511})")
_DUMP_STATS = re.compile(r"num_running_reqs=(\d{1,9}), num_waiting_reqs=(\d{1,9})")
_DUMP_USAGE = re.compile(rf"kv_cache_usage={_NUMBER}")
_SLOT = re.compile(r"slot launch_slot_?: id\s{1,3}(\d{1,4}) ")
_MAX = 512

LITERALS = (
    "avg prompt throughput", "decode batch", "prefill batch", "total_num_scheduled_tokens", "num_running_reqs",
    "slot launch_slot",
)  # fmt: skip

Value = int | float


@dataclass(frozen=True, slots=True)
class _Reading:
    line: int
    moment: Moment
    values: tuple[tuple[str, Value], ...]


class LoadReader:
    """Keeps the last readings of a log; bounded."""

    def __init__(self) -> None:
        self._readings: deque[_Reading] = deque(maxlen=_MAX)
        self._dumped: dict[str, Value] = {}

    def note(self, line: LogLine, lowered: str) -> None:
        """Learn from any line; `lowered` is its text in lower case."""
        if not any(literal in lowered for literal in LITERALS):
            return
        text = line.text
        if match := _VLLM.search(text):
            prompt, generated, running, waiting, usage = match.groups()
            values: list[tuple[str, Value]] = [
                ("requests_running", int(running)),
                ("requests_waiting", int(waiting)),
                ("prompt_tokens_per_second", float(prompt)),
                ("generated_tokens_per_second", float(generated)),
            ]
            if usage is not None:
                values.append(("cache_usage_percent", float(usage)))
            if hits := _HIT_RATE.search(text):
                values.append(("prefix_hit_percent", float(hits[1])))
            self._readings.append(_Reading(line.number, line.moment, tuple(values)))
        elif match := _SGLANG_DECODE.search(text):
            found: list[tuple[str, Value]] = [
                ("requests_running", int(match[1])),
                ("cache_usage_percent", round(100 * float(match[2]), 1)),
            ]
            if match[3] is not None:
                found.append(("requests_waiting", int(match[3])))
            self._readings.append(_Reading(line.number, line.moment, tuple(found)))
        elif match := _SGLANG_PREFILL.search(text):
            new, tokens, cached, running = (int(part) for part in match.groups())
            self._readings.append(
                _Reading(
                    line.number,
                    line.moment,
                    (
                        ("requests_running", running + new),
                        ("prefill_tokens", tokens),
                        ("cached_tokens", cached),
                    ),
                )
            )
        elif _SLOT.search(text):
            self._readings.append(_Reading(line.number, line.moment, (("requests_running", 1),)))
        self._dump(text)

    def _dump(self, text: str) -> None:
        """vLLM writes down its last step when it is about to die: better than any statistics before."""
        if match := _SCHEDULED.search(text):
            self._dumped["tokens_in_step"] = int(match[1])
        if match := _COMPUTED.search(text):
            computed = [int(part) for part in match[1].split(",")]
            self._dumped["longest_context_tokens"] = max(computed)
        if match := _DUMP_STATS.search(text):
            self._dumped["requests_running"] = int(match[1])
            self._dumped["requests_waiting"] = int(match[2])
        if match := _DUMP_USAGE.search(text):
            self._dumped["cache_usage_percent"] = round(100 * float(match[1]), 2)

    def at(self, line: int | None) -> dict[str, Value]:
        """The load when the line was written: the last reading before it, and the dump that came with the failure."""
        before = [one for one in self._readings if line is None or one.line <= line]
        chosen = before[-1] if before else (self._readings[-1] if self._readings else None)
        return {**dict(chosen.values if chosen else ()), **self._dumped}
