"""Which block table of the scheduler each cache group of a stage uses."""

from collections.abc import Sequence
from dataclasses import replace

from culpa_lab.engine.cache_groups import GDN, CacheGroup
from culpa_lab.engine.steps import Segment, StateRow


def regrouped(segment: Segment, groups: Sequence[CacheGroup], order: Sequence[int]) -> Segment:
    """The segment with its tables in the order in which the stage looks them up: `order`[group]."""
    if list(order) == list(range(len(groups))):
        return segment
    full, states = iter(segment.kv), iter(segment.states)
    rows: list[StateRow | tuple[int, ...]] = [
        next(states) if group.kind == GDN else next(full) for group in groups
    ]
    kv, run = [], []
    for group, index in zip(groups, order, strict=True):
        row = rows[index]
        if group.kind == GDN:
            run.append(row if isinstance(row, StateRow) else _state_of(row, segment))
        else:
            kv.append(row if not isinstance(row, StateRow) else (row.run,) * len(segment.kv[0]))
    return replace(segment, kv=tuple(kv), states=tuple(run))


def _state_of(table: tuple[int, ...], segment: Segment) -> StateRow:
    """A block table read as if it were a state row: its first entry is where the state lives."""
    first = table[0] if table else 0
    begins = bool(segment.states) and segment.states[0].source == 0
    return StateRow(first, 0 if begins else first)
