"""An account of every cache block, kept by a stage from the steps as the scheduler sent them and from nothing else."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from culpa_guard import kinds
from culpa_guard.violation import Violation
from culpa_lab.engine.steps import Segment, StateRow, Step

NULL_BLOCK = 0
FRESH_MEMORY = -1
PAGE = -3
WARM_UP = "warm-up"


@dataclass(frozen=True, slots=True)
class Content:
    """What a block holds as a state block: the state of a GDN group after `position` tokens of a request.

    `chain` is a hash of these tokens, None where not all of them are known here. `group` counts GDN groups from 0, or
    is one of the numbers below.
    """

    group: int
    request: str
    generation: int
    position: int
    chain: bytes | None

    def __str__(self) -> str:
        if self.group == FRESH_MEMORY:
            return "memory that was just mapped"
        if self.request == WARM_UP:
            return "what warm-up left there"
        if self.group == PAGE:
            return f"keys and values of request {self.request}"
        return f"the state of group {self.group} after {self.position} tokens of request {self.request}"


CLEAN = Content(-2, "", 0, 0, None)
FRESH = Content(FRESH_MEMORY, "", 0, 0, None)


@dataclass(slots=True)
class Tokens:
    """The tokens of one request as far as steps have told them: a hash at each block boundary.

    `known` is False from the first token on that the scheduler did not know itself when it sent the step.
    """

    generation: int
    done: int
    last: bytes | None
    rest: "array[int]" = field(default_factory=lambda: array("q"))
    chains: dict[int, bytes | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """The layers of a cache group on this stage: its number in the model's order, its kind, name and number of the
    first one; None and -1 where the stage has none of it."""

    group: int
    layer: str | None
    layer_type: str
    first: int = -1


class BlockMirror:
    """Blocks and requests of one stage. `full` and `gdn` are the groups in the order of a segment's rows."""

    def __init__(
        self, full: Sequence[Place], gdn: Sequence[Place], blocks: int, block_size: int, *, elastic: bool
    ) -> None:
        self.full = full
        self.gdn = gdn
        # In the order in which a stage comes to them: what it comes to first is reported first.
        self.full_here = _by_layer(full)
        self.gdn_here = _by_layer(gdn)
        self.blocks = blocks
        self.segments: dict[str, Segment] = {}
        self._block_size = block_size
        self._mapped: set[int] | None = {NULL_BLOCK} if elastic else None
        self._unmapped_in: dict[int, int] = {}
        self._content: dict[int, Content] = {}
        self._chains: dict[
            int, bytes | None
        ] = {}  # of blocks of the first full-attention group, at their end
        self._tokens: dict[str, Tokens] = {}

    def dirty(self, blocks: Sequence[int]) -> None:
        """Warm-up has written these."""
        for block in blocks:
            self._content[block] = Content(PAGE, WARM_UP, 0, 0, None)

    def take(self, step: Step) -> None:
        """Take in what happens to memory before a step, and who takes part in it."""
        for block in step.unmap:
            self._unmapped_in[block] = step.number + 1
        if self._mapped is not None:
            self._mapped.difference_update(step.unmap)
            self._mapped.update(step.map)
        for block in step.map:
            self._content[block] = FRESH
            self._chains.pop(block, None)
        for block in step.zero:
            self._content[block] = CLEAN
        for request in step.finished:
            self._tokens.pop(request, None)
        self.segments = {segment.request: segment for segment in step.segments}

    def apply(self, step: Step) -> None:
        """What the blocks hold once the step is done."""
        for segment in step.segments:
            tokens = self._progress(segment)
            end = segment.start + segment.count
            here = tokens.last if end % self._block_size == 0 else None
            page = Content(PAGE, segment.request, segment.generation, 0, None)
            for table in segment.kv:
                for block in table[segment.start // self._block_size : -(-end // self._block_size)]:
                    self._content[block] = page
            for group, row in enumerate(segment.states):
                self._content[row.run] = Content(group, segment.request, segment.generation, end, here)
                if row.save:
                    at = segment.start + segment.cut if segment.cut else end
                    chain = tokens.chains.get(at)
                    self._content[row.save] = Content(group, segment.request, segment.generation, at, chain)

    def written(self, step: Step) -> set[int]:
        """Every block that the step may change."""
        blocks = {NULL_BLOCK, *step.zero, *step.map, *step.unmap}
        for segment in step.segments:
            for row in segment.states:
                blocks.update((row.run, row.save))
            first = segment.start // self._block_size
            for table in segment.kv:
                blocks.update(table[first:])
        return blocks

    # -- checks of the schedule itself --------------------------------------------------------------------------

    def ownership(self, step: Step) -> Iterator[Violation]:
        """Blocks in range, with memory behind them, and written by one group of one request only."""
        writers: dict[int, tuple[Place, Segment]] = {}
        for segment in step.segments:
            first = segment.start // self._block_size
            for number, place in self.gdn_here:
                for block in (segment.states[number].run, segment.states[number].save):
                    if block:
                        yield from self._writer(writers, place, segment, block, None)
            for number, place in self.full_here:
                table = segment.kv[number]
                yield from self._backed(place, segment, table)
                for column in range(first, -(-(segment.start + segment.count) // self._block_size)):
                    yield from self._writer(writers, place, segment, table[column], column)

    def _writer(
        self, writers: dict[int, tuple[Place, Segment]], place: Place, segment: Segment, block: int, column: int | None
    ) -> Iterator[Violation]:  # fmt: skip
        if not 0 < block < self.blocks:
            kind = kinds.BLOCK_OUT_OF_RANGE if column is not None else kinds.STATE_INDEX_OUT_OF_RANGE
            yield self.wrong(kind, place, segment, block=block, index=column, found=block,
                             expected=f"1 to {self.blocks - 1}", detail="the scheduler itself sent it")  # fmt: skip
            return
        other, owner = writers.setdefault(block, (place, segment))
        if other is not place or owner is not segment:
            two_groups = owner is segment
            kind = kinds.BLOCK_OWNED_BY_TWO_GROUPS if two_groups else kinds.BLOCK_OWNED_BY_TWO_REQUESTS
            yield self.wrong(
                kind, place, segment, block=block, index=column,
                expected=f"group {place.group} of request {segment.request} alone",
                found=f"also group {other.group} of request {owner.request}", detail="both write it in this step",
            )  # fmt: skip

    def _backed(self, place: Place, segment: Segment, table: Sequence[int]) -> Iterator[Violation]:
        columns = -(-(segment.start + segment.count) // self._block_size)
        if self._mapped is None or self._mapped.issuperset(table[:columns]):
            return
        column = next(i for i, block in enumerate(table) if block not in self._mapped)
        block = table[column]
        when = self._unmapped_in.get(block)
        yield self.wrong(
            kinds.BLOCK_NOT_OWNED, place, segment, block=block, index=column,
            expected="a block that the request holds", found="a block whose memory was taken away",
            detail=f"given back before step {when}" if when else "it was never given out",
        )  # fmt: skip

    def lineage(self, step: Step) -> Iterator[Violation]:
        """Each piece goes on from the state that its request was left with, or a prefix hit from one of its tokens."""
        for segment in step.segments:
            hit: tuple[bytes | None] | None = None
            for number, place in self.gdn_here:
                row = segment.states[number]
                if segment.start == 0:
                    yield from self._beginning(place, segment, row)
                    continue
                if row.source not in (NULL_BLOCK, row.run):
                    hit = hit or (self._prefix_chain(segment),)
                    yield from self._restored(place, number, segment, row, hit[0])
                    continue
                yield from self._continued(place, number, segment, row)

    def _beginning(self, place: Place, segment: Segment, row: StateRow) -> Iterator[Violation]:
        if row.source == NULL_BLOCK:
            return  # it is cleared by the stage
        content = self._content.get(row.source, CLEAN)
        if content is not CLEAN:
            yield self.wrong(
                kinds.FREED_STATE_READ, place, segment, block=row.source, index=segment.slot,
                expected="a cleared state", found=str(content),
                detail="the request begins from what somebody else left in the block",
            )  # fmt: skip

    def _restored(
        self, place: Place, number: int, segment: Segment, row: StateRow, chain: bytes | None
    ) -> Iterator[Violation]:
        content = self._content.get(row.source, CLEAN)
        detail = ""
        if content.group != number:
            detail = "it is no state of this group"
        elif content.position != segment.start:
            detail = "it is the state of another position"
        elif chain is not None and content.chain is not None and chain != content.chain:
            detail = "the tokens before it are others than those of this request's pages"
        if detail:
            yield self.wrong(
                kinds.PREFIX_STATE_MISMATCH, place, segment, block=row.source, index=segment.slot,
                expected=f"the state of group {place.group} after the first {segment.start} tokens of this prompt",
                found=str(content), detail=detail,
            )  # fmt: skip

    def _continued(self, place: Place, number: int, segment: Segment, row: StateRow) -> Iterator[Violation]:
        content = self._content.get(row.run, CLEAN)
        if row.source == NULL_BLOCK:
            yield self.wrong(
                kinds.INITIAL_STATE_MISMATCH, place, segment, block=row.run, index=segment.slot,
                expected=f"the state after {segment.start} tokens", found="an empty state",
                detail=f"{segment.start} tokens were computed before this piece",
            )  # fmt: skip
        elif (content.group, content.request, content.generation, content.position) != (
            number, segment.request, segment.generation, segment.start,
        ):  # fmt: skip
            yield self.wrong(
                kinds.STATE_INDEX_NOT_SCHEDULED, place, segment, block=row.run, index=segment.slot,
                expected=f"the state of group {place.group} after {segment.start} tokens of this request",
                found=str(content), detail="of the block that the scheduler sent",
            )  # fmt: skip

    # -- helpers ------------------------------------------------------------------------------------------------

    @staticmethod
    def wrong(kind: str, place: Place, segment: Segment, **fields: object) -> Violation:
        """A violation in the place of a group's first layer on this stage."""
        values = {"layer": place.layer, "layer_type": place.layer_type, "group": place.group, **fields}
        return Violation(kind, request=segment.request, **values)  # type: ignore[arg-type]

    def _prefix_chain(self, segment: Segment) -> bytes | None:
        """The hash of all tokens before a piece, by the pages that its request was given for them."""
        if not segment.kv or segment.start % self._block_size:
            return None
        column = segment.start // self._block_size - 1
        return self._chains.get(segment.kv[0][column]) if 0 <= column < len(segment.kv[0]) else None

    def _progress(self, segment: Segment) -> Tokens:
        """Take in the tokens of a piece: hashes at the boundaries that it passes."""
        tokens = self._tokens.get(segment.request)
        if tokens is None or tokens.generation != segment.generation or tokens.done != segment.start:
            begins = segment.start == 0
            tokens = Tokens(segment.generation, segment.start, b"" if begins else self._prefix_chain(segment))
            self._tokens[segment.request] = tokens
        if not segment.tokens:
            tokens.last = None
        size, end = self._block_size, segment.start + segment.count
        while tokens.done < end:
            count = min(size - tokens.done % size, end - tokens.done)
            at = tokens.done - segment.start
            if tokens.last is not None:
                tokens.rest.extend(segment.tokens[at : at + count])
            tokens.done += count
            if tokens.done % size:
                continue
            if tokens.last is not None:
                tokens.last = hashlib.blake2b(tokens.last + tokens.rest.tobytes(), digest_size=12).digest()
                tokens.rest = array("q")
            tokens.chains[tokens.done] = tokens.last
            if segment.kv:
                self._chains[segment.kv[0][tokens.done // size - 1]] = tokens.last
        return tokens


def _by_layer(places: Sequence[Place]) -> list[tuple[int, Place]]:
    """The groups that a stage has layers of, with their numbers, by their first layer."""
    here = [(number, place) for number, place in enumerate(places) if place.layer is not None]
    return sorted(here, key=lambda one: one[1].first)
