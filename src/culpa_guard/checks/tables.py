"""Block tables: each row that an attention layer reads is the scheduler's row of that request."""

from collections.abc import Iterator, Sequence

from culpa_guard import kinds
from culpa_guard.mirror import ATTENTION, WINDOW, Group, Live, Mirror
from culpa_guard.views import GroupView, StepView
from culpa_guard.violation import Violation


def check_tables(mirror: Mirror, view: StepView) -> Iterator[Violation]:
    """A violation for each row with a wrong block: the first wrong column, and how many follow."""
    for given in view.groups:
        group = mirror.groups[given.group]
        if given.table is None or group.kind not in (ATTENTION, WINDOW):
            continue
        for row, request in zip(given.table, view.requests, strict=False):
            live = mirror.live.get(request)
            if live is not None:
                yield from _row(mirror, group, given, live, row)


def _row(
    mirror: Mirror, group: Group, given: GroupView, live: Live, row: Sequence[int]
) -> Iterator[Violation]:
    size = group.kernel_block_size
    first = max(live.computed - group.window + 1, 0) // size if group.kind == WINDOW else 0
    last = min((live.end + size - 1) // size, len(live.kernel_rows[group.index]))
    expected = memoryview(live.kernel_rows[group.index])[first:last]
    found = row[first:last]
    if _same(expected, found):
        return
    wrong = [column for column, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b]
    if not wrong:
        return
    column = wrong[0]
    block, inside = found[column], 0 <= found[column] < mirror.blocks * group.ratio
    rest = f"; {len(wrong)} of {len(expected)} columns differ" if len(wrong) > 1 else ""
    yield Violation(
        kinds.BLOCK_NOT_OWNED if inside else kinds.BLOCK_OUT_OF_RANGE,
        layer=given.layers[0],
        layer_type=given.layer_type,
        group=group.index,
        request=live.request,
        block=block // group.ratio,
        index=first + column,
        expected=expected[column],
        found=block,
        detail=(mirror.describe(block // group.ratio) if inside else f"there are {mirror.blocks} blocks")
        + rest,
    )


def _same(expected: memoryview, found: Sequence[int]) -> bool:
    # A memoryview and a list are never equal; two memoryviews of one format compare without a Python loop.
    return expected == found if isinstance(found, memoryview) else expected.tolist() == list(found)
