"""Slot mappings: where the keys and values of a step's tokens are written."""

from collections.abc import Iterator

from culpa_guard import kinds
from culpa_guard.mirror import ATTENTION, WINDOW, Group, Live, Mirror
from culpa_guard.views import GroupView, StepView
from culpa_guard.violation import Violation


def check_slots(mirror: Mirror, view: StepView) -> Iterator[Violation]:
    """The first and last token of each request and every token that opens a block; one violation a request."""
    for given in view.groups:
        group = mirror.groups[given.group]
        if given.slots is None or group.kind not in (ATTENTION, WINDOW):
            continue
        start = 0
        for request, length in zip(view.requests, view.lengths, strict=True):
            live = mirror.live.get(request)
            if live is not None and length:
                yield from _request(mirror, group, given, live, start, length)
            start += length


def _request(
    mirror: Mirror, group: Group, given: GroupView, live: Live, start: int, length: int
) -> Iterator[Violation]:
    assert given.slots is not None
    size, row = group.kernel_block_size, live.kernel_rows[group.index]
    for token in _tokens(live.computed, length, size):
        column, inside = divmod(live.computed + token, size)
        if column >= len(row) or start + token >= len(given.slots):
            return
        expected, found = row[column] * size + inside, given.slots[start + token]
        if expected != found:
            block = found // size // group.ratio
            yield Violation(
                kinds.SLOT_MAPPING_MISMATCH,
                layer=given.layers[0],
                layer_type=given.layer_type,
                group=group.index,
                request=live.request,
                block=block,
                index=token,
                expected=expected,
                found=found,
                detail=f"position {live.computed + token}; of the block found, {mirror.describe(block)}",
            )
            return


def _tokens(computed: int, length: int, size: int) -> Iterator[int]:
    yield 0
    yield from range(size - computed % size, length - 1, size)
    if length > 1:
        yield length - 1
