"""The schedule as the engine core sends it, written beside the guard's files: what a violation's step consisted of."""

import json
from collections.abc import Sequence
from pathlib import Path

from culpa_lab.engine.cache_groups import CacheGroup
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.steps import Segment, Step

NAME = "schedule.jsonl"


class ScheduleFile:
    """One JSON object a step; the first line says what the engine runs with. What can't be written is lost.

    A segment: request, generation (how often it was preempted), start, count, decode (one token of an answer),
    source (`none` begins, `own` goes on, `cache` is brought from another block), states (blocks), last (the last
    block of the first block table). `unmap` are blocks whose memory is taken away before the step.
    """

    def __init__(self, folder: Path, config: EngineConfig, groups: Sequence[CacheGroup]) -> None:
        self._path = folder / NAME
        self._lost = False
        self._write(
            {
                "block_size": config.block_size,
                "capture_sizes": list(config.capture_sizes) if config.decode_graphs else [],
                "partition": list(config.partition),
                "groups": [{"kind": group.kind, "layers": list(group.layers)} for group in groups],
            }
        )

    def scheduled(self, step: Step) -> None:
        """Write a step down; steps count from 1, as the guard's do."""
        self._write(
            {
                "step": step.number + 1,
                "segments": [_segment(one) for one in step.segments],
                "unmap": list(step.unmap),
            }
        )

    def _write(self, line: dict[str, object]) -> None:
        if self._lost:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="ascii") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        except OSError:  # a full disk must not end the engine under observation
            self._lost = True


def _segment(one: Segment) -> dict[str, object]:
    row = one.states[0] if one.states else None
    source = "own"
    if row is not None and row.source != row.run:
        source = "cache" if row.source else "none"
    return {
        "request": one.request,
        "generation": one.generation,
        "start": one.start,
        "count": one.count,
        "decode": one.decode,
        "source": source,
        "states": [row.run for row in one.states],
        "last": one.kv[0][-1] if one.kv and one.kv[0] else None,
    }
