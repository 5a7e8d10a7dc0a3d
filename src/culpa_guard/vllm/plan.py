"""The scheduler's output, as the mirror takes it."""

from collections.abc import Iterator
from typing import Any

from culpa_guard.mirror import Grant, Plan


def read_plan(output: Any) -> Plan:
    """A `SchedulerOutput` as a plan.

    Raises:
        AttributeError: it has not the fields that vLLM 0.27 to 0.32 agree on.
    """
    return Plan(
        grants=[*_new(output.scheduled_new_reqs), *_cached(output.scheduled_cached_reqs)],
        scheduled=output.num_scheduled_tokens,
        finished=tuple(output.finished_req_ids),
        preempted=tuple(getattr(output, "preempted_req_ids", None) or ()),
    )


def _new(requests: Any) -> Iterator[Grant]:
    for request in requests:
        yield Grant(request.req_id, request.block_ids, int(request.num_computed_tokens), replaces=True)


def _cached(cached: Any) -> Iterator[Grant]:
    resumed = cached.resumed_req_ids
    for request, blocks, computed in zip(
        cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True
    ):
        yield Grant(request, blocks, int(computed), replaces=request in resumed and blocks is not None)
