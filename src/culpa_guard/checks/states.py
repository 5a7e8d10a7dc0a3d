"""State indices: the block in which a layer of recurrent state reads and writes each request's state."""

from collections.abc import Iterator

from culpa_guard import kinds
from culpa_guard.mirror import NULL_BLOCK, STATE, Group, Live, Mirror
from culpa_guard.views import GroupView, StepView
from culpa_guard.violation import Violation


def check_states(mirror: Mirror, view: StepView) -> Iterator[Violation]:
    """In range, unique among the step's requests, the one that the scheduler's row says, and read only if stored."""
    for given in view.groups:
        group = mirror.groups[given.group]
        if group.kind != STATE:
            continue
        if given.states is not None:
            yield from _indices(mirror, group, given, view)
        if given.has_initial is not None:
            yield from _initial(mirror, group, given, view)


def _indices(mirror: Mirror, group: Group, given: GroupView, view: StepView) -> Iterator[Violation]:
    assert given.states is not None
    seen: dict[int, str] = {}
    for request, found in zip(view.requests, given.states, strict=False):
        live = mirror.live.get(request)
        if live is None:
            continue
        expected = mirror.expected_states(request, group)
        if not expected:
            continue
        if found != expected[0]:
            yield _wrong(mirror, group, given, live, expected[0], found)
        if found in seen:
            yield Violation(
                kinds.STATE_INDEX_NOT_UNIQUE,
                layer=given.layers[0],
                layer_type=given.layer_type,
                group=group.index,
                request=request,
                block=found,
                expected=expected[0],
                found=found,
                detail=f"request {seen[found]} of the same step has the same state",
            )
        seen[found] = request


def _wrong(
    mirror: Mirror, group: Group, given: GroupView, live: Live, expected: int, found: int
) -> Violation:
    column = mirror.state_column(live, group)
    detail = f"column {column} of the scheduler's row, tokens {live.computed} to {live.end}"
    if not NULL_BLOCK < found < mirror.blocks:
        kind = kinds.STATE_INDEX_OUT_OF_RANGE
        detail += f"; there are {mirror.blocks} blocks"
    elif mirror.is_freed(found):
        kind = kinds.FREED_STATE_READ
        detail += "; the block found was freed"
    else:
        kind = kinds.STATE_INDEX_NOT_SCHEDULED
        detail += f"; of the block found, {mirror.describe(found)}"
    return Violation(
        kind,
        layer=given.layers[0],
        layer_type=given.layer_type,
        group=group.index,
        request=live.request,
        block=found,
        index=column,
        expected=expected,
        found=found,
        detail=detail,
    )


def _initial(mirror: Mirror, group: Group, given: GroupView, view: StepView) -> Iterator[Violation]:
    assert given.has_initial is not None
    for request, found in zip(view.requests, given.has_initial, strict=False):
        live = mirror.live.get(request)
        if live is None or bool(found) == (live.computed > 0):
            continue
        yield Violation(
            kinds.INITIAL_STATE_MISMATCH,
            layer=given.layers[0],
            layer_type=given.layer_type,
            group=group.index,
            request=request,
            expected=live.computed > 0,
            found=bool(found),
            detail="a state is read that nobody stored"
            if found
            else f"the state of {live.computed} tokens is not read",
        )
