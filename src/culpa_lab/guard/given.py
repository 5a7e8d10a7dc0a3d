"""What a stage is about to work on, against what the scheduler sent for the same requests."""

from collections.abc import Iterator, Sequence

import numpy as np

from culpa_guard import kinds
from culpa_guard.violation import Violation
from culpa_lab.engine.decode import BatchInputs
from culpa_lab.engine.hooks import Indices
from culpa_lab.engine.paging import TableRow
from culpa_lab.engine.prefill import PieceInputs, StateBinding
from culpa_lab.engine.steps import Segment, StateRow
from culpa_lab.guard.mirror import NULL_BLOCK, BlockMirror, Place


class GivenChecks:
    """Checks of one stage's inputs. Places without a layer on this stage are passed over."""

    def __init__(self, mirror: BlockMirror, block_size: int) -> None:
        self._mirror = mirror
        self._block_size = block_size

    def tables(self, segments: Sequence[Segment], rows: Sequence[Sequence[TableRow]]) -> Iterator[Violation]:
        """Block tables: `rows` [full group][request]."""
        for number, place in self._mirror.full_here:
            for segment, row in zip(segments, rows[number], strict=False):
                sent = self._mirror.segments[segment.request]
                yield from self._table(place, sent, sent.kv[number], row)

    def starts(self, segments: Sequence[Segment], rows: Sequence[Sequence[TableRow]]) -> Iterator[Violation]:
        """The position from which each request's keys and values are written."""
        for number, place in self._mirror.full_here:
            for segment, row in zip(segments, rows[number], strict=False):
                sent = self._mirror.segments[segment.request]
                if row.start != sent.start:
                    yield self._mirror.wrong(
                        kinds.SLOT_MAPPING_MISMATCH, place, sent, index=0, expected=sent.start, found=row.start,
                        block=self._block_of(row, row.start), detail="position of the first token that is written",
                    )  # fmt: skip

    def batch(self, segments: Sequence[Segment], inputs: BatchInputs) -> Iterator[Violation]:
        """State blocks of a decode step, one for each request in every group."""
        for number, place in self._mirror.gdn_here:
            seen: dict[int, str] = {}
            shared = self._group_with(segments, number, inputs.states[number][: len(segments)])
            for index, segment in enumerate(segments):
                sent = self._mirror.segments[segment.request]
                found = int(inputs.states[number][index]) if index < inputs.size else None
                yield from self._state(place, number, sent, found, index, shared)
                if found and found in seen:
                    yield self._mirror.wrong(
                        kinds.STATE_INDEX_NOT_UNIQUE, place, sent, block=found, index=index,
                        expected=sent.states[number].run, found=found,
                        detail=f"request {seen[found]} of the same step has the same state",
                    )  # fmt: skip
                if found:
                    seen[found] = segment.request

    def piece(self, segment: Segment, inputs: PieceInputs) -> Iterator[Violation]:
        """State blocks of a piece of a prompt, as they were copied into its inputs."""
        sent = self._mirror.segments[segment.request]
        for number, place in self._mirror.gdn_here:
            row = StateRow(int(inputs.run[number]), int(inputs.source[number]), int(inputs.save[number]))
            shared = next(
                (
                    other
                    for other, theirs in zip(self._mirror.gdn, sent.states, strict=True)
                    if other is not place and theirs == row
                ),
                None,
            )
            yield from self._state(place, number, sent, row.run, sent.slot, shared)
            source, expected = int(inputs.source[number]), sent.states[number].source
            if source == expected or int(inputs.run[number]) != sent.states[number].run:
                continue
            kind, detail = kinds.STATE_INDEX_NOT_SCHEDULED, "block that the state is brought from"
            if expected == NULL_BLOCK:
                kind, detail = kinds.FREED_STATE_READ, "the request begins here, and its state is not cleared"
            elif source == NULL_BLOCK:
                kind, detail = kinds.INITIAL_STATE_MISMATCH, f"the state of {sent.start} tokens is not read"
            yield self._mirror.wrong(
                kind,
                place,
                sent,
                block=source,
                index=sent.slot,
                expected=expected,
                found=source,
                detail=detail,
            )

    def captured(
        self, segment: Segment, inputs: PieceInputs, bindings: Sequence[StateBinding]
    ) -> Iterator[Violation]:
        """Whether what a captured piece holds is what was copied into its inputs for this replay."""
        for number, place in self._mirror.gdn_here:
            held = bindings[number]
            for name, found, expected in (
                ("the state", held.run(), int(inputs.run[number])),
                ("the source of the state", held.source(), int(inputs.source[number])),
            ):
                if found != expected:
                    yield self._mirror.wrong(
                        kinds.CAPTURED_POINTER_STALE, place, segment, block=found, index=segment.slot,
                        expected=expected, found=found,
                        detail=f"{name}: block of the capture; the replay's own is in the inputs",
                    )  # fmt: skip
                    break

    def sharing(self, segments: Sequence[Segment], inputs: BatchInputs) -> Iterator[Violation]:
        """Groups whose indices lie in the same buffer."""
        first: dict[int, Place] = {}
        for number, place in self._mirror.gdn_here if segments else ():
            address = inputs.states[number].ctypes.data
            other = first.setdefault(address, place)
            if other is not place:
                yield self._mirror.wrong(
                    kinds.METADATA_SHARED_ACROSS_GROUPS, place, segments[0],
                    expected=f"indices of group {place.group}", found=f"indices of group {other.group}",
                    detail=f"the same buffer at {address:#x}",
                )  # fmt: skip

    # -- one row ------------------------------------------------------------------------------------------------

    def _table(
        self, place: Place, sent: Segment, expected: Sequence[int], row: TableRow
    ) -> Iterator[Violation]:
        columns = -(-(sent.start + sent.count) // self._block_size)
        given = row.table[:columns]
        wanted = np.asarray(expected[:columns], np.int64)
        if np.array_equal(given, wanted):
            return
        column = int(np.argmax(given != wanted))
        block = int(given[column])
        kind = kinds.BLOCK_NOT_OWNED
        detail = f"{int((given != wanted).sum())} of {columns} columns differ"
        if not 0 <= block < self._mirror.blocks:
            kind, detail = kinds.BLOCK_OUT_OF_RANGE, f"there are {self._mirror.blocks} blocks"
        elif (other := self._other_group(sent, place, block)) is not None:
            kind, detail = (
                kinds.METADATA_SHARED_ACROSS_GROUPS,
                f"that is the request's block of group {other.group}",
            )
        yield self._mirror.wrong(
            kind,
            place,
            sent,
            block=block,
            index=column,
            expected=int(wanted[column]),
            found=block,
            detail=detail,
        )

    def _state(
        self, place: Place, number: int, sent: Segment, found: int | None, index: int, shared: Place | None
    ) -> Iterator[Violation]:
        expected = sent.states[number].run
        if found == expected:
            return
        kind, detail = kinds.STATE_INDEX_NOT_SCHEDULED, "block of the state"
        if found is None:
            detail = "the request has no row in the captured step"
        elif not 0 <= found < self._mirror.blocks:
            kind, detail = kinds.STATE_INDEX_OUT_OF_RANGE, f"there are {self._mirror.blocks} blocks"
        elif found == NULL_BLOCK:
            detail = "the null block, on which padding works"
        elif shared is not None:
            kind, detail = (
                kinds.METADATA_SHARED_ACROSS_GROUPS,
                f"the indices are those of group {shared.group}",
            )
        elif (other := self._other_group(sent, place, found)) is not None:
            detail = f"that is the request's block of group {other.group}"
        elif (owner := self._owner(number, found)) is not None:
            detail = f"that is the state of request {owner}"
        yield self._mirror.wrong(
            kind, place, sent, block=found, index=index, expected=expected, found=found, detail=detail
        )

    def _group_with(self, segments: Sequence[Segment], number: int, found: Indices) -> Place | None:
        """Another group whose blocks these are, for every request of a batch of several."""
        if len(segments) < 2 or len(found) < len(segments):
            return None
        sent = [self._mirror.segments[one.request].states for one in segments]
        for other, place in enumerate(self._mirror.gdn):
            if other != number and all(
                int(a) == rows[other].run for a, rows in zip(found, sent, strict=True)
            ):
                return place
        return None

    def _other_group(self, sent: Segment, place: Place, block: int) -> Place | None:
        """Another group that the same request has this block in."""
        for other, row in zip(self._mirror.gdn, sent.states, strict=True):
            if other is not place and row.run == block:
                return other
        for other, table in zip(self._mirror.full, sent.kv, strict=True):
            if other is not place and block in table:
                return other
        return None

    def _owner(self, number: int, block: int) -> str | None:
        """The request of this step whose state of the same group that is."""
        segments = self._mirror.segments.values()
        return next((one.request for one in segments if one.states[number].run == block), None)

    def _block_of(self, row: TableRow, position: int) -> int | None:
        column = position // self._block_size
        return int(row.table[column]) if 0 <= column < len(row.table) else None
